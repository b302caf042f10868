/** Format names and numbers for people. */

/** @param {Meta} meta @param {number[]} components */
export function setName(meta, components) {
  return `{${components.map((index) => meta.components[index].number).join(',')}}`;
}

/** Return a panel's title: the numbers of its components, with their names, if any. @param {Meta} meta @param {{name: string, components: number[]}} panel */
export function panelTitle(meta, { name, components }) {
  const of = components.map((index) => meta.components[index]);
  if (name !== setName(meta, components) || !of.some((component) => component.name)) return name;
  return `${of.map((component) => component.name || component.number).join(' × ')} ${name}`;
}

/** Return a component's number, with its name if it has one. @param {Meta} meta @param {number} index */
export function componentName(meta, index) {
  const { number, name } = meta.components[index];
  return name ? `${number} ${name}` : `${number}`;
}

/** @param {string} text */
export const capital = (text) => text.replace(/^[a-z](?=[a-z ])/, (a) => a.toUpperCase());

const DIGITS = new Intl.NumberFormat('en', { useGrouping: 'min2', maximumSignificantDigits: 5 });
/** Format an integer as "12,345". @param {number} count */
export const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ',');

/** Return a row's number as pages show it, counted from 1, or from 0 if the ids start at 0. @param {Meta} meta @param {number} row */
export const rowNumber = (meta, row) => grouped(row + (meta.words?.first ?? 0));

/** Format a score with a minus sign; a rounded zero has no sign. @param {number} value @param {number} [digits] */
export const signed = (value, digits = 1) =>
  value.toFixed(digits).replace(/^-/, (_, at, text) => (/[1-9]/.test(text) ? '−' : ''));

/** @param {Meta} meta @param {number} count */
export function countOf(meta, count) {
  const row = meta.words?.row ?? 'row';
  return `${grouped(count)} ${count === 1 ? row : (meta.words?.rows ?? `${row}s`)}`;
}

/** Return round numbers inside a range. @param {number} low @param {number} high @param {number} wanted */
export function ticks(low, high, wanted) {
  const raw = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((times) => times * power >= raw) ?? 10) * power;
  const values = [];
  for (let i = Math.ceil(low / step); i * step <= high; i += 1) values.push(i * step + 0);
  return { values, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** @typedef {{id: string, lines: {title: string, value: string}[]}} Said */

/** Return a function from a row to its value on a line, as text. @param {Scene} scene @param {Line} line @returns {Promise<(row: number) => string>} */
async function reader(scene, { kind, buffer, names = [] }) {
  if (kind === 'text') {
    const texts = await scene.texts(buffer);
    return (row) => String(texts[row] ?? '');
  }
  const wide =
    scene.meta.buffers?.[buffer]?.[0] ??
    (kind === 'number' ? 'f4' : names.length > 255 ? 'u2' : 'u1');
  const values = await scene.array(buffer, wide);
  if (kind === 'category') return (row) => names[values[row]] ?? '';
  return (row) => (Number.isFinite(values[row]) ? DIGITS.format(values[row]) : '');
}

/** @param {Stage} stage @param {number} row @returns {Promise<Said>} */
export async function saidOf({ scene, callbacks }, row) {
  const { hover } = scene.meta;
  if (!hover) {
    const [text] = (await callbacks.describe?.([row])) ?? [];
    return { id: '', lines: (text ?? []).map((value) => ({ title: '', value })) };
  }
  const ids = hover.ids ? await scene.texts(hover.ids) : null;
  const readers = await Promise.all(hover.lines.map((line) => reader(scene, line)));
  const lines = hover.lines
    .map(({ title }, i) => ({ title, value: readers[i](row) }))
    .filter(({ value }) => value);
  return { id: ids ? String(ids[row]) : '', lines };
}

const MOST_EQUAL = 20; // rows listed per line
/** Find, for each line, rows whose id or text equals the query, or else the first that contains it; numbers must be equal. @param {Scene} scene @param {string} query in lower case @param {string} [but] title of a line to leave out */
export async function rowsWith(scene, query, but) {
  const { hover } = scene.meta;
  /** @type {{title: string, value: string, row: number}[]} */ const hits = [];
  const lines = [
    ...(hover?.ids ? [/** @type {Line} */ ({ title: 'Id', kind: 'text', buffer: hover.ids })] : []),
    ...(hover?.lines ?? []),
  ];
  for (const line of lines.filter(({ title }) => title !== but)) {
    const read = await reader(scene, line);
    const most = line.buffer === hover?.ids ? MOST_EQUAL : 1; // names that contain the text
    /** @type {number[][]} */ const [equal, parts] = [[], []];
    for (let row = 0; row < scene.rows && equal.length < MOST_EQUAL; row += 1) {
      const value = read(row).toLowerCase();
      if (value === query) equal.push(row);
      else if (parts.length < most && line.kind !== 'number' && value.includes(query))
        parts.push(row);
    }
    const found = equal.length ? equal : parts;
    for (const row of found) hits.push({ title: line.title, value: read(row), row });
  }
  return hits;
}
