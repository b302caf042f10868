/** Files that the page reads, or refuses with the command that opens them in the app, and those that it saves. */

const SIDE = 64; // px to which images are reduced
const MOST = 40_000_000; // numbers
const NUMBER = /^[+\-−]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const CLASS = /^(class|target|label|y|species|type|category|group)$/i;

/** Refuse, with the way to open it. @param {string} name @param {string} why @returns {never} */
function refuse(name, why) {
  throw new Error(`This page cannot read ${name}: ${why} Run: appca "${name}"`);
}

/** @param {string} name @returns {string} */
const stem = (name) => name.replace(/\.gz$/, '').replace(/\.[^.]*$/, '');

/** A data set of what is known of it. @param {Partial<PageData> & {values: Values, n: number, d: number}} known @returns {PageData} */
function dataOf(known) {
  const { n, d, name = '' } = known;
  if (n < 3 || d < 2) refuse(name, `it has ${n} rows and ${d} columns of numbers.`);
  if (n * d > MOST) refuse(name, `it has ${n} × ${d} numbers, more than 40 million.`);
  const rest = { shape: null, names: null, ids: null, labels: [], note: '', divide: 1 };
  return { ...rest, name, provenance: { source: 'file', files: [name] }, ...known };
}

/** Classes in natural order. @param {string} name @param {string[]} column */
export function labelOf(name, column) {
  const names = [...new Set(column)].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const place = new Map(names.map((text, code) => [text, code]));
  const codes = column.map((text) => /** @type {number} */ (place.get(text)));
  return {
    name,
    names,
    codes: names.length < 255 ? Uint8Array.from(codes) : Uint16Array.from(codes),
  };
}

/** Cells by line; quotes may hold separators and line breaks. @param {string} text @param {string} separator */
function cellsOf(text, separator) {
  const lines = [['']];
  let quoted = false;
  for (const part of text.split(/("|\r?\n|\r)/)) {
    const line = lines[lines.length - 1];
    if (part === '"') quoted = !quoted;
    else if (quoted) line[line.length - 1] += part;
    else if (/^[\r\n]/.test(part)) lines.push(['']);
    else {
      const [first, ...others] = part.split(separator);
      line[line.length - 1] += first;
      line.push(...others);
    }
  }
  return lines.map((line) => line.map((cell) => cell.trim())).filter((line) => line.some(Boolean));
}

/** @param {string} name @param {Uint8Array} bytes @returns {PageData} */
export function readTable(name, bytes) {
  let text = '';
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    refuse(name, 'it is not in UTF-8.');
  }
  if (text.includes('""')) refuse(name, 'it has quotation marks inside of cells.');
  const head = text.slice(0, 4000).split(/\r?\n/, 2)[0];
  const counts = [',', ';', '\t'].map((mark) => head.split(mark).length);
  const separator = [',', ';', '\t'][counts.indexOf(Math.max(...counts))];
  const lines = cellsOf(text, separator);
  const width = lines[0].length;
  const odd = lines.findIndex((line) => line.length !== width);
  if (odd > 0) refuse(name, `line ${odd + 1} has ${lines[odd].length} cells, the first ${width}.`);
  const isNumber = (/** @type {string} */ cell) => NUMBER.test(cell);
  const isCode = (/** @type {string} */ cell) => /^0\d/.test(cell); // its zeros are part of a name
  const body = lines.slice(1);
  const columns = lines[0].map((_, j) => body.map((line) => line[j]));
  const named =
    lines[0].some((cell, j) => !isNumber(cell) && columns[j].every(isNumber)) ||
    (lines[0].every((cell) => !isNumber(cell)) &&
      columns.some((column) => column.some(isNumber))) ||
    (lines[0].every((cell, j, all) => /^\d+$/.test(cell) && (!j || +cell > +all[j - 1])) &&
      columns.some((column) => column.some((cell) => !/^\d+$/.test(cell))));
  const titles = lines[0].map((cell, j) => (named && cell) || `column ${j + 1}`);
  if (new Set(titles).size < width) refuse(name, 'two columns have the same name.');
  if (!named) columns.forEach((column, j) => column.unshift(lines[0][j]));
  const n = columns[0].length;
  const left = [];
  /** @type {string[] | null} */ let ids = null;
  /** @type {number[]} */ const features = [];
  const labels = [];
  for (const [j, column] of columns.entries()) {
    const numbers = column.filter(isNumber).length;
    const kinds = new Set(column).size;
    const counting = named && numbers === n && column.every((cell, i) => +cell === +column[0] + i);
    if (numbers < n && numbers >= 0.5 * n) {
      const cell = column.find((text) => !isNumber(text)) || 'an empty cell';
      refuse(name, `${n - numbers} cells of “${titles[j]}” are not plain numbers (${cell}).`);
    }
    if (column.includes('')) refuse(name, `“${titles[j]}” has empty cells.`);
    if (counting && (!lines[0][j] || /^(id|index|no|nr|row)$/i.test(titles[j]))) ids ??= column;
    else if (kinds < 2) left.push(titles[j]);
    else if (numbers === n && !column.some(isCode) && !(CLASS.test(titles[j]) && kinds <= 50))
      features.push(j);
    else if (kinds === n && !ids) ids = column;
    else if (kinds <= Math.max(2, n / 2)) labels.push(labelOf(titles[j], column));
    else left.push(titles[j]);
  }
  const d = features.length;
  const values = new Float64Array(n * d);
  features.forEach((from, j) => {
    for (let i = 0; i < n; i += 1) values[i * d + j] = +columns[from][i].replace('−', '-');
  });
  const rest = left.length ? `; left out: ${left.join(', ')}` : '';
  const said = labels.map((label) => label.name).join(', ') || 'none';
  const note = `${n} rows, ${d} columns of numbers, labels: ${said}${rest}.`;
  return dataOf({ name, values, n, d, names: features.map((j) => titles[j]), ids, labels, note });
}

const TYPES = /** @type {Record<string, any>} */ ({
  u1: Uint8Array,
  f4: Float32Array,
  f8: Float64Array,
  i2: Int16Array,
  i4: Int32Array,
  u2: Uint16Array,
  u4: Uint32Array,
  b1: Uint8Array,
  i1: Int8Array,
});

/** @param {string} name @param {Uint8Array} bytes */
function readNpy(name, bytes) {
  const head = new DataView(bytes.buffer, bytes.byteOffset);
  const wide = bytes[6] > 1;
  const length = wide ? head.getUint32(8, true) : head.getUint16(8, true);
  const from = (wide ? 12 : 10) + length;
  const text = new TextDecoder().decode(bytes.subarray(10, from));
  const kind = /'descr': *'[<|=](\w\d)'/.exec(text)?.[1] ?? '';
  const shape = (/'shape': *\(([^)]*)\)/.exec(text)?.[1] ?? '').match(/\d+/g)?.map(Number) ?? [];
  if (!TYPES[kind] || text.includes("'fortran_order': True"))
    refuse(name, 'its numbers are in a rare order or type.');
  const raw = new TYPES[kind](bytes.slice(from).buffer);
  return arrayOf(name, /u1|f4|f8/.test(kind) ? raw : Float64Array.from(raw), shape);
}

