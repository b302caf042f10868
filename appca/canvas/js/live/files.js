/** Reading and saving files; an error names the command that opens the file in the app. */

import { product, transpose } from './em.js';

const [SIDE, MOST] = [64, 40_000_000]; // maximum side of images in px; maximum count of numbers
const NUMBER = /^[+\-−]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const CLASS = /^(class|target|label|y|species|type|category|group)$/i;
const COUNTER = /^(|id|index|no|nr|row)$/i;

/** @param {string} name @param {string} why @returns {never} */
function refuse(name, why) {
  throw new Error(`This page cannot read ${name}: ${why} Run: appca "${name}"`);
}

/** @param {Partial<PageData> & {name: string, values: Values, n: number, d: number}} known @returns {PageData} */
function dataOf(known) {
  const { n, d, name } = known;
  if (n < 3 || d < 2) refuse(name, `it has ${n} rows and ${d} columns of numbers.`);
  if (n * d > MOST) refuse(name, `it has ${n} × ${d} numbers, more than 40 million.`);
  const provenance = { source: 'file', files: [name] };
  const rest = { shape: null, names: null, ids: null, labels: [], note: '', divide: 1 };
  return { ...rest, provenance, ...known, name: name.replace(/\.\w+$/, '') };
}

/** Return classes in natural order. @param {string} name @param {string[]} column */
function labelOf(name, column) {
  const names = [...new Set(column)].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const place = new Map(names.map((text, code) => [text, code]));
  const codes = Uint16Array.from(column, (text) => place.get(text) ?? 0);
  return { name, names, codes };
}

