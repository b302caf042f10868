/** Counts of a panel: by class, by the signs of its two scores, beyond its edges; made once each. */

import { HIDDEN } from './rows.js';

/** @typedef {import('./layouts.js').Layout} Layout @typedef {import('./layouts.js').Panel} Panel @typedef {import('./rows.js').Rows} Rows */
/** @typedef {{count: number, classes: Map<number, number>}} Cell */
/** @typedef {{cells: Cell[], classes: Map<number, number>, beyond: [number, number, number, number]}} Counts */

/** @type {WeakMap<Layout, Map<string, Counts>>} */
const counted = new WeakMap();

/** Cells in the order −−, +−, −+, ++ of x and y; beyond left, right, bottom, top. @param {Layout} layout @param {Panel} panel @param {Rows} rows @param {import('../types.js').Range} range @returns {Counts} */
export function countsOf(layout, panel, rows, range) {
  const store = counted.get(layout) ?? new Map();
  counted.set(layout, store);
  const key = `${panel.index} ${layout.revision} ${rows.codesChanged} ${rows.hidden} ${range}`;
  const counts = store.get(key) ?? count(layout, panel, rows, range);
  if (store.size > 400) store.clear();
  store.set(key, counts);
  return counts;
}

/** @param {Layout} layout @param {Panel} panel @param {Rows} rows @param {import('../types.js').Range} range @returns {Counts} */
function count(layout, panel, rows, range) {
  const { codes, flags } = rows;
  const size = codesIn(codes);
  const table = new Uint32Array(4 * size); // of the cells by code
  /** @type {[number, number, number, number]} */
  const beyond = [0, 0, 0, 0];
  for (let i = panel.start; i < panel.start + panel.count; i += 1) {
    const row = layout.rows[i];
    if (flags[row] & HIDDEN) continue;
    const x = layout.xy[2 * i];
    const y = layout.xy[2 * i + 1];
    table[((x > 0 ? 1 : 0) + (y > 0 ? 2 : 0)) * size + codes[row]] += 1;
    if (x < range[0]) beyond[0] += 1;
    else if (x > range[1]) beyond[1] += 1;
    else if (y < range[2]) beyond[2] += 1;
    else if (y > range[3]) beyond[3] += 1;
  }
  const classes = new Map();
  const cells = [0, 1, 2, 3].map((cell) => {
    const present = new Map();
    table.subarray(cell * size, (cell + 1) * size).forEach((many, code) => {
      if (many) {
        present.set(code, many);
        classes.set(code, (classes.get(code) ?? 0) + many);
      }
    });
    return { count: [...present.values()].reduce((sum, many) => sum + many, 0), classes: present };
  });
  return { cells, classes, beyond };
}

/** How many codes there can be. @param {Uint8Array | Uint16Array} codes */
export const codesIn = (codes) => 2 ** (8 * codes.BYTES_PER_ELEMENT);

/** Codes by count, most first. @param {Map<number, number>} classes */
export const ranked = (classes) => [...classes].sort((a, b) => b[1] - a[1]);

/** "mostly 9s and 4s". @param {Cell} cell @param {string[]} names */
export function mostly(cell, names) {
  const said = ranked(cell.classes)
    .filter(([code, many]) => code < names.length && many > 0.25 * cell.count)
    .slice(0, 2);
  return said.length ? `mostly ${said.map(([code]) => plural(names[code])).join(' and ')}` : '';
}

/** @param {string} name */
const plural = (name) => (/^\d$/.test(name) ? `${name}s` : name);
