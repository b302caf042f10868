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
  const seen = view.opened ? undefined : seenFrom(stage, view, panel, point);
  if (seen) actions.flyTo(view, seen.cam);
  else actions.open(view, panel.index);
  if (stage.callbacks.onPoint)
    actions.hold(target.row, seen?.place, seen?.cam); // as a click does
  else actions.select([target.row]);
}

/** Where the camera sees a point of a panel from, and where the point is then. @param {import('../stage.js').Stage} stage @param {import('../layout/view.js').View} view @param {import('../layout/view.js').View['layout']['panels'][number]} panel @param {number} point @returns {{cam: import('../layout/camera.js').Camera, place?: [number, number]}} */
function seenFrom(stage, view, panel, point) {
  const { layout, rect, home, cam: kept } = view;
  const isMap = layout.kind === 'map';
  view.shift = 1;
  stage.tweens.stop('shift');
  const cam = isMap
    ? { ...home, k: home.k * 8 }
    : fitting(view.parts[0].rects[panel.index], rect, 0.3);
  view.cam = cam; // where the row is seen from there
  stage.draw();
  view.cam = kept;
  const spot = stage.placed.find((placed) => placed.view === view && placed.panel === panel);
  if (!spot) return { cam };
  const place = pointToPage(spot, layout.xy[2 * point], layout.xy[2 * point + 1]);
  if (!isMap) return { cam, place };
  const middle = /** @type {[number, number]} */ ([rect.x + rect.w / 2, rect.y + rect.h / 2]);
  cam.x += (place[0] - middle[0]) / cam.k;
  cam.y += (place[1] - middle[1]) / cam.k;
  return { cam, place: middle };
}