/** Rows of an array, or images where it has three or four dimensions. @param {string} name @param {Values} values @param {number[]} shape */
function arrayOf(name, values, [n, ...sides]) {
  const d = sides.reduce((all, side) => all * side, 1);
  const images = sides.length === 2 || (sides.length === 3 && sides[2] === 3);
  if (!images && sides.length !== 1) refuse(name, `it has ${1 + sides.length} dimensions.`);
  if (n * d !== values.length) refuse(name, 'it is shorter than its header says.');
  let most = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) refuse(name, 'some of its numbers are missing or infinite.');
    most = Math.max(most, Math.abs(value));
  }
  const divide = values instanceof Uint8Array ? 255 : images ? most || 1 : 1;
  const provenance = { source: 'file', files: [name], ...(images && { image_range: [0, divide] }) };
  const names = images ? null : Array.from({ length: d }, (_, j) => `feature ${j + 1}`);
  const note = `${n} ${images ? `images of ${sides.join(' × ')}` : `rows of ${d} numbers`}.`;
  const parts = { shape: images ? sides : null, names, divide: images ? divide : 1, provenance };
  return dataOf({ name, values, n, d, note, ...parts });
}

/** @param {string} name @param {Uint8Array} bytes @returns {{shape: number[], body: Uint8Array}} */
function readIdx(name, bytes) {
  const dimensions = bytes[3];
  if (bytes[2] !== 8) refuse(name, 'its numbers are not bytes.');
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const shape = Array.from({ length: dimensions }, (_, i) => view.getUint32(4 + 4 * i));
  return { shape, body: bytes.slice(4 + 4 * dimensions) };
}

