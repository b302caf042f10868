/** Id and lines of a row as the hover card and the search have them; asked of the host where they are not in the scene. */

/** @typedef {{title: string, kind: 'category' | 'number' | 'text', buffer: string, names?: string[]}} Line */
/** @typedef {{id: string, lines: {title: string, value: string}[]}} Said */

/** All values of a line as texts. @param {import('./scene.js').Scene} scene @param {Line} line @returns {Promise<(row: number) => string>} */
export async function reader(scene, { kind, buffer, names = [] }) {
  if (kind === 'text') {
    const texts = await scene.texts(buffer);
    return (row) => String(texts[row] ?? '');
  }
  const wide =
    scene.meta.buffers?.[buffer]?.[0] ??
    (kind === 'number' ? 'f4' : names.length > 255 ? 'u2' : 'u1');
  const values = await scene.array(buffer, wide);
  if (kind === 'category') return (row) => names[values[row]] ?? '';
  return (row) =>
    Number.isFinite(values[row]) ? Number(values[row].toPrecision(5)).toLocaleString('en') : '';
}

/** @param {import('../stage.js').Stage} stage @param {number} row @returns {Promise<Said>} */
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

/** The first row whose id or text is what is looked for, else contains it; by line, numbers only if they are it. @param {import('./scene.js').Scene} scene @param {string} query lower case @param {string} [but] the title of a line that is left out */
export async function rowsWith(scene, query, but) {
  const { hover } = scene.meta;
  /** @type {{title: string, value: string, row: number}[]} */
  const hits = [];
  const lines = [
    ...(hover?.ids ? [/** @type {Line} */ ({ title: 'Id', kind: 'text', buffer: hover.ids })] : []),
    ...(hover?.lines ?? []),
  ];
  for (const line of lines.filter(({ title }) => title !== but)) {
    const read = await reader(scene, line);
    let part = -1;
    let exact = -1;
    for (let row = 0; row < scene.rows && exact < 0; row += 1) {
      const value = read(row).toLowerCase();
      if (value === query) exact = row;
      else if (part < 0 && line.kind !== 'number' && value.includes(query)) part = row;
    }
    const row = exact >= 0 ? exact : part;
    if (row >= 0) hits.push({ title: line.title, value: read(row), row });
  }
  return hits;
}
