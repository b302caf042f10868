/** Where the panels of a layout stand in the world: triangle, grid, strips, one map, or two columns on a phone. */

import { fullest } from '../scene/layouts.js';
import { around, clamp } from './rect.js';

/** @typedef {import('../types.js').Rect} Rect @typedef {import('../scene/layouts.js').Layout} Layout */
/** @typedef {{layout: Layout, base: number, rects: Rect[], inset: boolean}} Part panels of one layout; `base` is their place in the panel table */
/**
 * @typedef {object} Arrangement
 * @property {Part[]} parts @property {Rect} world what "all panels" shows
 * @property {{component: number, rect: Rect}[]} diagonal @property {Rect | null} free space for title and legend
 * @property {'triangle' | 'grid' | 'strips' | 'map' | 'columns'} kind
 */

const CARD = 0.935; // of a cell

/** @param {Layout} layout @param {Layout | null} map shown in the free half of a triangle @param {number} components @param {Rect} view @returns {Arrangement} */
export function arrange(layout, map, components, view) {
  const aspect = view.w / Math.max(1, view.h);
  if (layout.kind === 'map') return plain('map', layout, [{ x: 0, y: 0, w: aspect, h: 1 }]);
  if (view.w < 560 && layout.panels.length > 2 && layout.kind !== 'strips')
    return columns(layout, view);
  if (layout.kind === 'triangle') return triangle(layout, map, components, view);
  if (layout.kind === 'strips') {
    const rects = layout.panels.map((_, i) => ({
      x: 0,
      y: i * 1.06,
      w: Math.max(3, aspect * layout.panels.length),
      h: 1,
    }));
    return plain('strips', layout, rects);
  }
  const across = columnsFor(layout.panels.length, aspect);
  const rects = layout.panels.map(({ cell, size }, i) => {
    const [column, row] = cell ?? [i % across, Math.floor(i / across)];
    return inCell(column, row, size);
  });
  return plain('grid', layout, rects);
}

/** Panels at their places, with nothing beside them. @param {Arrangement['kind']} kind @param {Layout} layout @param {Rect[]} rects @param {Rect} [world] @returns {Arrangement} */
const plain = (kind, layout, rects, world = around(rects)) => ({
  kind,
  parts: [{ layout, base: 0, rects, inset: false }],
  world,
  diagonal: [],
  free: null,
});

/** Columns that make so many squares the largest. @param {number} panels @param {number} aspect of the view */
function columnsFor(panels, aspect) {
  const side = (/** @type {number} */ columns) =>
    Math.min(aspect / columns, 1 / Math.ceil(panels / columns));
  let best = 1;
  for (let columns = 2; columns <= panels; columns += 1)
    if (side(columns) > side(best)) best = columns;
  return best;
}

const WORDS = 218; // px of height that title and legend need
const TOOLS = 366; // px of width
const NARROW = 210; // px of width below which only the legend is shown, above the map

/** Row a, column b; component pictures on the diagonal; title, legend and map in the empty half. @param {Layout} layout @param {Layout | null} map @param {number} count @param {Rect} view @returns {Arrangement} */
function triangle(layout, map, count, view) {
  const rects = layout.panels.map(({ cell: [column, row] = [0, 0], components }) =>
    inCell(column, row, components.length > 1 ? 1 : 0.8),
  );
  const tall = count + 0.25;
  const extra = clamp((view.w / Math.max(1, view.h)) * tall - count, 0.1, 0.75 * count);
  const k = Math.min(view.h / tall, view.w / (count + extra)); // px a cell when all panels are shown
  const narrow = extra * k < NARROW;
  const least = narrow ? 0 : Math.min(count - 3, Math.ceil(WORDS / k));
  const top = Math.min(count - 2, Math.max(1, least, Math.ceil((count - extra) / 2)));
  const diagonal = Array.from({ length: count }, (_, i) => ({
    component: i,
    rect: inCell(i, i, 0.8),
  }));
  const world = { x: -extra, y: 0, w: count + extra, h: tall };
  const made = plain('triangle', layout, rects, world);
  if (map && count > 3) {
    const beside = (count - 0.8 - top) * k > TOOLS; // there is room for the tools between map and diagonal
    const rect = {
      x: -extra + 0.06,
      y: top + 0.1,
      w: extra + top - 0.2,
      h: count - top - (beside ? 0 : 56 / k),
    };
    made.parts.push({ layout: map, base: layout.panels.length, rects: [rect], inset: true });
  }
  const from = narrow ? Math.max(0, top - 1.9) : 0;
  const free = { x: -extra + 0.06, y: from + 0.06, w: extra + from - 0.1, h: top - from - 0.1 };
  return { ...made, diagonal, free };
}

/** Two columns, the fullest first. @param {Layout} layout @param {Rect} view @returns {Arrangement} */
function columns(layout, view) {
  /** @type {Rect[]} */
  const rects = [];
  fullest(layout.panels).forEach(({ index }, i) => {
    rects[index] = inCell(i % 2, Math.floor(i / 2), 1);
  });
  const rows = Math.ceil(rects.length / 2);
  const h = Math.min(rows, (2 * view.h) / view.w);
  return plain('columns', layout, rects, { x: 0, y: 0, w: 2, h });
}

/** @param {number} column @param {number} row @param {number} size @returns {Rect} */
function inCell(column, row, size) {
  const side = CARD * size;
  return { x: column + (1 - side) / 2, y: row + (1 - side) / 2, w: side, h: side };
}