/** @param {File[]} files */
async function readImages(files) {
  const drawn = [];
  for (const file of files) {
    const bitmap = await createImageBitmap(file).catch(() => refuse(file.name, 'it is no image.'));
    const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
    const [w, h] = [bitmap.width, bitmap.height].map((side) =>
      Math.max(1, Math.round(side * scale)),
    );
    const context = /** @type {OffscreenCanvasRenderingContext2D} */ (
      new OffscreenCanvas(w, h).getContext('2d', { willReadFrequently: true })
    );
    context.fillStyle = '#fff'; // behind transparent ink
    context.fillRect(0, 0, w, h);
    context.imageSmoothingQuality = 'high';
    context.drawImage(bitmap, 0, 0, w, h);
    drawn.push({ w, h, pixels: context.getImageData(0, 0, w, h).data });
  }
  const [{ w, h }] = drawn;
  const other = drawn.findIndex((image) => image.w !== w || image.h !== h);
  if (other > 0)
    refuse(
      files[other].name,
      `it is ${drawn[other].w} × ${drawn[other].h}, the first image ${w} × ${h}.`,
    );
  const grey = drawn.every(({ pixels }) =>
    pixels.every((v, at) => at % 4 === 3 || v === pixels[at - (at % 4)]),
  );
  const channels = grey ? 1 : 3;
  const d = w * h * channels;
  const values = new Uint8Array(drawn.length * d);
  drawn.forEach(({ pixels }, i) => {
    for (let j = 0; j < d; j += 1)
      values[i * d + j] = pixels[4 * Math.floor(j / channels) + (j % channels)];
  });
  const ids =
    new Set(files.map((file) => file.name)).size === files.length
      ? files.map((file) => file.name)
      : null;
  const note = `${drawn.length} images of ${w} × ${h} pixels${grey ? '' : ' in colour'}.`;
  const shape = grey ? [h, w] : [h, w, 3];
  return dataOf({
    name: `${drawn.length} images`,
    values,
    n: drawn.length,
    d,
    shape,
    divide: 255,
    ids,
    note,
  });
}

/** Read what was dropped: one table or array, MNIST's files, or images. @param {File[]} files @param {(text: string) => void} say @returns {Promise<PageData>} */
export async function readFiles(files, say) {
  if (files.every(({ type }) => type.startsWith('image/')))
    return prepared(await readImages(files));
  /** @type {PageData | undefined} */ let data;
  /** @type {string[] | undefined} */ let classes;
  for (const file of files) {
    const { name } = file;
    say(`Reading ${name}`);
    const packed = name.endsWith('.gz');
    const stream = packed
      ? file.stream().pipeThrough(new DecompressionStream('gzip'))
      : file.stream();
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const plain = stem(`${name.replace(/\.gz$/, '')}.x`);
    if (bytes[0] === 0x93) data = readNpy(plain, bytes);
    else if (!bytes[0] && !bytes[1] && bytes[3] < 5) {
      const { shape, body } = readIdx(name, bytes);
      if (shape.length === 1) classes = Array.from(body, String);
      else data = arrayOf(plain, body, shape);
    } else if (/\.(csv|tsv|txt|data)$/i.test(plain)) data = readTable(plain, bytes);
    else refuse(name, 'it opens CSV, NPY, IDX (MNIST) and images.');
  }
  if (!data) return refuse(files[0].name, 'it has labels only; drop the images with it.');
  if (classes?.length === data.n) data.labels = [labelOf('label', classes)];
  else if (classes) refuse(data.name, `it has ${data.n} rows and ${classes.length} labels.`);
  return prepared(data);
}

/** A table with its columns standardised, as the app does by default. @param {PageData} data @returns {PageData} */
function prepared(data) {
  const { n, d, values } = data;
  if (data.shape) return data;
  const [offset, scale] = [new Float64Array(d), new Float64Array(d)];
  const made = new Float64Array(n * d);
  for (let j = 0; j < d; j += 1) {
    for (let i = 0; i < n; i += 1) offset[j] += values[i * d + j] / n;
    for (let i = 0; i < n; i += 1) scale[j] += (values[i * d + j] - offset[j]) ** 2 / n;
    scale[j] = Math.sqrt(scale[j]) || 1;
    for (let i = 0; i < n; i += 1) made[i * d + j] = (values[i * d + j] - offset[j]) / scale[j];
  }
  return { ...data, values: made, raw: values, offset, scale };
}

/** @typedef {{data: PageData, origin: Float64Array, state: FitState, said: Described, latent: Latent, selected: Uint8Array}} Whole */

