/** A layout at hand: its panels, and for every point its row and its two coordinates. */

import { setName } from './names.js';

/** @typedef {import('../types.js').Range} Range */
/**
 * @typedef {object} Panel
 * @property {number} index @property {string} name @property {number[]} components @property {number[]} axes
 * @property {number} start @property {number} count @property {[number, number] | undefined} cell
 * @property {number[]} levels @property {Range} range @property {Range} own in units of the scores' buffer
 *
 * @typedef {object} Layout
 * @property {string} name @property {import('../types.js').Kind} kind @property {string} title @property {Panel[]} panels
 * @property {Uint32Array} rows row number of each point
 * @property {Int16Array} xy two coordinates of each point
 * @property {number} revision changes with the axes of a panel
 */

const FULL = 32768;

/** @param {import('./scene.js').Scene} scene @param {string} name @param {Uint32Array | null} order @param {Uint16Array | null} map @returns {Layout} */
export function buildLayout(scene, name, order, map) {
  const meta = scene.meta.layouts[name];
  const rows = order ?? Uint32Array.from({ length: scene.rows }, (_, row) => row);
  const xy = new Int16Array(2 * rows.length);
  const unit = map ? 1 / FULL : scene.meta.score_unit;
  const panels = meta.panels.map((given, index) => ({
    index, name: map ? meta.title : setName(scene.meta, given.components), components: given.components ?? [], axes: given.axes ?? [0, 1],
    start: given.start ?? 0, count: given.count ?? rows.length, cell: given.cell, levels: given.levels ?? [],
    range: /** @type {Range} */ ([0, 0, 0, 0]), own: /** @type {Range} */ ([0, 0, 0, 0]),
  }));
  const layout = { name, kind: meta.kind, title: meta.title, panels, rows, xy, revision: 0 };
  panels.forEach((panel, i) => {
    if (map) placeMap(rows, xy, map);
    else placeScores(scene, layout, panel);
    const found = extent(xy, panel);
    const scaled = (/** @type {Range | undefined} */ range) => range && /** @type {Range} */ (range.map((value) => value / unit));
    panel.range = (!map && scaled(meta.panels[i].range)) || found;
    panel.own = (!map && scaled(meta.panels[i].own)) || found;
  });
  return layout;
}

/** @param {Uint32Array} rows @param {Int16Array} xy @param {Uint16Array} map */
function placeMap(rows, xy, map) {
  for (let i = 0; i < rows.length; i += 1) {
    xy[2 * i] = map[2 * rows[i]] - FULL;
    xy[2 * i + 1] = map[2 * rows[i] + 1] - FULL;
  }
}

/** Write a panel's coordinates for the axes it has now. @param {import('./scene.js').Scene} scene @param {{rows: Uint32Array, xy: Int16Array}} layout @param {Panel} panel */
export function placeScores(scene, { rows, xy }, panel) {
  const { components, scores, active } = scene;
  const [x, y] = [panel.components[panel.axes[0]], panel.components[panel.axes[1]] ?? -1];
  for (let i = panel.start; i < panel.start + panel.count; i += 1) {
    const from = rows[i] * active;
    let [a, b] = [0, y < 0 ? spread(rows[i]) : 0];
    for (let at = from; at < from + active; at += 1) {
      if (components[at] === x) a = scores[at];
      else if (components[at] === y) b = scores[at];
    }
    xy[2 * i] = a;
    xy[2 * i + 1] = b;
  }
}

/** Height of a row in a strip of one component: spread evenly and the same each time. @param {number} row */
function spread(row) {
  return (Math.imul(row + 1, 0x9e3779b1) >> 16) * 0.8;
}

/** The range of a panel's points with zero inside, padded; far outliers stay beyond its edge. @param {Int16Array} xy @param {Panel} panel @returns {Range} */
function extent(xy, panel) {
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
