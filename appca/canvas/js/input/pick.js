/** What is at a place of the page: a panel, and the point or image nearest to the hand. */

import { imagesShown } from '../draw.js';
import { pointToPage } from '../layout/place.js';
import { clamp, holds } from '../layout/rect.js';
import { HIDDEN } from '../scene/rows.js';

const REACH = 9; // px from the hand to a point

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../layout/place.js').Placed} Placed @typedef {import('../scene/layouts.js').Layout} Layout @typedef {import('../scene/layouts.js').Panel} Panel */
/** @typedef {{row: number, x: number, y: number, spot: Placed, index: number}} Found a row and where it stands on the page */
/** @typedef {{side: number, starts: Uint32Array, list: Uint32Array}} Grid points of a panel by cell of its range */

/** The panel at a place, the last drawn first. @param {Stage} stage @param {number} x @param {number} y */
export function panelAt(stage, x, y) {
  return stage.placed.findLast(
    ({ card, view, strength }) => strength > 0.5 && holds(card, x, y) && holds(view.rect, x, y),
  );
}

/** @type {WeakMap<Panel, {key: string, grid: Grid}>} */
const grids = new WeakMap();

/** Counting sort of a panel's points into cells of its own extent. @param {Layout} layout @param {Panel} panel @returns {Grid} */
function gridOf(layout, panel) {
  const key = `${layout.name} ${layout.revision} ${layout.rows.length}`;
  const cached = grids.get(panel);
  if (cached?.key === key) return cached.grid;
  const side = clamp(Math.ceil(Math.sqrt(panel.count / 3)), 1, 512);
  const cell = cellIn(panel, side);
  const cells = new Uint32Array(panel.count);
  const starts = new Uint32Array(side * side + 1);
  for (let j = 0; j < panel.count; j += 1) {
    const i = 2 * (panel.start + j);
    cells[j] = cell(0, layout.xy[i]) + side * cell(1, layout.xy[i + 1]);
    starts[cells[j] + 1] += 1;
  }
  for (let c = 0; c < side * side; c += 1) starts[c + 1] += starts[c];
  const next = starts.slice();
  const list = new Uint32Array(panel.count);
  for (let j = 0; j < panel.count; j += 1) {
    list[next[cells[j]]] = panel.start + j;
    next[cells[j]] += 1;
  }
  const grid = { side, starts, list };
  grids.set(panel, { key, grid });
  return grid;
}

/** @param {Panel} panel @param {number} side @returns {(axis: number, value: number) => number} */
const cellIn =
  ({ extent }, side) =>
  (axis, value) =>
    clamp(
      Math.floor(((value - extent[2 * axis]) / (extent[2 * axis + 1] - extent[2 * axis])) * side),
      0,
      side - 1,
    );

/** The row nearest to a place of the page; an image counts as near when the hand is on it. @param {Stage} stage @param {number} x @param {number} y @returns {Found | null} */
export function pick(stage, x, y) {
  const spot = panelAt(stage, x, y);
  if (!spot || stage.morph || stage.tour) return null;
  const image = imageAt(stage, spot, x, y);
  if (image) return image;
  const {
    part: { layout },
    panel,
    plot,
    range,
  } = spot;
  const grid = gridOf(layout, panel);
  const [ux, uy] = [(range[1] - range[0]) / plot.w, (range[3] - range[2]) / plot.h];
  const [vx, vy] = [range[0] + (x - plot.x) * ux, range[2] + (plot.y + plot.h - y) * uy];
  const cell = cellIn(panel, grid.side);
  let best = null;
  let least = REACH ** 2;
  for (let b = cell(1, vy - REACH * uy); b <= cell(1, vy + REACH * uy); b += 1) {
    for (let a = cell(0, vx - REACH * ux); a <= cell(0, vx + REACH * ux); a += 1) {
      for (let k = grid.starts[a + grid.side * b]; k < grid.starts[a + grid.side * b + 1]; k += 1) {
        const i = grid.list[k];
        const [dx, dy] = [(layout.xy[2 * i] - vx) / ux, (layout.xy[2 * i + 1] - vy) / uy];
        if (dx * dx + dy * dy >= least || stage.rows.flags[layout.rows[i]] & HIDDEN) continue;
        least = dx * dx + dy * dy;
        best = { row: layout.rows[i], x: x + dx, y: y - dy, spot, index: i };
      }
    }
  }
  return best;
}

/** @param {Stage} stage @param {Placed} spot @param {number} x @param {number} y @returns {Found | null} */
function imageAt(stage, spot, x, y) {
  let best = null;
  for (const { wanted, px } of imagesShown(stage)) {
    wanted.panel.forEach((key, i) => {
      if (key !== spot.key) return;
      const [ix, iy] = pointToPage(spot, wanted.raw[4 * i], wanted.raw[4 * i + 1]);
      if (Math.max(Math.abs(ix - x), Math.abs(iy - y)) < px / 2)
        best = { row: wanted.row[i], x: ix, y: iy, spot, index: -1 };
    });
  }
  return best;
}
