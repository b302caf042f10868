/** A loaded layout: its panels, and the row and two coordinates of every point. An extra panel gathers the rows of subspaces without their own panel. */

import { setName } from './names.js';

const FULL = 32768;

/** Sort panels by their number of rows, largest first. @param {Panel[]} panels */
export const fullest = (panels) => [...panels].sort((a, b) => b.count - a.count);

/** Create a panel without a name, axes and a position. @param {number} index @param {number[]} components @param {number} start @param {number} count @returns {Panel} */
function blank(index, components, start, count) {
  const range = /** @type {Bounds} */ ([-FULL, FULL, -FULL, FULL]);
  const place = { index, components, start, count, name: '', axes: [], size: 1, levels: [] };
  return { ...place, range, extent: range };
}

/** @param {Scene} scene @param {string} name @param {Uint32Array} order listed rows of all panels @param {Uint16Array | null} map @returns {Layout} */
export function buildLayout(scene, name, order, map) {
  const meta = scene.meta.layouts[name];
  const { kind, title, spacing } = meta;
  const unit = scene.meta.score_unit;
  const xy = new Int16Array(2 * meta.panels.reduce((sum, { count }) => sum + count, 0));
  const rows = allRows(scene, meta, order, xy);
  const filled = !map && rows.buffer !== order.buffer;
  if (map) placeMap(rows, xy, map);
  let start = 0;
  const panels = meta.panels.map((about, index) => {
    const { components, count, axes, cell, size = 1, levels } = about;
    const called = map ? title : setName(scene.meta, components);
    start += count;
    const place = blank(index, components, start - count, count);
    const panel = { ...place, name: called, axes, cell, size, levels };
    if (map) return panel;
    if (!filled || axes.length < 2) placeScores(scene, { rows, xy }, panel);
    const range = about.range.flatMap((limits, axis) =>
      limits.map((value) => value / (axes[axis] === undefined ? 1 / FULL : unit)),
    );
    return { ...panel, range: /** @type {Bounds} */ (range), extent: extent(xy, panel) };
  });
  const feet = Boolean(meta.axes) || (kind === 'grid' && scene.active > 1);
  return { name, kind, title, panels, spacing, rows, xy, feet, axes: meta.axes, revision: 0 };
}

/** Return the rows of all panels: each panel's listed rows, then its other rows in image order. @param {Scene} scene @param {LayoutMeta} meta @param {Uint32Array} order @param {Int16Array} xy filled for rows assigned to pairs */
function allRows(scene, meta, order, xy) {
  const total = xy.length / 2;
  if (meta.panels.every(({ count, listed }) => count === listed)) return order.subarray(0, total); // the gathered rows are after them
  const rows = new Uint32Array(total);
  let start = 0;
  const ends = meta.panels.map((panel) => {
    rows.set(order.subarray(panel.start, panel.start + panel.listed), start);
    start += panel.count;
    return start - panel.count + panel.listed;
  });
  if (meta.kind === 'map') {
    const listed = new Uint8Array(scene.rows);
    for (const row of order) listed[row] = 1;
    const others = scene.priority.filter((row) => !listed[row]);
    rows.set(others, ends[0]);
  } else fillPairs(scene, meta, rows, xy, ends);
  return rows;
}

/** Return a layout of only the given panels, in this order, each with its own range. @param {Layout} layout @param {string[]} names @returns {Layout} */
export function some(layout, names) {
  const wanted = names.flatMap((name) => layout.panels.filter((panel) => panel.name === name));
  if (layout.kind === 'map' || !wanted.length) return layout;
  const panels = wanted.map((panel, index) => ({ ...panel, size: 1, index, range: panel.extent }));
  return { ...layout, kind: layout.kind === 'strips' ? 'strips' : 'grid', panels };
}

