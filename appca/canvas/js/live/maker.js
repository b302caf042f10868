/** Builds the scene of a fit like appca/canvas/scene.py: panels, ranges, colours and pictures. */

import { clamp, mix } from '../layout/geometry.js';
import { spreadOrder } from '../scene/scene.js';

const FULL = 32767;
const [MOST_PANELS, MOST_POINTS, AT_FIRST, MOST_COLUMNS] = [240, 2_000_000, 60, 40];
const [SIDE, GREY, COLOUR] = [2048, 4096, 1024]; // side of a sheet in px; maximum number of grey and colour images on it
const spacing = 0.5;

/** @typedef {{meta: any, buffers: Record<string, any>}} Part of a scene */

/** Return the lowest and highest value, without a share of the values at each end. @param {ArrayLike<number>} values @param {number} share */
function endsOf(values, share) {
  const sorted = Float64Array.from(values).sort();
  const at = Math.ceil(share * (sorted.length - 1));
  return [sorted[at] ?? 0, sorted[sorted.length - 1 - at] ?? 1];
}

/** @template {Values} T @param {T} values row by row @param {number} d @param {number} j @returns {T} */
const columnOf = (values, d, j) => /** @type {any} */ (values.filter((_, at) => at % d === j));

/** Return the central range, including zero and a margin. @param {ArrayLike<number>} values */
function tails(values) {
  const [least, most] = endsOf(values, 0);
  const [some, many] = endsOf(values, values.length < 20 ? 0 : 0.005);
  const low = Math.min(Math.max(least, 1.6 * some), 0);
  const high = Math.max(Math.min(most, 1.6 * many), 0);
  const width = high > low ? high - low : 2;
  return [low - 0.06 * width, high + 0.06 * width];
}

/** @param {ArrayLike<number>} values @param {string} title @param {PageLook} look */
function quantity(values, title, { ramp, missing }) {
  let limits = endsOf(values, 0.005);
  if (!(limits[1] > limits[0])) limits = endsOf(values, 0);
  const [low, high] = limits;
  const step = (ramp.length - 1) / (high - low || 1);
  const codes = Uint8Array.from(values, (v) => Math.round((clamp(v, low, high) - low) * step));
  const colouring = { kind: 'quantity', title, names: [], table: [...ramp, missing], limits };
  return { codes, colouring };
}

/** Return the parts that do not depend on the fit: colours, texts, images, and the PCA map. @param {PageData} data @param {Float64Array} scores n x 2 @param {PageLook} look @param {number} total sum of all squares @returns {Part} */
export function rowsPart(data, scores, look, total) {
  const { n, labels, shape, names, ids, values, d } = data;
  /** @type {Part} */ const { meta, buffers } = { meta: { colourings: {} }, buffers: {} };
  const lines = labels.map(({ name, names: classes, codes }, i) => {
    const many = classes.length > look.few.length;
    const colours = many ? look.many : look.few;
    const table = [...classes.map((_, code) => colours[code % colours.length]), look.missing];
    const shapes = many && [...table.keys()].map((code) => look.shapes[Math.floor(code / 10) % 5]);
    const [key, buffer] = [`label:${name}`, `hover.${i}`];
    const Codes = classes.length < 255 ? Uint8Array : Uint16Array;
    buffers[`codes.${key}`] = buffers[buffer] = Codes.from(codes);
    const about = { kind: 'category', title: name, names: classes };
    meta.colourings[key] = { ...about, table, ...(shapes && { shapes }) };
    return { ...about, buffer };
  });
  for (const [j, name] of names?.slice(0, MOST_COLUMNS).entries() ?? []) {
    const { codes, colouring } = quantity(columnOf(values, d, j), name, look);
    buffers[`codes.feature:${j}`] = codes;
    meta.colourings[`feature:${j}`] = colouring;
  }
  if (ids) buffers['hover.ids'] = new TextEncoder().encode(JSON.stringify(ids));
  const ends = [0, 1].map((axis) => endsOf(columnOf(scores, 2, axis), 0));
  const half = 0.53 * Math.max(...ends.map(([low, high]) => high - low)) || 1;
  const limits = ends.map(([low, high]) => [(low + high) / 2 - half, (low + high) / 2 + half]);
  const place = (/** @type {number} */ score, /** @type {number} */ at) =>
    Math.round((65535 * (score - limits[at % 2][0])) / (2 * half));
  buffers['map.pca'] = Uint16Array.from(scores, place);
  buffers['order.pca'] = new Uint32Array(0);
  const panels = [{ ...panelOf([], n, [0, 0], limits), axes: [0, 1] }];
  const sums = [0, 1].map((axis) => columnOf(scores, 2, axis).reduce((sum, v) => sum + v * v, 0));
  const axes = sums.map((sum, k) => [`PC ${k + 1} (${((100 * sum) / total).toFixed(1)}%)`]);
  const pca = { kind: 'map', title: 'PCA', axes, spacing, limits, panels };
  const row = shape ? 'image' : 'row';
  const hover = n > 100_000 ? null : { ids: ids && 'hover.ids', lines };
  const sheets = shape ? sheetsOf(data) : undefined;
  Object.assign(meta, { hover, sheets, layouts: { pca }, words: { row, rows: `${row}s` } });
  return { meta: { ...meta, format: 1, rows: n, doubt_below: 128 }, buffers };
}

