/** Mount the picture in an element and hand back what a host can do with it. */

import { Stage } from './stage.js';

/** @param {HTMLElement} element @param {import('./types.js').Input} input @param {import('./types.js').Callbacks} [callbacks] */
export function mount(element, input, callbacks = {}) {
  element.classList.add('appca-explorer');
  const stage = new Stage(element, input, callbacks);
  const ready = (async () => {
    await stage.scene.open();
    stage.rows.readMarks(stage.scene);
    await stage.recolour();
    stage.views = [await stage.makeView(stage.options.layout ?? Object.keys(stage.meta.layouts)[0])];
    stage.startSheets();
    stage.resize();
    stage.draw();
  })();
  return { ready, stage };
}
