/** Names and numbers as people read them. */

/** @param {import('../types.js').Meta} meta @param {number[]} components */
export function setName(meta, components) {
  return `{${components.map((index) => meta.components[index].number).join(',')}}`;
}

/** What a panel is called: by the names of its components where there are any, with the numbers. @param {import('../types.js').Meta} meta @param {{name: string, components: number[]}} panel */
export function panelTitle(meta, { name, components }) {
  const of = components.map((index) => meta.components[index]);
  if (name !== setName(meta, components) || !of.some((component) => component.name)) return name;
  return `${of.map((component) => component.name || component.number).join(' × ')} ${name}`;
}

/** Number and, when it has one, name of a component. @param {import('../types.js').Meta} meta @param {number} index */
export function componentName(meta, index) {
  const { number, name } = meta.components[index];
  return name ? `${number} ${name}` : `${number}`;
}

/** @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A whole number as "12,345". @param {number} count */
export const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ',');

/** A score with a true minus, which a rounded zero has not. @param {number} value @param {number} [digits] */
export const signed = (value, digits = 1) =>
  value
    .toFixed(digits)
    .replace(/^-(?=[0.]*$)/, '')
    .replace('-', '−');

/** @param {import('../types.js').Meta} meta @param {number} count */
export function countOf(meta, count) {
  const row = meta.words?.row ?? 'row';
  return `${grouped(count)} ${count === 1 ? row : (meta.words?.rows ?? `${row}s`)}`;
}

/** Numbers at round distances inside a range. @param {number} low @param {number} high @param {number} wanted */
export function ticks(low, high, wanted) {
  const raw = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((times) => times * power >= raw) ?? 10) * power;
  const values = [];
  for (let i = Math.ceil(low / step); i * step <= high; i += 1) values.push(i * step + 0);
  return { values, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}
