/** The scene of a fit, as appca/canvas/scene.py makes it: panels, ranges, colours and pictures. */

import { spreadOrder } from '../scene/scene.js';

const FULL = 32767;
const [MOST_PANELS, MOST_POINTS, AT_FIRST] = [240, 2_000_000, 60];
const SPACING = 0.5;
const SHEET = { side: 2048, grey: 4096, colour: 1024 };

/** @typedef {{meta: Partial<Meta>, buffers: Record<string, ArrayBufferView>}} Part of a scene */

/** @param {ArrayLike<number>} values @param {number} share */
function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
}

/** The central range of values with zero inside and a margin. @param {Float32Array | Int16Array} values @returns {[number, number]} */
function tails(values) {
  const sorted = values.slice().sort();
  const n = sorted.length;
  if (!n) return [-0.06 * 2, 2.12];
  const at = n < 20 ? 0 : Math.ceil(0.005 * (n - 1));
  const low = Math.min(Math.max(sorted[0], 1.6 * sorted[at]), 0);
  const high = Math.max(Math.min(sorted[n - 1], 1.6 * sorted[n - 1 - at]), 0);
  const width = high > low ? high - low : 2;
  return [low - 0.06 * width, high + 0.06 * width];
}

/** @param {ArrayLike<number>} values @param {string} title @param {PageLook} look */
function quantity(values, title, { ramp, missing }) {
  let [low, high] = [0.005, 0.995].map((share) => quantile(values, share));
  if (!(high > low)) [low, high] = [0, 1].map((share) => quantile(values, share));
  const step = (ramp.length - 1) / (high - low || 1);
  const codes = Uint8Array.from(values, (value) =>
    Math.round(Math.min(Math.max((value - low) * step, 0), ramp.length - 1)),
  );
  const table = [...ramp, missing];
  return { codes, colouring: { kind: 'quantity', title, names: [], table, limits: [low, high] } };
}

/** Whether images are strokes on black, as appca/canvas/sheets.py tells them. @param {PageData} data */
function isInk({ values, n, d, shape, divide }) {
  const width = shape?.[1] ?? 0;
  if (shape?.[2]) return false;
  const some = Float64Array.from(
    values.subarray(0, d * Math.min(n, 200)),
    (v) => (255 * v) / divide,
  );
  const share = (/** @type {Float64Array} */ of, /** @type {(v: number) => boolean} */ is) =>
    of.filter(is).length / of.length;
  const isDark = (/** @type {number} */ value) => value < 32;
  const corners = some.filter((_, at) => [0, width - 1, d - width, d - 1].includes(at % d));
  const lit = some.filter((value) => !isDark(value));
  return (
    share(some, isDark) >= 0.5 && share(corners, isDark) >= 0.9 && share(lit, (v) => v > 200) >= 0.3
  );
}

/** What does not change with a fit: colours, texts, images, and the map of two principal scores. @param {PageData} data @param {Float64Array} principal n x 2 @param {PageLook} look @returns {Part} */
export function rowsPart(data, principal, look) {
  const { n, labels, shape, names, ids, values, d } = data;
  /** @type {Record<string, ArrayBufferView>} */ const buffers = {};
  /** @type {Record<string, any>} */ const colourings = {};
  const lines = labels.map(({ name, names: classes, codes }, i) => {
    const many = classes.length > look.few.length;
    const colours = many ? look.many : look.few;
    const table = classes.map((_, code) => colours[code % colours.length]);
    const shapes = classes.map((_, code) => look.shapes[Math.floor(code / 10) % 5]);
    buffers[`codes.label:${name}`] = buffers[`hover.${i}`] = codes;
    const texts = { title: name, names: classes, table: [...table, look.missing] };
    colourings[`label:${name}`] = {
      kind: 'category',
      ...texts,
      ...(many && { shapes: [...shapes, look.shapes[0]] }),
    };
    return { title: name, kind: 'category', names: classes, buffer: `hover.${i}` };
  });
  for (let j = 0; names && j < Math.min(d, 40); j += 1) {
    const column = Float64Array.from({ length: n }, (_, i) => values[i * d + j]);
    const key = `feature:${j}`;
    ({ codes: buffers[`codes.${key}`], colouring: colourings[key] } = quantity(
      column,
      names[j],
      look,
    ));
  }
  if (ids) buffers['hover.ids'] = new TextEncoder().encode(JSON.stringify(ids));
  const ends = [0, 1].map((axis) => {
    const scores = principal.filter((_, at) => at % 2 === axis);
    return [scores.reduce((a, b) => Math.min(a, b)), scores.reduce((a, b) => Math.max(a, b))];
  });
  const half = (Math.max(...ends.map(([low, high]) => high - low)) / 2) * 1.06 || 1;
  const limits = ends.map(([low, high]) => [(low + high) / 2 - half, (low + high) / 2 + half]);
  buffers['map.pca'] = Uint16Array.from(principal, (score, at) =>
    Math.round((65535 * (score - limits[at % 2][0])) / (2 * half)),
  );
  buffers['order.pca'] = new Uint32Array(0);
  const word = shape ? 'image' : 'row';
  const panel = { ...panelOf([], n, [0, 0], limits), axes: [0, 1] };
  const pca = { kind: 'map', title: 'PCA', spacing: SPACING, limits, panels: [panel] };
  const meta = {
    ...{ format: 1, rows: n, doubt_below: 128, colourings, layouts: { pca } },
    ...{ words: { row: word, rows: `${word}s` }, sheets: shape ? sheetsOf(data) : undefined },
    hover: n > 100_000 ? null : { ids: ids && 'hover.ids', lines },
  };
  return { meta: /** @type {any} */ (meta), buffers };
}

