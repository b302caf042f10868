import { element, readable } from './dom.js';
import { SHAPE_NUMBERS } from './colours.js';

/**
 * What the colours mean: a chip a class (a click selects the class), or a bar for a number.
 */

/**
 * @param {HTMLElement} root
 * @param {Object} colour of the message, with codes
 * @param {function(number, Event): void} onClass called with the code of the class clicked
 */
export function fillLegend(root, colour, onClass) {
  const parts = colour.name ? [element('span', 'appca-legend-name', colour.name)] : [];
  if (colour.kind === 'category') {
    parts.push(...colour.names.map((name, code) => chip(colour, code, name, onClass)));
  } else if (colour.kind === 'number') parts.push(...bar(colour));
  root.replaceChildren(...parts);
}

function chip(colour, code, name, onClass) {
  const button = element('button', 'appca-chip', null, {
    type: 'button',
    title: `Select the rows of class ${name}`,
    'aria-pressed': 'false',
    'data-class': String(code),
  });
  const shape = colour.shapes ? colour.shapes[code] : 'square';
  const swatch = element('span', `appca-swatch appca-swatch-${shapeName(shape)}`);
  swatch.style.background = colour.table[code];
  button.append(swatch, element('span', 'appca-chip-name', name));
  button.addEventListener('click', (event) => onClass(code, event));
  return button;
}

function shapeName(shape) {
  return shape in SHAPE_NUMBERS ? shape : 'square';
}

function bar(colour) {
  const levels = colour.table.slice(0, -1); // the last one is for missing values
  const strip = element('span', 'appca-bar', null, { 'aria-hidden': 'true' });
  const stops = levels.filter((_, i) => i % 16 === 0 || i === levels.length - 1);
  strip.style.background = `linear-gradient(to right, ${stops.join(',')})`;
  const [low, high] = colour.limits ?? [0, 1];
  const [below, above] = colour.clipped;
  return [
    element('span', 'appca-bar-end', `${below ? '≤ ' : ''}${readable(low)}`),
    strip,
    element('span', 'appca-bar-end', `${above ? '≥ ' : ''}${readable(high)}`),
  ];
}

/** Mark the chips of classes that are selected as a whole and alone. */
export function pressChips(root, isPressed) {
  for (const button of root.querySelectorAll('.appca-chip')) {
    button.setAttribute('aria-pressed', String(isPressed(Number(button.dataset.class))));
  }
}

/** Rows of a class. */
export function rowsOfClass(codes, code) {
  const rows = [];
  for (let row = 0; row < codes.length; row += 1) if (codes[row] === code) rows.push(row);
  return rows;
}
