/** Go to a panel, a row or a class. */

import { fitting } from '../layout/camera.js';
import { pointToPage } from '../layout/place.js';

/** @typedef {{panel?: number, sought?: number[], layout?: string, row?: number, code?: number, component?: number}} Target a row, all rows of a class, or all panels of a component */

/** @param {import('../stage.js').Stage} stage @param {import('./actions.js').Actions} actions @param {Target} target */
export async function fly(stage, actions, target) {
  let [view] = stage.views;
  if (target.layout && target.layout !== view.layout.name) {
    await actions.morph(view, target.layout);
    [view] = stage.views;
  }
  if (target.sought) {
    stage.options.sought = [`${target.sought}`, ...(stage.options.sought ?? [])].slice(0, 12);
    await actions.reopen();
    [view] = stage.views;
    const panel = view.layout.panels.findIndex(
      ({ components }) => `${components}` === `${target.sought}`,
    );
    if (panel >= 0) actions.open(view, panel);
    return;
  }
  if (target.component !== undefined) {
    const { first = view.layout.name } = stage.meta;
    if (view.layout.kind === 'map') await actions.morph(view, first);
    actions.filter({ ...stage.options.filter, components: [target.component] });
    return;
  }
  if (target.code !== undefined) {
    const { codes } = stage.rows;
    actions.select([...codes.keys()].filter((row) => codes[row] === target.code));
    return;
  }
  if (target.panel !== undefined) {
    actions.open(view, target.panel);
    return;
  }
  if (target.row === undefined) return;
  const { layout } = view;
  const point = layout.rows.indexOf(target.row);
  const panel = layout.panels.find(({ start, count }) => point >= start && point < start + count);
  if (!panel) return;
  if (view.opened) actions.open(view, panel.index);
  else actions.flyTo(view, seenFrom(stage, view, panel, point));
  if (stage.callbacks.onPoint)
    actions.hold(target.row); // as a click does
  else actions.select([target.row]);
}

/** Where the camera sees a point of a panel from. @param {import('../stage.js').Stage} stage @param {import('../layout/view.js').View} view @param {import('../layout/view.js').View['layout']['panels'][number]} panel @param {number} point @returns {import('../layout/camera.js').Camera} */
function seenFrom(stage, view, panel, point) {
  const { layout } = view;
  view.shift = 1;
  stage.tweens.stop('shift');
  if (layout.kind !== 'map') return fitting(view.parts[0].rects[panel.index], view.rect, 0.3);
  const [cam, kept] = [{ ...view.home, k: view.home.k * 8 }, view.cam];
  view.cam = cam; // where the row is seen from there
  stage.draw();
  view.cam = kept;
  const spot = stage.placed.find((placed) => placed.view === view && placed.panel === panel);
  if (!spot) return cam;
  const [x, y] = pointToPage(spot, layout.xy[2 * point], layout.xy[2 * point + 1]);
  cam.x += (x - view.rect.x - view.rect.w / 2) / cam.k;
  cam.y += (y - view.rect.y - view.rect.h / 2) / cam.k;
  return cam;
}