/** The power of two that holds a side and a seam. @param {number} side */
const cellOf = (side) => 1 << Math.max(3, Math.ceil(Math.log2(side + 2)));

/** @param {PageData} data */
function sheetsOf(data) {
  const [h, w, channels = 1] = data.shape ?? [];
  const cell = cellOf(Math.max(h, w));
  const most = channels === 1 ? SHEET.grey : SHEET.colour;
  const per_sheet = Math.min((SHEET.side / cell) ** 2, most);
  const columns = Math.min(SHEET.side / cell, 1 << Math.ceil(Math.log2(Math.sqrt(per_sheet))));
  const count = Math.ceil(data.n / per_sheet);
  return {
    tile: [h, w, channels],
    cell,
    columns,
    per_sheet,
    count,
    style: isInk(data) ? 'ink' : 'photo',
  };
}

/** Pixels of cells, a tile of some colour in the middle of each. @param {number} count @param {number} cell @param {number} columns @param {number[]} tile @param {(at: number, x: number, y: number) => number[]} colour @param {boolean} [edge] whether the tile's edge fills the cell */
function cells(count, cell, columns, [h, w], colour, edge = false) {
  const width = cell * Math.min(columns, count);
  const height = cell * Math.ceil(count / columns);
  const pixels = new Uint8ClampedArray(4 * width * height);
  const [top, left] = [(cell - h) >> 1, (cell - w) >> 1];
  for (let at = 0; at < count; at += 1)
    for (let y = 0; y < cell; y += 1)
      for (let x = 0; x < cell; x += 1) {
        const [u, v] = [x - left, y - top];
        const inside = u >= 0 && u < w && v >= 0 && v < h;
        const to = 4 * ((Math.floor(at / columns) * cell + y) * width + (at % columns) * cell + x);
        pixels[to + 3] = 255;
        if (!inside && !edge) continue;
        const rgb = colour(at, Math.min(Math.max(u, 0), w - 1), Math.min(Math.max(v, 0), h - 1));
        [pixels[to], pixels[to + 1], pixels[to + 2]] = rgb;
      }
  return { width, height, pixels };
}

/** A sheet of images. @param {PageData} data @param {number} number */
export function sheet(data, number) {
  const { tile, cell, columns, per_sheet: per } = sheetsOf(data);
  const order = spreadOrder(data.n).subarray(number * per, (number + 1) * per);
  const [, w, channels] = tile;
  const scale = 255 / data.divide;
  return cells(order.length, cell, columns, tile, (at, x, y) => {
    const from = order[at] * data.d + (y * w + x) * channels;
    return [0, 1, 2].map((c) => data.values[from + (channels > 1 ? c : 0)] * scale);
  });
}