/** Return the side of a cell: a power of two with space for a tile and a seam. @param {number[]} tile */
const cellOf = ([h, w]) => 1 << Math.max(3, Math.ceil(Math.log2(Math.max(h, w) + 2)));

/** @param {PageData} data */
function sheetsOf(data) {
  const [h, w, channels = 1] = data.shape ?? [];
  const [tile, cell] = [[h, w, channels], cellOf([h, w])];
  const per_sheet = Math.min((SIDE / cell) ** 2, channels > 1 ? COLOUR : GREY);
  const columns = Math.min(SIDE / cell, 1 << Math.ceil(Math.log2(Math.sqrt(per_sheet))));
  const isInk = ['digits', 'mnist'].includes(data.provenance.source ?? ''); // as in sheets.py
  const [count, style] = [Math.ceil(data.n / per_sheet), isInk ? 'ink' : 'photo'];
  return { tile, cell, columns, per_sheet, count, style };
}

/** Return the pixels of a sheet: a tile in the middle of each cell, with its edge extended to the edge of the cell. @param {number} count @param {number} cell @param {number} columns @param {number[]} tile @param {(pixels: Uint8ClampedArray, to: number, at: number, pixel: number) => void} paint one pixel */
function cells(count, cell, columns, [h, w], paint) {
  const [width, height] = [cell * Math.min(columns, count), cell * Math.ceil(count / columns)];
  const pixels = new Uint8ClampedArray(4 * width * height).fill(255);
  const [top, left] = [(cell - h) >> 1, (cell - w) >> 1];
  for (let at = 0; at < count; at += 1)
    for (let y = 0; y < cell; y += 1)
      for (let x = 0; x < cell; x += 1) {
        const to = (Math.floor(at / columns) * cell + y) * width + (at % columns) * cell + x;
        const pixel = clamp(y - top, 0, h - 1) * w + clamp(x - left, 0, w - 1);
        paint(pixels, 4 * to, at, pixel);
      }
  return { width, height, pixels };
}

/** Draw a sheet of images. @param {PageData} data @param {number} number */
export function sheet(data, number) {
  const { tile, cell, columns, per_sheet: per } = sheetsOf(data);
  const order = spreadOrder(data.n).subarray(number * per, (number + 1) * per);
  const { values, d, divide } = data;
  const channels = tile[2];
  return cells(order.length, cell, columns, tile, (pixels, to, at, pixel) => {
    const from = order[at] * d + pixel * channels;
    for (let c = 0; c < 3; c += 1)
      pixels[to + c] = (values[from + (channels > 1 ? c : 0)] * 255) / divide;
  });
}

