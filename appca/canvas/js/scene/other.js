/** Subspaces without a panel of their own: gathered in one, and given panels when they are looked for. */

import { blank, extent, placeMap, placeScores } from './layouts.js';
import { setName } from './names.js';

/** @typedef {import('./scene.js').Scene} Scene @typedef {import('./layouts.js').Layout} Layout @typedef {import('./layouts.js').Panel} Panel */
/** @typedef {{components: number[], start: number, count: number}} Gathered where its rows are listed */

const MOST = 60; // panels that are opened at a time

/** The subspaces gathered, the fullest first, as the order lists them. @param {Scene} scene @param {string} name @returns {Promise<Gathered[]>} */
export async function gatheredOf(scene, name) {
  const { other } = scene.meta.layouts[name];
  if (!other) return [];
  const order = await scene.array(`order.${name}`, 'u4');
  const { components, active, meta } = scene;
  /** @type {Gathered[]} */
  const groups = [];
  const same = (/** @type {number} */ a, /** @type {number} */ b) => {
    for (let i = 0; i < active; i += 1)
      if (components[a * active + i] !== components[b * active + i]) return false;
    return true;
  };
  for (let at = other.start; at < other.start + other.count; at += 1) {
    const last = groups.at(-1);
    if (last && same(order[at], order[last.start])) {
      last.count += 1;
      continue;
    }
    const used = components.subarray(order[at] * active, (order[at] + 1) * active);
    groups.push({
      components: [...used].filter((k) => k < meta.components.length),
      start: at,
      count: 1,
    });
  }
  return groups;
}

/** Those that have all of some components. @param {Gathered[]} gathered @param {number[]} wanted */
export const having = (gathered, wanted) =>
  gathered.filter(({ components }) => wanted.every((k) => components.includes(k))).slice(0, MOST);

/** Add the panel of all gathered rows, on the first map that there is. @param {Scene} scene @param {Layout} layout */
export async function addOther(scene, layout) {
  const { other } = scene.meta.layouts[layout.name];
  if (!other) return;
  const order = await scene.array(`order.${layout.name}`, 'u4');
  const map = Object.keys(scene.meta.layouts).find(
    (name) => scene.meta.layouts[name].kind === 'map',
  );
  const tiles = Uint32Array.from(
    order.subarray(other.start, other.start + other.count),
    (/** @type {number} */ row) => scene.tile[row],
  ).sort();
  const rows = tiles.map((tile) => scene.priority[tile]); // a prefix is a fair sample
  const panel = append(layout, [], rows, lastCell(layout));
  Object.assign(panel, { name: 'Other', other: true });
  if (!map) placeScores(scene, layout, panel);
  else {
    placeMap(rows, layout.xy.subarray(2 * panel.start), await scene.array(`map.${map}`, 'u2'));
    panel.range = panel.extent = extent(layout.xy, panel);
  }
}

/** The layout with panels for some of the gathered subspaces below. @param {Scene} scene @param {Layout} layout @param {Gathered[]} gathered @returns {Promise<Layout>} */
export async function withPanels(scene, layout, gathered) {
  if (!gathered.length) return layout;
  const order = await scene.array(`order.${layout.name}`, 'u4');
  const made = { ...layout, panels: [...layout.panels] };
  const [columns, bottom] = extentOf(made);
  gathered.forEach(({ components, start, count }, i) => {
    const panel = append(made, components, order.subarray(start, start + count), [
      i % columns,
      bottom + Math.floor(i / columns),
    ]);
    panel.name = setName(scene.meta, components);
    panel.axes = widest(scene, panel, made.rows);
    placeScores(scene, made, panel);
    panel.range = panel.extent = extent(made.xy, panel);
  });
  return made;
}

/** The two components that vary most in a panel, the first on x. @param {Scene} scene @param {Panel} panel @param {Uint32Array} rows */
function widest(scene, { components, start, count }, rows) {
  const power = components.map((k) =>
    rows.subarray(start, start + count).reduce((sum, row) => sum + scene.score(row, k) ** 2, 0),
  );
  return [...components.keys()]
    .sort((a, b) => power[b] - power[a])
    .slice(0, 2)
    .map((i) => components[i]);
}

/** @param {Layout} layout @param {number[]} components @param {Uint32Array} rows @param {[number, number]} cell @returns {Panel} */
function append(layout, components, rows, cell) {
  const start = layout.rows.length;
  const all = new Uint32Array(start + rows.length);
  const xy = new Int16Array(2 * all.length);
  all.set(layout.rows);
  all.set(rows, start);
  xy.set(layout.xy);
  Object.assign(layout, { rows: all, xy });
  const panel = { ...blank(layout.panels.length, components, start, rows.length), cell };
  layout.panels.push(panel);
  return panel;
}

/** Columns and rows of a grid. @param {Layout} layout */
export const extentOf = ({ panels }) =>
  [0, 1].map((axis) => 1 + Math.max(0, ...panels.map(({ cell }) => cell?.[axis] ?? 0)));

/** The last free cell of a grid, else the first of another row. @param {Layout} layout @returns {[number, number]} */
function lastCell(layout) {
  const [columns, lines] = extentOf(layout);
  const taken = new Set(layout.panels.map(({ cell }) => `${cell}`));
  for (let at = columns * lines - 1; at >= columns * (lines - 1); at -= 1) {
    const cell = /** @type {[number, number]} */ ([at % columns, Math.floor(at / columns)]);
    if (!taken.has(`${cell}`)) return cell;
  }
  return [0, lines];
}