/** Pictures of the components for a light page, then for a dark one. @param {PageData} data @param {FitState} state @param {PageLook} look */
function pictures({ shape, d }, { W, latent }, look) {
  const [h, w, channels = 1] = shape ?? [];
  const K = latent.length;
  const value = (/** @type {number} */ k, /** @type {number} */ pixel) => {
    let sum = 0;
    for (let c = 0; c < channels; c += 1) sum += W[(pixel * channels + c) * K + k];
    return sum;
  };
  const most = Array.from({ length: K }, (_, k) => {
    let size = 1e-300;
    for (let pixel = 0; pixel < d / channels; pixel += 1)
      size = Math.max(size, Math.abs(value(k, pixel)));
    return size;
  });
  const cell = cellOf(Math.max(h, w));
  const columns = Math.min(SHEET.side / cell, 2 * K);
  const made = cells(
    2 * K,
    cell,
    columns,
    [h, w],
    (at, x, y) => {
      const k = at % K;
      const share = value(k, y * w + x) / most[k];
      const [low, zero, high] = at < K ? look.light : look.dark;
      const end = share < 0 ? low : high;
      return zero.map((ground, c) => ground + (end[c] - ground) * Math.abs(share));
    },
    true,
  );
  return { ...made, header: { tile: [h, w, 3], cell, columns } };
}

/** @param {number[]} components @param {number} count @param {number[]} cell @param {number[][]} range */
const panelOf = (components, count, cell, range) => ({
  ...{ components, axes: [...components].reverse(), start: 0, listed: 0, count, cell },
  ...{ levels: /** @type {number[]} */ ([]), range },
});

/** What a fit adds. @param {PageData} data @param {FitState} state as it is shown @param {Described} said in that order @param {PageLook} look @returns {Part & {pictures?: ReturnType<typeof pictures>}} */
export function fitPart(data, state, said, look) {
  const { n, names, shape, d } = data;
  const { K, L, active, scores: all, membership } = said;
  const slots = new Uint8Array(n * L);
  const values = new Float32Array(n * L);
  for (let i = 0, at = 0; i < n; i += 1)
    for (let k = 0; k < K; k += 1)
      if (active[i * K + k]) {
        slots[at] = k;
        values[at] = all[i * K + k];
        at += 1;
      }
  const sizes = values.map(Math.abs);
  const largest = sizes.reduce((a, b) => Math.max(a, b), 0);
  const unit = Math.min(largest, 4 * quantile(sizes, 0.999)) / FULL || largest / FULL || 1;
  const scores = Int16Array.from(values, (v) =>
    Math.max(-FULL, Math.min(FULL, Math.round(v / unit))),
  );
  const usage = { n, K, L, slots, values, order: spreadOrder(n) };
  const layouts = layoutsOf(usage);
  const certainty = quantity(membership, 'Certainty', look);
  const component = (/** @type {number} */ k) => {
    const weights = names?.map((name, j) => /** @type {const} */ ([name, state.W[j * K + k]]));
    const strongest = weights?.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 4) ?? [];
    const columns = strongest.map(([name, weight]) => [name, weight / Math.abs(strongest[0][1])]);
    const tau2 = state.latent[k];
    const spread = Math.sqrt((tau2 * state.noise) / (tau2 + state.noise));
    return { number: k + 1, columns, spread };
  };
  const drawn = shape && d > 0 ? pictures(data, state, look) : undefined;
  const meta = {
    components: Array.from({ length: K }, (_, k) => component(k)),
    ...{ n_active: L, most_used: L, score_unit: unit, component_pictures: drawn?.header },
    ...{
      first: layouts.first,
      layouts: layouts.meta,
      colourings: { certainty: certainty.colouring },
    },
  };
  const buffers = {
    ...{ components: slots, scores, 'codes.certainty': certainty.codes, ...layouts.buffers },
    doubt: Uint8Array.from(membership, (share) => Math.round(255 * share)),
  };
  return { meta: /** @type {any} */ (meta), buffers, pictures: drawn };
}

/** @typedef {{n: number, K: number, L: number, slots: Uint8Array, values: Float32Array, order: Uint32Array}} Usage */

/** @param {Usage} usage */
function layoutsOf(usage) {
  const { L } = usage;
  const pairs = L > 1 ? triangle(usage) : null;
  if (L === 2) {
    const title = 'Subspaces';
    const meta = { subspaces: { ...pairs, title } };
    return { first: 'subspaces', meta, buffers: { 'order.subspaces': new Uint32Array(0) } };
  }
  const { order, ...header } = grid(usage);
  const buffers = { 'order.subspaces': order, 'order.pairs': new Uint32Array(0) };
  const many = header.panels.length + (header.other?.subspaces ?? 0) > AT_FIRST;
  const meta = { subspaces: header, ...(pairs && { pairs }) };
  return { first: many && pairs ? 'pairs' : 'subspaces', meta, buffers };
}