/** Append each row, with its two scores, to the panels of its pairs, after their listed rows; read each row only once. @param {Scene} scene @param {LayoutMeta} meta @param {Uint32Array} rows @param {Int16Array} xy @param {number[]} ends of each panel's listed rows */
function fillPairs(scene, meta, rows, xy, ends) {
  const { components, scores, active, tile } = scene;
  const drawn = scene.priority.subarray(0, meta.drawn?.rows ?? scene.rows);
  const none = components instanceof Uint16Array ? 65535 : 255;
  const n = scene.meta.components.length + 1; // the last number means "no component"
  const panelOf = new Int32Array(n * n).fill(-1);
  meta.panels.forEach(({ components: [a = n - 1, b = n - 1] }, i) => (panelOf[a * n + b] = i));
  const slots = Array.from({ length: active }, (_, i) => i);
  const firsts = Uint8Array.from(slots.flatMap((i) => slots.slice(i + 1).map(() => i)));
  const seconds = Uint8Array.from(slots.flatMap((i) => slots.slice(i + 1)));
  const pairs = Math.max(1, firsts.length); // pairs of a row's slots; a row with fewer than two components has the first pair
  const panelAt = (/** @type {number} */ row, /** @type {number} */ pair) => {
    const from = row * active;
    const b = active > 1 ? components[from + seconds[pair]] : none;
    if (b !== none) return panelOf[components[from + firsts[pair]] * n + b];
    return pair ? -1 : panelOf[(components[from] === none ? n - 1 : components[from]) * n + n - 1];
  };
  const turned = Uint8Array.from(meta.panels, ({ axes, components: [a] }) => +(axes[0] !== a));
  /** @param {number} at @param {number} row @param {number} panel @param {number} pair */
  const place = (at, row, panel, pair) => {
    xy[2 * at + turned[panel]] = scores[row * active + firsts[pair]];
    xy[2 * at + 1 - turned[panel]] = scores[row * active + seconds[pair]];
  };
  const listed = new Uint8Array(drawn.length * pairs);
  meta.panels.forEach((panel, i) => {
    for (let at = ends[i] - panel.listed; at < ends[i]; at += 1) {
      let pair = 0;
      while (pair < pairs && panelAt(rows[at], pair) !== i) pair += 1;
      if (pair === pairs) continue; // the row is not in this panel
      listed[tile[rows[at]] * pairs + pair] = 1;
      place(at, rows[at], i, pair);
    }
  });
  for (let i = 0; i < drawn.length; i += 1)
    for (let pair = 0; pair < pairs; pair += 1) {
      const panel = panelAt(drawn[i], pair);
      if (panel < 0 || listed[i * pairs + pair]) continue;
      rows[ends[panel]] = drawn[i];
      place(ends[panel], drawn[i], panel, pair);
      ends[panel] += 1;
    }
}

/** @param {Uint32Array} rows @param {Int16Array} xy @param {Uint16Array} map */
function placeMap(rows, xy, map) {
  for (let i = 0; i < rows.length; i += 1) {
    xy[2 * i] = map[2 * rows[i]] - FULL;
    xy[2 * i + 1] = map[2 * rows[i] + 1] - FULL;
  }
}

/** Write a panel's coordinates for its current axes. @param {Scene} scene @param {{rows: Uint32Array, xy: Int16Array}} layout @param {Panel} panel */
function placeScores(scene, { rows, xy }, panel) {
  const { components, scores, active } = scene;
  const [x = -1, y = -1] = panel.axes;
  for (let i = panel.start; i < panel.start + panel.count; i += 1) {
    const from = rows[i] * active;
    let a = x < 0 ? jitter(rows[i], 0x85ebca77) : 0;
    let b = y < 0 ? jitter(rows[i], 0x9e3779b1) : 0;
    for (let at = from; at < from + active; at += 1) {
      if (components[at] === x) a = scores[at];
      else if (components[at] === y) b = scores[at];
    }
    xy[2 * i] = a;
    xy[2 * i + 1] = b;
  }
}

/** Return a row's fixed position on an axis without meaning; positions are evenly spread. @param {number} row @param {number} factor */
const jitter = (row, factor) => (((Math.imul(row, factor) >>> 0) / 4294967296) * 1.6 - 0.8) * FULL;

/** Return the padded range of a panel's points, including zero but not extreme outliers. @param {Int16Array} xy @param {Panel} panel @returns {Bounds} */
function extent(xy, panel) {
  const step = Math.max(1, Math.floor(panel.count / 4000));
  const bounds = [0, 1].flatMap((axis) => {
    const sorted = new Int16Array(Math.ceil(panel.count / step));
    for (let i = 0; i < sorted.length; i += 1) sorted[i] = xy[2 * (panel.start + i * step) + axis];
    sorted.sort();
    const at = (/** @type {number} */ share) =>
      sorted[Math.round(share * (sorted.length - 1))] ?? 0;
    const low = Math.min(0, Math.max(sorted[0] ?? 0, 1.6 * Math.min(0, at(0.005))));
    const high = Math.max(0, Math.min(sorted.at(-1) ?? 1, 1.6 * Math.max(0, at(0.995))));
    const pad = Math.max(1, high - low) * 0.06;
    return [low - pad, high + pad];
  });
  return /** @type {Bounds} */ (bounds);
}

