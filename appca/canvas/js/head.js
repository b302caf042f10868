/** The head of a picture that stands alone: what is shown, the colours, and how many rows are selected. */

import { element } from './parts/dom.js';
import { grouped } from './scene/names.js';

/** Key to name, the one that opens first first. @param {Meta} meta @returns {Record<string, string>} */
function layoutsOf({ layouts, first }) {
  const names = Object.keys(layouts).sort((a, b) => Number(b === first) - Number(a === first));
  return Object.fromEntries(names.map((name) => [name, layouts[name].title]));
}

/** @param {Meta} meta @param {() => Handle} handle @param {string} [colouring] shown first @param {string} [layout] shown first @returns {{box: HTMLElement, count: (n: number) => void}} */
export function head(meta, handle, colouring, layout) {
  const colourings = Object.fromEntries(
    Object.entries(meta.colourings).map(([key, about]) => [key, about.title || key]),
  );
  const output = element('output', 'appca-count');
  const box = element(
    'div',
    'appca-head',
    {},
    choice(
      'View',
      layoutsOf(meta),
      (chosen) => handle().update({ options: { layout: chosen } }),
      layout,
    ),
    choice(
      'Colour',
      colourings,
      (chosen) => handle().update({ options: { colouring: chosen } }),
      colouring,
    ),
    output,
  );
  return {
    box,
    count: (n) => {
      output.textContent = n ? `${grouped(n)} selected` : '';
    },
  };
}

/** @param {string} label @param {Record<string, string>} names @param {(key: string) => void} take @param {string} [chosen] else the first */
function choice(label, names, take, chosen) {
  const box = element('select', '', { 'aria-label': label });
  for (const [key, name] of Object.entries(names))
    box.add(new Option(name, key, key === chosen, key === chosen));
  box.addEventListener('change', () => take(box.value));
  return box;
}
