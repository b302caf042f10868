/** A layout at hand: its panels, and for every point its row and its two coordinates. */

import { setName } from './names.js';

/** @typedef {import('../types.js').Range} Range @typedef {import('../types.js').LayoutMeta} LayoutMeta @typedef {import('./scene.js').Scene} Scene */
/**
 * @typedef {object} Panel
 * @property {number} index @property {string} name @property {number[]} components @property {number[]} axes
 * @property {number} start @property {number} count @property {[number, number]} [cell] @property {number} size
 * @property {boolean} [other] holds the rows of all gathered subspaces
 * @property {number[]} levels @property {Range} range @property {Range} own in units of the scores' buffer
 *
 * @typedef {object} Layout
 * @property {string} name @property {import('../types.js').Kind} kind @property {string} title @property {Panel[]} panels
 * @property {number} spacing @property {Uint32Array} rows row number of each point
 * @property {Int16Array} xy two coordinates of each point
 * @property {number} revision changes with the axes of a panel
 */

const FULL = 32768;

/** @param {Scene} scene @param {string} name @param {Uint32Array} order rows that are listed @param {Uint16Array | null} map @returns {Layout} */
export function buildLayout(scene, name, order, map) {
  const meta = scene.meta.layouts[name];
  const rows = allRows(scene, meta, order);
  const xy = new Int16Array(2 * rows.length);
  let start = 0;
  const panels = meta.panels.map((given, index) => {
    const made = {
      index, name: map ? meta.title : setName(scene.meta, given.components), components: given.components, axes: given.axes,
      start, count: given.count, cell: given.cell, size: given.size ?? 1, levels: given.levels,
      range: /** @type {Range} */ ([-FULL, FULL, -FULL, FULL]), own: /** @type {Range} */ ([-FULL, FULL, -FULL, FULL]),
    };
    start += given.count;
    return made;
  });
  const layout = { name, kind: meta.kind, title: meta.title, panels, spacing: meta.spacing, rows, xy, revision: 0 };
  panels.forEach((panel, i) => {
    if (map) placeMap(rows, xy, map);
    else {
      placeScores(scene, layout, panel);
      const units = [0, 1].map((axis) => (panel.axes[axis] === undefined ? 1 / FULL : scene.meta.score_unit));
      panel.range = /** @type {Range} */ (meta.panels[i].range.flatMap((limits, axis) => limits.map((value) => value / units[axis])));
      panel.own = extent(xy, panel);
    }
  });
  return layout;
}

/** Rows of all panels: the listed ones of each, then the others in the order of their images. @param {Scene} scene @param {LayoutMeta} meta @param {Uint32Array} order */
function allRows(scene, meta, order) {
  const total = meta.panels.reduce((sum, { count }) => sum + count, 0);
  if (meta.panels.every(({ count, listed }) => count === listed)) return order.subarray(0, total); // behind them, those gathered as "other"
  const rows = new Uint32Array(total);
  const listed = new Uint8Array(scene.rows);
  const ends = [];
  let start = 0;
  for (const panel of meta.panels) {
    rows.set(order.subarray(panel.start, panel.start + panel.listed), start);
    ends.push(start + panel.listed);
    start += panel.count;
  }
  if (meta.kind === 'map') {
    for (const row of order) listed[row] = 1;
    for (const row of scene.priority) if (!listed[row]) { rows[ends[0]] = row; ends[0] += 1; }
    return rows;
  }
  const drawn = scene.priority.subarray(0, meta.drawn?.rows ?? scene.rows);
  fillPairs(scene, meta, drawn, rows, ends);
  return rows;
}

/** The given panels of a layout alone, in this order, each with a range of its own. @param {Layout} layout @param {string[]} names @returns {Layout} */
export function some(layout, names) {
  const found = names.flatMap((name) => layout.panels.filter((panel) => panel.name === name));
  if (layout.kind === 'map' || !found.length) return layout;
  const panels = found.map((panel, index) => ({ ...panel, index, cell: undefined, size: 1, range: panel.own }));
  return { ...layout, kind: layout.kind === 'strips' ? 'strips' : 'grid', panels };
}

