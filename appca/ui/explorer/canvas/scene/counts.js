/** Counts of a panel: by class, by the signs of its two scores, beyond its edges; made once each. */

import { HIDDEN } from './rows.js';

/** @typedef {import('./layouts.js').Layout} Layout @typedef {import('./layouts.js').Panel} Panel @typedef {import('./rows.js').Rows} Rows */
/** @typedef {{count: number, classes: Map<number, number>}} Cell */
/** @typedef {{cells: Cell[], classes: Map<number, number>, beyond: [number, number, number, number]}} Counts */

/** @type {WeakMap<Layout, Map<string, Counts>>} */
const known = new WeakMap();

/** Cells in the order −−, +−, −+, ++ of x and y; beyond left, right, bottom, top. @param {Layout} layout @param {Panel} panel @param {Rows} rows @param {import('../types.js').Range} range @returns {Counts} */
export function countsOf(layout, panel, rows, range) {
  const store = known.get(layout) ?? new Map();
  known.set(layout, store);
  const key = `${panel.index} ${layout.revision} ${rows.codesChanged} ${rows.hidden} ${range}`;
  const found = store.get(key) ?? count(layout, panel, rows, range);
  if (store.size > 400) store.clear();
  store.set(key, found);
  return found;
}

/** @param {Layout} layout @param {Panel} panel @param {Rows} rows @param {import('../types.js').Range} range @returns {Counts} */
function count(layout, panel, rows, range) {
  const cells = [0, 1, 2, 3].map(() => ({ count: 0, classes: new Map() }));
  const classes = new Map();
  /** @type {[number, number, number, number]} */
  const beyond = [0, 0, 0, 0];
  for (let i = panel.start; i < panel.start + panel.count; i += 1) {
    const row = layout.rows[i];
    if (rows.flags[row] & HIDDEN) continue;
    const [x, y, code] = [layout.xy[2 * i], layout.xy[2 * i + 1], rows.codes[row]];
    const cell = cells[(x > 0 ? 1 : 0) + (y > 0 ? 2 : 0)];
    cell.count += 1;
    cell.classes.set(code, (cell.classes.get(code) ?? 0) + 1);
    classes.set(code, (classes.get(code) ?? 0) + 1);
    if (x < range[0]) beyond[0] += 1;
    else if (x > range[1]) beyond[1] += 1;
    else if (y < range[2]) beyond[2] += 1;
    else if (y > range[3]) beyond[3] += 1;
  }
  return { cells, classes, beyond };
}

/** Codes by count, most first. @param {Map<number, number>} classes */
export const ranked = (classes) => [...classes].sort((a, b) => b[1] - a[1]);

/** "mostly 9s and 4s". @param {Cell} cell @param {string[]} names */
export function mostly(cell, names) {
  const said = ranked(cell.classes).filter(([code, many]) => code < names.length && many > 0.25 * cell.count).slice(0, 2);
  return said.length ? `mostly ${said.map(([code]) => plural(names[code])).join(' and ')}` : '';
}

/** @param {string} name */
const plural = (name) => (/^\d$/.test(name) ? `${name}s` : name);