/** Show other components of a panel on its axes. @param {Scene} scene @param {Layout} layout @param {Panel} panel @param {number[]} axes */
export function setAxes(scene, layout, panel, axes) {
  panel.axes = axes;
  placeScores(scene, layout, panel);
  panel.extent = extent(layout.xy, panel);
  panel.range = panel.extent;
  panel.levels = []; // forces a new placement of images
  layout.revision += 1;
}

/** @typedef {{components: number[], start: number, count: number}} Gathered a subspace and the position of its rows in the list */

const MOST = 60; // maximum number of panels opened at a time

/** Return the gathered subspaces in list order, largest first. @param {Scene} scene @param {string} name @returns {Promise<Gathered[]>} */
export async function gatheredOf(scene, name) {
  const { components, active, meta } = scene;
  const { start, count } = meta.layouts[name].other ?? { start: 0, count: 0 };
  const order = await scene.array(`order.${name}`, 'u4');
  /** @type {Gathered[]} */ const groups = [];
  for (let at = start; at < start + count; at += 1) {
    const last = groups.at(-1);
    const of = order[last?.start ?? at] * active;
    const used = components.subarray(order[at] * active, (order[at] + 1) * active);
    if (last && used.every((k, i) => k === components[of + i])) last.count += 1;
    else {
      const known = [...used].filter((k) => k < meta.components.length);
      groups.push({ components: known, start: at, count: 1 });
    }
  }
  return groups;
}

/** Return the subspaces that contain all wanted components. @param {Gathered[]} gathered @param {number[]} wanted */
export const having = (gathered, wanted) =>
  gathered.filter(({ components }) => wanted.every((k) => components.includes(k))).slice(0, MOST);

/** Add the panel of all gathered rows, on the first available map. @param {Scene} scene @param {Layout} layout */
export async function addOther(scene, layout) {
  const { layouts } = scene.meta;
  const { other } = layouts[layout.name];
  if (!other) return;
  /** @type {Uint32Array} */ const order = await scene.array(`order.${layout.name}`, 'u4');
  const gathered = order.subarray(other.start, other.start + other.count);
  const tiles = gathered.map((row) => scene.tile[row]).sort();
  const rows = tiles.map((tile) => scene.priority[tile]); // any prefix is a random sample
  const panel = append(layout, [], rows);
  Object.assign(panel, { name: 'Other', other: true });
  const map = Object.keys(layouts).find((name) => layouts[name].kind === 'map');
  if (!map) return placeScores(scene, layout, panel);
  placeMap(rows, layout.xy.subarray(2 * panel.start), await scene.array(`map.${map}`, 'u2'));
  panel.range = panel.extent = extent(layout.xy, panel);
}

/** Return the layout with additional panels for some gathered subspaces. @param {Scene} scene @param {Layout} layout @param {Gathered[]} gathered @returns {Promise<Layout>} */
export async function withPanels(scene, layout, gathered) {
  if (!gathered.length) return layout;
  const order = await scene.array(`order.${layout.name}`, 'u4');
  const made = { ...layout, panels: [...layout.panels] };
  gathered.forEach(({ components, start, count }) => {
    const rows = order.subarray(start, start + count);
    const panel = append(made, components, rows);
    panel.name = setName(scene.meta, components);
    panel.axes = widest(scene, components, rows);
    placeScores(scene, made, panel);
    panel.range = panel.extent = extent(made.xy, panel);
  });
  return made;
}

/** Return the two components with the largest variance among some rows, the first for x. @param {Scene} scene @param {number[]} components @param {Uint32Array} rows */
function widest(scene, components, rows) {
  const power = new Map(
    components.map((k) => [k, rows.reduce((sum, row) => sum + scene.score(row, k) ** 2, 0)]),
  );
  return components.toSorted((a, b) => (power.get(b) ?? 0) - (power.get(a) ?? 0)).slice(0, 2);
}

/** @param {Layout} layout @param {number[]} components @param {Uint32Array} rows @returns {Panel} */
function append(layout, components, rows) {
  const start = layout.rows.length;
  const all = new Uint32Array(start + rows.length);
  const xy = new Int16Array(2 * all.length);
  all.set(layout.rows);
  all.set(rows, start);
  xy.set(layout.xy);
  Object.assign(layout, { rows: all, xy });
  const panel = blank(layout.panels.length, components, start, rows.length);
  layout.panels.push(panel);
  return panel;
}