/** @param {Whole} whole @returns {BlobPart[]} */
export function tableOf({ data, said, selected }) {
  const { n, ids, labels } = data;
  const { K, active, scores, membership } = said;
  const quoted = (/** @type {string} */ text) =>
    /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const components = Array.from({ length: K }, (_, k) => `component ${k + 1}`);
  const lines = [
    ['id', ...labels.map(({ name }) => quoted(name)), ...components, 'certainty', 'selected'].join(
      ',',
    ),
  ];
  for (let i = 0; i < n; i += 1) {
    const row = [
      ids ? quoted(ids[i]) : i,
      ...labels.map(({ names, codes }) => quoted(names[codes[i]])),
    ];
    for (let k = 0; k < K; k += 1)
      row.push(active[i * K + k] ? scores[i * K + k].toPrecision(7) : '');
    lines.push([...row, membership[i].toFixed(4), selected[i]].join(','));
  }
  return [`${lines.join('\n')}\n`];
}

/** An array as NPY. @param {ArrayLike<number> & ArrayBufferView} values @param {number[]} shape @param {string} kind */
function npy(values, shape, kind) {
  const sides = `(${shape.join(', ')}${shape.length === 1 ? ',' : ''})`;
  const text = `{'descr': '${kind}', 'fortran_order': False, 'shape': ${sides}, }`;
  const header = `${text}${' '.repeat(63 - ((text.length + 10) % 64))}\n`;
  const bytes = new Uint8Array(10 + header.length + values.byteLength);
  bytes.set([0x93, 78, 85, 77, 80, 89, 1, 0, header.length & 255, header.length >> 8]);
  bytes.set(new TextEncoder().encode(header), 10);
  bytes.set(
    new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
    10 + header.length,
  );
  return bytes;
}