/** Draw the components for the light theme, then for the dark theme. @param {number[]} shape @param {FitState} state @param {PageLook} look */
function pictures([h, w, channels = 1], { W, latent }, look) {
  const K = latent.length;
  const value = (/** @type {number} */ k, /** @type {number} */ pixel) => {
    let sum = 0;
    for (let c = 0; c < channels; c += 1) sum += W[(pixel * channels + c) * K + k];
    return sum;
  };
  const most = Array.from(latent, (_, k) => {
    let size = 1e-300;
    for (let pixel = 0; pixel < h * w; pixel += 1) size = Math.max(size, Math.abs(value(k, pixel)));
    return size;
  });
  const [cell, tile] = [cellOf([h, w]), [h, w, 3]];
  const columns = Math.min(SIDE / cell, 2 * K);
  const made = cells(2 * K, cell, columns, tile, (pixels, to, at, pixel) => {
    const share = value(at % K, pixel) / most[at % K];
    const [low, zero, high] = at < K ? look.light : look.dark;
    const end = share < 0 ? low : high;
    const mixed = zero.map((ground, c) => mix(ground, end[c], Math.abs(share)));
    pixels.set(mixed, to);
  });
  return { ...made, header: { tile, cell, columns } };
}

/** @param {number[]} components @param {number} count @param {number[]} cell @param {number[][]} range */
function panelOf(components, count, cell, range) {
  const axes = [...components].reverse();
  return { components, axes, start: 0, listed: 0, count, cell, levels: [], range };
}

/** Return the parts of a scene that depend on the fit. @param {PageData} data @param {FitState} state with the components in the order shown @param {Described} said @param {PageLook} look @returns {Part & {pictures?: ReturnType<typeof pictures>}} */
export function fitPart({ n, names, shape }, state, said, look) {
  const { K, L, active, membership } = said;
  const [slots, values] = [new Uint8Array(n * L), new Float32Array(n * L)];
  for (let from = 0, at = 0; from < n * K; from += 1) {
    if (!active[from]) continue;
    slots[at] = from % K;
    values[at++] = said.scores[from];
  }
  const sizes = values.map(Math.abs);
  const [, most] = endsOf(sizes, 0);
  const unit = (Math.min(most, 4 * endsOf(sizes, 0.001)[1]) || most || FULL) / FULL;
  const scores = Int16Array.from(values, (v) => clamp(Math.round(v / unit), -FULL, FULL));
  const { first, layouts, order } = layoutsOf({ n, K, L, slots, values, rows: spreadOrder(n) });
  const { codes, colouring } = quantity(membership, 'Membership', look);
  const components = Array.from(state.latent, (tau2, k) => {
    const weights = names?.map((name, j) => ({ name, weight: state.W[j * K + k] })) ?? [];
    weights.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight)).splice(4);
    const columns = weights.map(({ name, weight }) => [name, weight / Math.abs(weights[0].weight)]);
    const spread = Math.sqrt((tau2 * state.noise) / (tau2 + state.noise));
    return { number: k + 1, columns, spread };
  });
  const drawn = shape ? pictures(shape, state, look) : undefined;
  const sized = { n_active: L, most_used: L, score_unit: unit, first, layouts };
  const meta = { ...sized, components, component_pictures: drawn?.header };
  const orders = { 'order.subspaces': order, 'order.pairs': new Uint32Array(0) };
  const doubt = Uint8Array.from(membership, (share) => Math.round(255 * share));
  const buffers = { components: slots, scores, doubt, 'codes.certainty': codes, ...orders };
  return { meta: { ...meta, colourings: { certainty: colouring } }, buffers, pictures: drawn };
}