/** Panels of pairs, whose rows the canvas finds. @param {Usage} usage */
function triangle({ n, K, L, slots, values, order }) {
  const each = (L * (L - 1)) / 2;
  const most = Math.min(n, Math.floor(MOST_POINTS / each));
  const counts = new Uint32Array(K * K);
  for (let t = 0; t < most; t += 1)
    for (let a = order[t] * L, end = a + L; a < end; a += 1)
      for (let b = a + 1; b < end; b += 1) counts[slots[a] * K + slots[b]] += 1;
  const ranges = Array.from({ length: K }, (_, k) =>
    tails(values.filter((_, at) => slots[at] === k)),
  );
  const used = Array.from(counts.keys()).filter((code) => counts[code]);
  const panels = used.map((code) => {
    const [a, b] = [Math.floor(code / K), code % K];
    return panelOf([a, b], counts[code], [b, a], [ranges[b], ranges[a]]);
  });
  const drawn = most < n && { drawn: { rows: most, points: most * each, of: n * each } };
  return { kind: 'triangle', title: 'Pairs', spacing: SPACING, panels, ...drawn };
}

/** A panel for each set of components, those beyond the fullest gathered. @param {Usage} usage */
function grid({ L, slots, values, order }) {
  /** @type {Map<string, number[]>} */ const found = new Map();
  for (const row of order) {
    const key = String.fromCharCode(...slots.subarray(row * L, row * L + L));
    const rows = found.get(key);
    if (rows) rows.push(row);
    else found.set(key, [row]);
  }
  const sets = [...found].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
  const kept = sets.slice(0, MOST_PANELS);
  const most = kept[0][1].length;
  const supports = kept.map(([key]) => [...key].map((letter) => letter.charCodeAt(0)));
  const places = L > 1 ? arrange(supports) : [];
  let start = 0;
  const panels = kept.map(([, rows], p) => {
    const columns = supports[p].map((_, slot) =>
      Float32Array.from(rows, (row) => values[row * L + slot]),
    );
    const power = columns.map((column) => column.reduce((sum, v) => sum + v * v, 0));
    const axes = [...power.keys()].sort((a, b) => power[b] - power[a]).slice(0, 2);
    const range = [...axes.map((slot) => tails(columns[slot])), [-1, 1]].slice(0, 2);
    const panel = {
      ...panelOf(supports[p], rows.length, places[p] ?? [0, p], range),
      ...{ axes: axes.map((slot) => supports[p][slot]), start, listed: rows.length },
      size: 0.8 + 0.2 * (rows.length / most) ** 0.4,
    };
    start += rows.length;
    return panel;
  });
  const gathered = sets.length - kept.length;
  const count = order.length - start;
  return {
    ...{ kind: L > 1 ? 'grid' : 'strips', title: 'Subspaces', spacing: SPACING, panels },
    ...(gathered && { other: { subspaces: gathered, start, count } }),
    order: Uint32Array.from(sets.flatMap(([, rows]) => rows)),
  };
}

/** Places on a grid, from the middle out: next to those that share components. @param {number[][]} supports the fullest first */
function arrange(supports) {
  const columns = Math.ceil(Math.sqrt(supports.length * 1.5));
  const lines = Math.ceil(supports.length / columns);
  const far = (/** @type {number} */ at) =>
    Math.hypot((at % columns) - (columns - 1) / 2, Math.floor(at / columns) - (lines - 1) / 2);
  const spots = Array.from({ length: columns * lines }, (_, at) => at);
  const left = new Set(supports.keys());
  /** @type {number[]} */ const holder = [];
  /** @type {number[][]} */ const places = [];
  for (const at of spots.sort((a, b) => far(a) - far(b)).slice(0, supports.length)) {
    const sides = [at % columns ? at - 1 : -1, (at + 1) % columns ? at + 1 : -1];
    const near = [...sides, at - columns, at + columns].flatMap(
      (side) => supports[holder[side]] ?? [],
    );
    const worth = (/** @type {number} */ p) =>
      near.filter((k) => supports[p].includes(k)).length - p / supports.length;
    const best = [...left].reduce((p, q) => (worth(q) > worth(p) ? q : p));
    left.delete(best);
    holder[at] = best;
    places[best] = [at % columns, Math.floor(at / columns)];
  }
  return places;
}