/** Split text into lines of cells; quoted cells may contain separators and line breaks. @param {string} text @param {string} separator */
function cellsOf(text, separator) {
  const lines = [['']];
  let quoted = false;
  for (const part of text.split(/("|\r?\n|\r)/)) {
    const line = lines[lines.length - 1];
    const [first, ...others] = quoted ? [part] : part.split(separator);
    if (part === '"') quoted = !quoted;
    else if (!quoted && /^[\r\n]/.test(part)) lines.push(['']);
    else line.push(line.pop() + first, ...others);
  }
  return lines.map((line) => line.map((cell) => cell.trim())).filter((line) => line.some(Boolean));
}

const isNumber = (/** @type {string} */ cell) => NUMBER.test(cell);

/** Whether the first line is a header: words above numbers, or increasing integers above other numbers. @param {string[]} first @param {string[][]} columns below it */
function isHeader(first, columns) {
  const isWhole = (/** @type {string} */ cell) => /^\d+$/.test(cell);
  const rising = first.every((cell, j) => isWhole(cell) && !(+cell <= +first[j - 1]));
  const named = first.some((cell, j) => !isNumber(cell) && columns[j].every(isNumber));
  return named || (rising && columns.some((column) => !column.every(isWhole)));
}

/** @param {string} name @param {Uint8Array} bytes @returns {PageData} */
function readTable(name, bytes) {
  const text = new TextDecoder().decode(bytes);
  if (text.includes('\ufffd')) refuse(name, 'it is not in UTF-8.');
  if (text.includes('""')) refuse(name, 'it has quotation marks inside cells.');
  const [head] = text.split(/[\r\n]/, 1);
  const [separator] = [',', ';', '\t'].sort((a, b) => head.split(b).length - head.split(a).length);
  const lines = cellsOf(text, separator);
  const [first] = lines;
  const odd = lines.find((line) => line.length !== first.length);
  if (odd) refuse(name, `one line has ${odd.length} cells, the first ${first.length}.`);
  let columns = first.map((_, j) => lines.slice(1).map((line) => line[j]));
  const named = isHeader(first, columns);
  if (!named) columns = columns.map((column, j) => [first[j], ...column]);
  const titles = first.map((cell, j) => (named && cell) || `column ${j + 1}`);
  if (new Set(titles).size < titles.length) refuse(name, 'two columns have the same name.');
  const n = columns[0].length;
  const [left, labels] = [/** @type {string[]} */ ([]), /** @type {PageData['labels']} */ ([])];
  /** @type {string[] | null} */ let ids = null;
  const features = columns.flatMap((column, j) => {
    const title = titles[j];
    const numbers = column.filter(isNumber).length;
    const kinds = new Set(column).size;
    const counts = numbers === n && column.every((cell, i) => +cell === +column[0] + i);
    const other = column.find((cell) => !isNumber(cell)) || 'an empty cell';
    if (column.includes('') || (numbers < n && numbers >= n / 2))
      refuse(name, `${n - numbers} cells of “${title}” are not plain numbers (${other}).`);
    const coded = column.some((cell) => /^0\d/.test(cell)) || (CLASS.test(title) && kinds <= 50);
    if (!ids && named && counts && COUNTER.test(first[j])) ids = column;
    else if (numbers === n && !coded && kinds > 1) return [j];
    else if (kinds === n && !ids) ids = column;
    else if (kinds > 1 && kinds <= n / 2) labels.push(labelOf(title, column));
    else left.push(title);
    return [];
  });
  const d = features.length;
  const values = Float64Array.from({ length: n * d }, (_, at) => {
    return +columns[features[at % d]][Math.floor(at / d)].replace('−', '-');
  });
  const said = labels.map((label) => label.name).join(', ') || 'none';
  const rest = left.length ? ` Left out: ${left.join(', ')}.` : '';
  const note = `${n} rows, ${d} columns of numbers, labels: ${said}.${rest}`;
  return dataOf({ name, values, n, d, names: features.map((j) => titles[j]), ids, labels, note });
}

/** @type {Record<string, any>} */
const TYPES = { u1: Uint8Array, f4: Float32Array, f8: Float64Array, i4: Int32Array };

/** @param {string} name @param {Uint8Array} bytes */
function readNpy(name, bytes) {
  const wide = bytes[6] > 1;
  const from = (wide ? 12 : 10) + bytes[8] + 256 * bytes[9];
  const text = new TextDecoder().decode(bytes.subarray(10, from));
  const kind = /'descr': *'[<|](\w\d)'/.exec(text)?.[1] ?? '';
  const shape = /'shape': *\(([^)]*)\)/.exec(text)?.[1].match(/\d+/g)?.map(Number) ?? [];
  if (!TYPES[kind] || text.includes('True'))
    refuse(name, 'its numbers are of a rare type or order.');
  const values = new TYPES[kind](bytes.slice(from).buffer);
  return arrayOf(name, kind === 'i4' ? Float64Array.from(values) : values, shape);
}

/** Return the rows of an array; with more than two dimensions they are images. @param {string} name @param {Values} values @param {number[]} shape */
function arrayOf(name, values, [n, ...shape]) {
  const d = shape.reduce((all, side) => all * side, 1);
  const images = shape.length === 2 || (shape.length === 3 && shape[2] === 3);
  if (!images && shape.length !== 1) refuse(name, `it has ${1 + shape.length} dimensions.`);
  if (n * d !== values.length) refuse(name, 'its length differs from its header.');
  const byte = values instanceof Uint8Array;
  if (!byte && !values.every(Number.isFinite)) refuse(name, 'numbers are missing or infinite.');
  const [noun, unit] = images ? ['images', 'pixels'] : ['rows', 'numbers'];
  const note = `${n} ${noun} of ${shape.join(' × ')} ${unit}.`;
  const known = { name, values, n, d, note };
  const feature = (/** @type {unknown} */ _, /** @type {number} */ j) => `feature ${j + 1}`;
  if (!images) return dataOf({ ...known, names: Array.from({ length: d }, feature) });
  let most = byte ? 255 : 0;
  if (!byte) for (const value of values) most = Math.max(most, value);
  const provenance = { source: 'file', files: [name], image_range: [0, most || 1] };
  return dataOf({ ...known, shape, divide: most || 1, provenance });
}

/** @param {File} file */
async function pixelsOf(file) {
  const bitmap = await createImageBitmap(file).catch(() => refuse(file.name, 'it is damaged.'));
  const sides = [bitmap.width, bitmap.height];
  const scale = Math.min(1, SIDE / Math.max(...sides));
  const [w, h] = sides.map((side) => Math.max(1, Math.round(side * scale)));
  const context = /** @type {any} */ (new OffscreenCanvas(w, h).getContext('2d'));
  context.fillStyle = '#fff'; // background of transparent images
  context.fillRect(0, 0, w, h);
  context.drawImage(bitmap, 0, 0, w, h);
  return /** @type {ImageData} */ (context.getImageData(0, 0, w, h));
}

/** @param {File[]} files */
async function readImages(files) {
  const drawn = await Promise.all(files.map(pixelsOf));
  const [{ width: w, height: h }] = drawn;
  const odd = drawn.findIndex(({ width, height }) => width !== w || height !== h);
  if (odd > 0) refuse(files[odd].name, 'its shape differs from the first image’s.');
  const isGrey = drawn.every(({ data }) => data.every((v, i) => i % 4 > 2 || v === data[i & ~3]));
  const [n, channels] = [files.length, isGrey ? 1 : 3];
  const d = h * w * channels;
  const values = new Uint8Array(n * d);
  drawn.forEach(({ data }, i) => {
    const own = data.filter((_, at) => at % 4 < channels);
    values.set(own, i * d);
  });
  const ids = files.map((file) => file.name);
  const note = `${n} images, read as ${w} × ${h} pixels.`;
  const known = { name: `${n} images`, values, n, d, divide: 255, note };
  const shape = isGrey ? [h, w] : [h, w, 3];
  return dataOf({ ...known, shape, ids: new Set(ids).size === n ? ids : null });
}

/** Read dropped files: a table, an array (IDX with optional labels), or images. @param {File[]} files @returns {Promise<PageData>} */
export async function readFiles(files) {
  if (files.every(({ type }) => type.startsWith('image/'))) return readImages(files);
  /** @type {PageData | undefined} */ let data;
  /** @type {string[] | undefined} */ let classes;
  for (const file of files) {
    const name = file.name.replace(/\.gz$/, '');
    const packed = name !== file.name && new DecompressionStream('gzip');
    const stream = packed ? file.stream().pipeThrough(packed) : file.stream();
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    if (bytes[0] === 0x93) data = readNpy(name, bytes);
    else if (!bytes[0] && !bytes[1] && bytes[2] === 8) {
      const view = new DataView(bytes.buffer);
      const shape = Array.from({ length: bytes[3] }, (_, i) => view.getUint32(4 + 4 * i));
      const body = bytes.slice(4 + 4 * bytes[3]);
      if (shape.length > 1) data = arrayOf(name, body, shape);
      else classes = Array.from(body, String);
    } else if (/\.(csv|tsv|txt)$/i.test(name)) data = readTable(name, bytes);
    else refuse(name, 'it opens only CSV, NPY, IDX (MNIST) and images.');
  }
  if (!data) return refuse(files[0].name, 'it has labels only; drop the images with it.');
  if (classes && classes.length !== data.n)
    refuse(data.name, `there are ${classes.length} labels for ${data.n} rows.`);
  if (classes) data.labels = [labelOf('label', classes)];
  return data.shape ? data : standardised(data);
}

/** Preprocess a table by the app's defaults. @param {PageData} data @returns {PageData} */
function standardised(data) {
  const { n, d, values: raw } = data;
  const [offset, scale, values] = [d, d, n * d].map((length) => new Float64Array(length));
  for (let j = 0; j < d; j += 1) {
    for (let at = j; at < n * d; at += d) offset[j] += raw[at] / n;
    for (let at = j; at < n * d; at += d) scale[j] += (raw[at] - offset[j]) ** 2 / n;
    scale[j] = Math.sqrt(scale[j]) || 1;
    for (let at = j; at < n * d; at += d) values[at] = (raw[at] - offset[j]) / scale[j];
  }
  return { ...data, values, raw, offset, scale };
}

/** @typedef {{data: PageData, origin: Float64Array, state: FitState, said: Described, latent: Latent, selected: Uint8Array, look: PageLook}} Whole */

/** Format projections as CSV. @param {Whole} whole @returns {BlobPart[]} */
export function tableOf({ data: { n, ids, labels }, said, selected }) {
  const { K, active, scores, membership } = said;
  const numbers = [...Array(K).keys()];
  const quoted = (/** @type {string} */ text) =>
    /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const titles = [...labels.map(({ name }) => name), ...numbers.map((k) => `component ${k + 1}`)];
  const lines = [['id', ...titles, 'certainty', 'selected']];
  for (let i = 0; i < n; i += 1) {
    const classes = labels.map(({ names, codes }) => names[codes[i]]);
    const own = numbers.map((k) => (active[i * K + k] ? scores[i * K + k].toPrecision(7) : ''));
    const ends = [membership[i].toFixed(4), `${selected[i]}`];
    lines.push([ids?.[i] ?? `${i}`, ...classes, ...own, ...ends]);
  }
  return lines.map((line) => `${line.map(quoted).join(',')}\n`);
}

/** @type {Record<string, string>} */
const KINDS = { Uint8Array: '|u1', Float32Array: '<f4', Float64Array: '<f8', BigInt64Array: '<i8' };

/** Encode an array as NPY. @param {ArrayBufferView} values @param {number[]} shape @param {string} [kind] */
function npy(values, shape, kind = KINDS[values.constructor.name]) {
  const sides = shape.map((side) => `${side},`).join(' ');
  const text = `{'descr': '${kind}', 'fortran_order': False, 'shape': (${sides}), }`;
  const header = new TextEncoder().encode(`${text}${' '.repeat(127 - 10 - (text.length % 64))}\n`);
  const magic = [0x93, 78, 85, 77, 80, 89, 1, 0, header.length & 255, header.length >> 8];
  const body = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return joined([Uint8Array.from(magic), header, body]);
}

/** Encode texts as NPY, four bytes per letter. @param {string[]} texts */
function npyOfTexts(texts) {
  const letters = texts.map((text) => [...text].map((letter) => letter.codePointAt(0) ?? 0));
  const width = letters.reduce((most, { length }) => Math.max(most, length), 1);
  const all = new Uint32Array(texts.length * width);
  letters.forEach((own, i) => all.set(own, i * width));
  return npy(all, [texts.length], `<U${width}`);
}

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}

