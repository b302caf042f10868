/** Mount the picture in an element and hand back what a host can do with it. */

import { Actions } from './input/actions.js';
import { Gestures } from './input/gestures.js';
import { Stage } from './stage.js';
import { drawHeaders, Pictures } from './text/headers.js';
import { drawLabels, placeLabels } from './text/labels.js';
import { drawMini } from './text/minimap.js';
import { drawAxes, drawNames } from './text/names.js';
import { occupancyOf } from './text/occupancy.js';

/** @param {HTMLElement} element @param {import('./types.js').Input} input @param {import('./types.js').Callbacks} [callbacks] */
export function mount(element, input, callbacks = {}) {
  element.classList.add('appca-explorer');
  const stage = new Stage(element, input, callbacks);
  const actions = new Actions(stage);
  const gestures = new Gestures(stage, actions);
  const pictures = new Pictures(stage);
  /** @type {import('./text/labels.js').Label[]} */
  let labels = [];
  stage.overlays.push(
    drawNames, drawAxes, () => drawLabels(stage, labels), () => drawHeaders(stage, pictures), () => drawMini(stage, () => 1),
  );
  stage.settled.push(() => { labels = placeLabels(stage, occupancyOf(stage)); });
  const ready = (async () => {
    await stage.scene.open();
    stage.rows.readMarks(stage.scene);
    await stage.recolour();
    stage.views = [await stage.makeView(stage.options.layout ?? Object.keys(stage.meta.layouts)[0])];
    stage.startSheets();
    stage.resize();
    stage.draw();
  })();
  return { ready, stage, actions, gestures };
}