/** @typedef {{n: number, K: number, L: number, slots: Uint8Array, values: Float32Array, rows: Uint32Array}} Usage */

/** @param {Usage} usage */
function layoutsOf(usage) {
  const pairs = usage.L > 1 ? triangle(usage) : undefined;
  if (usage.L === 2) {
    const layouts = { subspaces: { ...pairs, title: 'Subspaces' } };
    return { first: 'subspaces', layouts, order: new Uint32Array(0) };
  }
  const { order, in_use, ...subspaces } = grid(usage);
  const first = in_use > AT_FIRST && pairs ? 'pairs' : 'subspaces';
  return { first, layouts: { subspaces, ...(pairs && { pairs }) }, order };
}

/** Return the panels of pairs; the canvas computes their rows. @param {Usage} usage */
function triangle({ n, K, L, slots, values, rows }) {
  const each = (L * (L - 1)) / 2;
  const most = Math.min(n, Math.floor(MOST_POINTS / each));
  const counts = new Uint32Array(K * K);
  for (const row of rows.subarray(0, most))
    for (let a = row * L, end = a + L; a < end; a += 1)
      for (let b = a + 1; b < end; b += 1) counts[slots[a] * K + slots[b]] += 1;
  const ranges = [...Array(K).keys()].map((k) => tails(values.filter((_, at) => slots[at] === k)));
  const used = [...counts.keys()].filter((code) => counts[code]);
  const panels = used.map((code) => {
    const [a, b] = [Math.floor(code / K), code % K];
    return panelOf([a, b], counts[code], [b, a], [ranges[b], ranges[a]]);
  });
  const drawn = most < n && { drawn: { rows: most, points: most * each, of: n * each } };
  return { kind: 'triangle', title: 'Pairs', spacing, panels, ...drawn };
}

/** Return a panel for each large support; the other supports are gathered. @param {Usage} usage */
function grid({ L, slots, values, rows }) {
  /** @type {Map<string, number[]>} */ const found = new Map();
  for (const row of rows) {
    const key = slots.subarray(row * L, row * L + L).join();
    found.set(key, found.get(key) ?? []);
    found.get(key)?.push(row);
  }
  const sets = [...found].map(([key, own]) => ({ support: key.split(',').map(Number), own }));
  sets.sort((a, b) => b.own.length - a.own.length);
  const shown = sets.slice(0, MOST_PANELS);
  const wide = Math.ceil(Math.sqrt(shown.length * 1.5));
  const places = shown.toSorted(({ support: a }, { support: b }) =>
    a.reduce((sign, k, slot) => sign || k - b[slot], 0),
  ); // so that neighbours share components
  let start = 0;
  const panels = shown.map((set, p) => {
    const { support, own } = set;
    const at = places.indexOf(set);
    const cell = L > 1 ? [at % wide, Math.floor(at / wide)] : [0, p];
    const columns = support.map((_, slot) => own.map((row) => values[row * L + slot]));
    const power = columns.map((column) => column.reduce((sum, v) => sum + v * v, 0));
    const axes = [...power.keys()].sort((a, b) => power[b] - power[a]).slice(0, 2);
    const range = [...axes.map((slot) => tails(columns[slot])), [-1, 1]].slice(0, 2);
    const panel = panelOf(support, own.length, cell, range);
    const size = 0.8 + 0.2 * (own.length / sets[0].own.length) ** 0.4;
    start += own.length;
    const listed = { axes: axes.map((slot) => support[slot]), start: start - own.length };
    return { ...panel, ...listed, listed: own.length, size };
  });
  const gathered = sets.length - panels.length;
  const other = gathered && { other: { subspaces: gathered, start, count: rows.length - start } };
  const header = { kind: L > 1 ? 'grid' : 'strips', title: 'Subspaces', spacing, panels, ...other };
  const order = Uint32Array.from(sets.flatMap(({ own }) => own));
  return { ...header, in_use: sets.length, order };
}
