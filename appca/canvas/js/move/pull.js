/** True neighbours of the selected rows, pulled to them on a map until they are let go. */

import { pointToPage } from '../layout/place.js';
import { grouped } from '../scene/names.js';
import { SELECTED } from '../scene/rows.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../scene/layouts.js').Layout} Layout */

const WAY = 0.85; // share of the way to the selected rows

/** @type {WeakMap<Layout, {xy: Int16Array, points: number[]}>} where the points of a map belong, and those that are away */
const home = new WeakMap();

/** The map whose points can travel, if there is one. @param {Stage} stage */
export const mapOf = ({ scene, views }) =>
  scene.has('near') ? views.find(({ layout }) => layout.kind === 'map') : undefined;

/** Whether points of a map are away. @param {Layout} layout */
export const pulled = (layout) => home.has(layout);

/** Pull in the rows that are nearest in the data to selected ones and not selected, or let all go. @param {Stage} stage @param {import('../input/actions.js').Actions} actions */
export async function pull(stage, actions) {
  const view = mapOf(stage);
  if (!view) return;
  const near = await stage.scene.array('near', 'u4');
  if (stage.gone || !stage.views.includes(view)) return;
  const { layout } = view;
  let said = 'Points are back in their places';
  actions.replace(view, view, () => {
    const before = home.get(layout);
    if (before) {
      layout.xy.set(before.xy);
      home.delete(layout);
    } else {
      const xy = layout.xy.slice();
      const points = move(stage, layout, near);
      home.set(layout, { xy, points });
      said = `${grouped(points.length)} rows pulled in`;
    }
    layout.revision += 1;
  });
  actions.say(said);
}

/** Move the neighbours of selected rows, each to the mean of those it is near to; return these points. @param {Stage} stage @param {Layout} layout @param {Uint32Array} near */
export function move({ rows }, { rows: order, xy }, near) {
  const each = near.length / rows.count;
  const at = new Int32Array(rows.count).fill(-1);
  order.forEach((row, i) => {
    at[row] = i;
  });
  const selected = (/** @type {number} */ row) => Boolean(rows.flags[row] & SELECTED);
  /** @type {Map<number, [number, number, number]>} sums of places, and how many */
  const sums = new Map();
  for (let row = 0; row < rows.count; row += 1) {
    if (!selected(row) || at[row] < 0) continue;
    for (const other of near.subarray(row * each, (row + 1) * each)) {
      if (selected(other) || at[other] < 0) continue;
      const [x, y, n] = sums.get(other) ?? [0, 0, 0];
      sums.set(other, [x + xy[2 * at[row]], y + xy[2 * at[row] + 1], n + 1]);
    }
  }
  for (const [row, [x, y, n]] of sums) {
    const i = 2 * at[row];
    xy[i] += WAY * (x / n - xy[i]);
    xy[i + 1] += WAY * (y / n - xy[i + 1]);
  }
  return [...sums.keys()].map((row) => at[row]);
}

/** Ring the points that are away. @param {Stage} stage */
export function drawPulled({ context, theme, placed, morph }) {
  for (const spot of morph ? [] : placed) {
    const { layout } = spot.part;
    context.strokeStyle = theme.primary;
    context.lineWidth = 1.5;
    for (const i of home.get(layout)?.points ?? []) {
      context.beginPath();
      context.arc(...pointToPage(spot, layout.xy[2 * i], layout.xy[2 * i + 1]), 4.5, 0, 7);
      context.stroke();
    }
  }
}
