/** Panels keep their place in a grid when K or L changes; new ones stand beside those they share components with. */

import { fullest } from '../scene/layouts.js';
import { extentOf } from '../scene/other.js';

/** @typedef {import('../scene/layouts.js').Layout} Layout @typedef {import('../scene/layouts.js').Panel} Panel */

/** @param {Layout} old @param {Layout} layout whose cells are changed */
export function keepCells(old, layout) {
  if (old.kind !== 'grid' || layout.kind !== 'grid') return;
  const [columns, lines] = extentOf(layout);
  const cellOf = new Map(old.panels.map(({ name, cell }) => [name, cell]));
  /** @type {Map<string, Panel>} */
  const taken = new Map();
  /** @type {Panel[]} */
  const others = [];
  for (const panel of layout.panels) {
    const cell = cellOf.get(panel.name);
    if (cell && cell[0] < columns && cell[1] < lines) {
      panel.cell = cell;
      taken.set(`${cell}`, panel);
    } else others.push(panel);
  }
  for (const panel of fullest(others)) {
    let best = -Infinity;
    const wanted = panel.cell ?? [0, 0];
    for (let at = 0; at < columns * lines; at += 1) {
      const cell = /** @type {[number, number]} */ ([at % columns, Math.floor(at / columns)]);
      if (taken.has(`${cell}`)) continue;
      const worth =
        sharedAround(taken, cell, panel) -
        0.01 * Math.hypot(cell[0] - wanted[0], cell[1] - wanted[1]);
      if (worth > best) {
        best = worth;
        panel.cell = cell;
      }
    }
    taken.set(`${panel.cell}`, panel);
  }
}

/** @param {Map<string, Panel>} taken @param {[number, number]} cell @param {Panel} panel */
function sharedAround(taken, [column, line], { components }) {
  let shared = 0;
  for (const [dx, dy] of [
    [-1, 0],
    [1, 0],
    [0, -1],
    [0, 1],
  ]) {
    const beside = taken.get(`${[column + dx, line + dy]}`);
    shared += beside ? beside.components.filter((k) => components.includes(k)).length : 0;
  }
  return shared;
}