/** @param {Uint8Array} bytes */
function crc(bytes) {
  let sum = -1;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum;
}

/** Encode integers of two or four bytes, given as "2:20 4:7". @param {string} text */
function binary(text) {
  const fields = text.split(' ').map((field) => field.split(':').map(Number));
  return Uint8Array.from(
    fields.flatMap(([wide, value]) => [0, 8, 16, 24].slice(0, wide).map((bits) => value >>> bits)),
  );
}

/** Create a ZIP archive without compression. @param {[string, Uint8Array][]} members */
function zip(members) {
  const [parts, central] = [/** @type {Uint8Array[]} */ ([]), /** @type {Uint8Array[]} */ ([])];
  let at = 0;
  for (const [name, bytes] of members) {
    const title = new TextEncoder().encode(`${name}`);
    const size = `4:${crc(bytes)} 4:${bytes.length} 4:${bytes.length} 2:${title.length} 2:0`;
    const about = `2:20 2:2048 2:0 2:0 2:33 ${size}`;
    parts.push(binary(`4:${0x04034b50} ${about}`), title, bytes);
    central.push(binary(`4:${0x02014b50} 2:20 ${about} 2:0 2:0 2:0 4:0 4:${at}`), title);
    at += 30 + title.length + bytes.length;
  }
  const list = joined(central);
  const many = `2:${members.length} 2:${members.length}`;
  return [...parts, list, binary(`4:${0x06054b50} 4:0 ${many} 4:${list.length} 4:${at} 2:0`)];
}