/** Texts as NPY, four bytes a letter. @param {string[]} texts */
function npyOfTexts(texts) {
  const letters = texts.map((text) => [...text].map((letter) => letter.codePointAt(0) ?? 0));
  const width = letters.reduce((most, { length }) => Math.max(most, length), 1);
  const all = new Uint32Array(texts.length * width);
  letters.forEach((own, i) => all.set(own, i * width));
  return npy(all, [texts.length], `<U${width}`);
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

/** A zip whose members are as they are. @param {[string, Uint8Array][]} members @returns {BlobPart[]} */
function zip(members) {
  const [parts, central] = [/** @type {any[]} */ ([]), /** @type {any[]} */ ([])];
  let [at, size] = [0, 0];
  const put = (/** @type {[number, number][]} */ fields) => {
    const view = new DataView(new ArrayBuffer(fields.reduce((sum, [wide]) => sum + wide, 0)));
    let to = 0;
    for (const [wide, value] of fields) {
      if (wide === 2) view.setUint16(to, value, true);
      else view.setUint32(to, value, true);
      to += wide;
    }
    return view;
  };
  for (const [name, bytes] of members) {
    const title = new TextEncoder().encode(name);
    /** @type {[number, number][]} */ const about = [
      ...[
        [2, 20],
        [2, 0x800],
        [2, 0],
        [2, 0],
        [2, 0x21],
        [4, crc(bytes) >>> 0],
        [4, bytes.length],
        [4, bytes.length],
        [2, title.length],
        [2, 0],
      ],
    ];
    parts.push(put([[4, 0x04034b50], ...about]), title, bytes);
    central.push(
      put([[4, 0x02014b50], [2, 20], ...about, [2, 0], [2, 0], [2, 0], [4, 0], [4, at]]),
      title,
    );
    at += 30 + title.length + bytes.length;
    size += 46 + title.length;
  }
  const end = put([
    [4, 0x06054b50],
    [4, 0],
    [2, members.length],
    [2, members.length],
    [4, size],
    [4, at],
    [2, 0],
  ]);
  return [...parts, ...central, end];
}

/** JSON as Python writes it. @param {any} value @param {string} [comma] @param {string} [colon] @returns {string} */
function python(value, comma = ', ', colon = ': ') {
  const inner = (/** @type {any} */ one) => python(one, comma, colon);
  if (Array.isArray(value)) return `[${value.map(inner).join(comma)}]`;
  if (value && typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, one]) => inner(key) + colon + inner(one))
      .join(comma)}}`;
  return JSON.stringify(value).replace(
    /[^ -~]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** @param {BlobPart[]} parts */
async function sha256(parts) {
  const hash = await crypto.subtle.digest('SHA-256', await new Blob(parts).arrayBuffer());
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A session file with data, fit and selection, as appca/runs/session.py reads it. @param {Whole} whole */
export async function sessionOf({ data, origin, state, said, latent, selected }) {
  const { n, d, divide, shape, names, labels, provenance, name } = data;
  const { K, L } = said;
  const matrix = data.raw ?? data.values;
  const kind =
    matrix instanceof Uint8Array ? '|u1' : matrix instanceof Float32Array ? '<f4' : '<f8';
  const ids = data.ids ?? Array.from({ length: n }, (_, i) => String(i));
  const columns = labels.map(({ names: classes, codes }) =>
    Array.from(codes, (code) => classes[code]),
  );
  const about = {
    image_shape: shape,
    feature_names: names,
    labels: labels.map((label) => label.name),
  };
  const header = python({ shape: [n, d], dtype: kind, ...about });
  const digest = await sha256([
    header,
    matrix,
    python(ids),
    ...columns.map((column) => python(column)),
  ]);
  const table = { centre: true, divide: 1, pca: null, scale: 'feature' };
  const preprocessing = shape ? { centre: false, divide, pca: null, scale: 'none' } : table;
  const fixed = {
    inference: 'em',
    init: 'auto',
    mean: 'learned',
    accelerate: true,
    max_iter: 500,
    n_init: 1,
    random_state: 0,
    tol: 0.0001,
    w_update: 'auto',
  };
  const parameters = { ...fixed, n_components: K, n_active: L, latent_variance: latent };
  const config = {
    dataset: digest,
    model: 'aPPCA',
    parameters: Object.fromEntries(Object.entries(parameters).sort()),
    preprocessing,
    stopped_at: null,
  };
  const id = (await sha256([python(config, ',', ':')])).slice(0, 12);
  const value = said.density.reduce((sum, one) => sum + one, 0);
  const facts = {
    n_iter: 1,
    stop_reason: 'fitted in the browser',
    log_likelihood: value,
    likelihood: 'exact',
    likelihood_error: 0,
  };
  const info = { ...facts, n_rows: n, n_features: d, versions: {}, seconds: 0, stopped_at: null };
  const components = {
    names: Array(K).fill(''),
    rows: [...Array(K).keys()],
    turned: Array(K).fill(1),
  };
  const mean = Float64Array.from(origin, (one, j) => {
    let moved = one;
    for (let k = 0; k < K; k += 1) moved -= state.W[j * K + k] * state.shift[k];
    return moved;
  });
  const scale = Float64Array.from({ length: K }, (_, k) => {
    let [power, used] = [0, 0];
    for (let i = k; i < n * K; i += K)
      [power, used] = [power + said.scores[i] ** 2, used + said.active[i]];
    return Math.sqrt(power / (used || 1)) || 1;
  });
  const one = (/** @type {number} */ number) => npy(Float64Array.of(number), [], '<f8');
  const W = Float64Array.from(
    { length: K * d },
    (_, at) => state.W[(at % d) * K + Math.floor(at / d)],
  );
  /** @type {Record<string, Uint8Array>} */ const run = {
    components: npy(W, [K, d], '<f8'),
    mean: npy(mean, [d], '<f8'),
    noise_variance: one(state.noise),
    latent_variance: npy(state.latent, [K], '<f8'),
    explained_variance: npy(said.variance, [K], '<f8'),
    scale: npy(scale, [K], '<f8'),
    n_active: npy(BigInt64Array.of(BigInt(L)), [], '<i8'),
    log_likelihoods: npy(Float64Array.of(value), [1], '<f8'),
    pre_divide: one(shape ? divide : 1),
    pre_offset: npy(data.offset ?? new Float64Array(d), [d], '<f8'),
    pre_scale: npy(data.scale ?? new Float64Array(d).fill(1), [d], '<f8'),
    scores: npy(said.scores, [n, K], '<f4'),
    active: npy(said.active, [n, K], '|b1'),
    inclusion: npy(said.inclusion, [n, K], '<f4'),
    membership: npy(said.membership, [n], '<f4'),
    error: npy(said.error, [n], '<f4'),
    log_likelihood_rows: npy(said.density, [n], '<f8'),
  };
  const contents = {
    ...{ format: 'appca session', version: 1, versions: {}, selections: [], look: {}, maps: [] },
    dataset: { name, ...about, provenance, digest, included: true },
    runs: [{ config, info, name: null, components }],
    opened: id,
  };
  /** @type {[string, Uint8Array][]} */ const members = [
    ['session.json', new TextEncoder().encode(JSON.stringify(contents))],
    ['data/matrix.npy', npy(matrix, [n, d], kind)],
    ['data/ids.npy', npyOfTexts(ids)],
    ...columns.map(
      (column, i) =>
        /** @type {[string, Uint8Array]} */ ([`data/label_${i}.npy`, npyOfTexts(column)]),
    ),
    ...Object.entries(run).map(
      ([key, bytes]) => /** @type {[string, Uint8Array]} */ ([`runs/0/${key}.npy`, bytes]),
    ),
  ];
  if (selected.includes(1)) members.push(['selections/selected.npy', npy(selected, [n], '|b1')]);
  return zip(members);
}