/** Put each row after the listed ones of the panels of its pairs. @param {Scene} scene @param {LayoutMeta} meta @param {Uint32Array} drawn @param {Uint32Array} rows @param {number[]} ends */
function fillPairs({ components, active, meta: { components: all }, rows: count }, meta, drawn, rows, ends) {
  const none = components instanceof Uint16Array ? 65535 : 255;
  const n = all.length + 1; // the last stands for "no component"
  const panelOf = new Int32Array(n * n).fill(-1);
  meta.panels.forEach(({ components: [a = n - 1, b = n - 1] }, i) => { panelOf[a * n + b] = i; });
  /** @type {Uint32Array[]} rows listed in each panel, as bits */
  const listed = meta.panels.map(() => new Uint32Array(0));
  meta.panels.forEach((panel, i) => {
    listed[i] = new Uint32Array(Math.ceil(count / 32));
    for (let at = ends[i] - panel.listed; at < ends[i]; at += 1) listed[i][rows[at] >> 5] |= 1 << (rows[at] & 31);
  });
  const put = (/** @type {number} */ row, /** @type {number} */ a, /** @type {number} */ b) => {
    const panel = panelOf[a * n + b];
    if (panel < 0 || (listed[panel][row >> 5] >>> (row & 31)) & 1) return;
    rows[ends[panel]] = row;
    ends[panel] += 1;
  };
  for (const row of drawn) {
    const from = row * active;
    let used = 0;
    while (used < active && components[from + used] !== none) used += 1;
    if (used < 2) put(row, used ? components[from] : n - 1, n - 1);
    for (let i = 0; i < used; i += 1) for (let j = i + 1; j < used; j += 1) put(row, components[from + i], components[from + j]);
  }
}

/** @param {Uint32Array} rows @param {Int16Array} xy @param {Uint16Array} map */
export function placeMap(rows, xy, map) {
  for (let i = 0; i < rows.length; i += 1) {
    xy[2 * i] = map[2 * rows[i]] - FULL;
    xy[2 * i + 1] = map[2 * rows[i] + 1] - FULL;
  }
}

/** Write a panel's coordinates for the axes it has now. @param {Scene} scene @param {{rows: Uint32Array, xy: Int16Array}} layout @param {Panel} panel */
export function placeScores(scene, { rows, xy }, panel) {
  const { components, scores, active } = scene;
  const [x = -1, y = -1] = panel.axes;
  for (let i = panel.start; i < panel.start + panel.count; i += 1) {
    const from = rows[i] * active;
    let [a, b] = [x < 0 ? jitter(rows[i], 0x85ebca77) : 0, y < 0 ? jitter(rows[i], 0x9e3779b1) : 0];
    for (let at = from; at < from + active; at += 1) {
      if (components[at] === x) a = scores[at];
      else if (components[at] === y) b = scores[at];
    }
    xy[2 * i] = a;
    xy[2 * i + 1] = b;
  }
}

/** Place of a row on an axis that says nothing: spread evenly and the same each time. @param {number} row @param {number} factor */
const jitter = (row, factor) => ((Math.imul(row, factor) >>> 0) / 4294967296 * 1.6 - 0.8) * FULL;
/** The range of a panel's points with zero inside, padded; far outliers stay beyond its edge. @param {Int16Array} xy @param {Panel} panel @returns {Range} */
export function extent(xy, panel) {
  const found = [0, 1].map((axis) => {
    const step = Math.max(1, Math.floor(panel.count / 4000));
    const sample = [];
    for (let i = panel.start; i < panel.start + panel.count; i += step) sample.push(xy[2 * i + axis]);
    const sorted = Int16Array.from(sample).sort();
    const at = (/** @type {number} */ share) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
    const low = Math.min(0, Math.max(sorted[0] ?? 0, 1.6 * Math.min(0, at(0.005))));
    const high = Math.max(0, Math.min(sorted.at(-1) ?? 1, 1.6 * Math.max(0, at(0.995))));
    const pad = Math.max(1, high - low) * 0.06;
    return [low - pad, high + pad];
  });
  return [found[0][0], found[0][1], found[1][0], found[1][1]];
}

/** Show other components of a panel on its axes. @param {Scene} scene @param {Layout} layout @param {Panel} panel @param {number[]} axes */
export function setAxes(scene, layout, panel, axes) {
  panel.axes = axes;
  placeScores(scene, layout, panel);
  panel.own = extent(layout.xy, panel);
  panel.range = panel.own;
  panel.levels = []; // who has room is found anew
  layout.revision += 1;
}