/** Format JSON as Python does. @param {any} value @param {string} [comma] @param {string} [colon] @returns {string} */
function python(value, comma = ', ', colon = ': ') {
  const inner = (/** @type {any} */ one) => python(one, comma, colon);
  if (Array.isArray(value)) return `[${value.map(inner).join(comma)}]`;
  if (value && typeof value === 'object') {
    const fields = Object.entries(value).map(([key, one]) => inner(key) + colon + inner(one));
    return `{${fields.join(comma)}}`;
  }
  const hex = (/** @type {string} */ letter) => letter.charCodeAt(0).toString(16).padStart(4, '0');
  return JSON.stringify(value).replace(/[^ -~]/g, (letter) => `\\u${hex(letter)}`);
}

/** @param {any[]} parts */
async function sha256(parts) {
  const hash = await crypto.subtle.digest('SHA-256', await new Blob(parts).arrayBuffer());
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Create a session file with data, fit and selection for appca/runs/session.py. @param {Whole} whole @returns {Promise<any[]>} */
export async function sessionOf({ data, origin, state, said, latent, selected, look }) {
  const { n, d, divide, shape, names, labels, provenance, name } = data;
  const { K, L, scores, active, density } = said;
  const [matrix, pre, zeros] = [data.raw ?? data.values, shape ? divide : 1, new Float64Array(d)];
  const ids = data.ids ?? Array.from({ length: n }, (_, i) => `${i}`);
  const columns = labels.map((label) => Array.from(label.codes, (code) => label.names[code]));
  const titles = labels.map((label) => label.name);
  const about = { image_shape: shape, feature_names: names, labels: titles };
  const header = python({ shape: [n, d], dtype: KINDS[matrix.constructor.name], ...about });
  const texts = [ids, ...columns].map((column) => python(column));
  const dataset = await sha256([header, matrix, ...texts]);
  const sizes = { n_components: K, n_active: L, latent_variance: latent };
  const scaled = { centre: !shape, divide: pre, pca: null, scale: shape ? 'none' : 'feature' };
  const parameters = Object.fromEntries(Object.entries({ ...look.settings, ...sizes }).sort());
  const config = { dataset, model: 'aPPCA', parameters, preprocessing: scaled, stopped_at: null };
  const opened = (await sha256([python(config, ',', ':')])).slice(0, 12); // id of these settings
  const value = density.reduce((sum, one) => sum + one, 0);
  const numbers = [...Array(K).keys()];
  const info = {
    ...{ n_iter: 1, stop_reason: 'fitted in a browser', log_likelihood: value, n_rows: n },
    ...{ likelihood: 'exact', likelihood_error: 0, n_features: d, versions: {}, seconds: 0 },
  };
  const components = { names: Array(K).fill(''), rows: numbers, turned: Array(K).fill(1) };
  const run = { config, info: { ...info, stopped_at: null }, name: null, components };
  const moved = product(state.W, state.shift, K, 1);
  const scale = numbers.map((k) => {
    const own = scores.filter((_, at) => at % K === k && active[at]);
    return Math.sqrt(own.reduce((sum, score) => sum + score * score, 0) / own.length) || 1;
  });
  const mean = origin.map((one, j) => one - moved[j]);
  const [pre_offset, pre_scale] = [data.offset ?? zeros, data.scale ?? zeros.map(() => 1)];
  const one = (/** @type {number} */ number) => Float64Array.of(number);
  const n_active = BigInt64Array.of(BigInt(L));
  const of_k = { latent_variance: state.latent, explained_variance: said.variance };
  const { inclusion, membership, error } = said;
  /** @type {[number[], Record<string, ArrayBufferView>][]} */ const arrays = [
    [[K, d], { components: transpose(state.W, K) }],
    [[d], { mean, pre_offset, pre_scale }],
    [[K], { ...of_k, scale: Float64Array.from(scale) }],
    [[], { noise_variance: one(state.noise), pre_divide: one(pre), n_active }],
    [[1], { log_likelihoods: one(value) }],
    [[n, K], { scores, inclusion }],
    [[n], { membership, error, log_likelihood_rows: density }],
  ];
  const members = arrays.flatMap(([sides, own]) =>
    Object.entries(own).map(([key, array]) => file(`runs/0/${key}`, npy(array, sides))),
  );
  const described = { name, ...about, provenance, digest: dataset, included: true };
  const kind = { format: 'appca session', version: 1, versions: {} };
  const contents = { ...kind, dataset: described, runs: [run], selections: [], opened };
  const chosen = selected.includes(1);
  return zip([
    ['session.json', new TextEncoder().encode(JSON.stringify(contents))],
    ['data/matrix.npy', npy(matrix, [n, d])],
    ['data/ids.npy', npyOfTexts(ids)],
    ...columns.map((column, i) => file(`data/label_${i}`, npyOfTexts(column))),
    ...members,
    file('runs/0/active', npy(active, [n, K], '|b1')),
    ...(chosen ? [file('selections/selected', npy(selected, [n], '|b1'))] : []),
  ]);
}

/** @param {string} name @param {Uint8Array} bytes @returns {[string, Uint8Array]} */
const file = (name, bytes) => [`${name}.npy`, bytes];
