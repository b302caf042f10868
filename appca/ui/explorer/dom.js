/**
 * Elements of the page. Text is only ever set as text, never as markup.
 */

/**
 * Make an element.
 *
 * @param {string} tag
 * @param {string} className
 * @param {?string} text
 * @param {Object<string, string>} attributes
 */
export function element(tag, className, text = null, attributes = {}) {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** An icon of one path, in the colour of the text around it. */
export function icon(path) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS(space, 'path');
  line.setAttribute('d', path);
  svg.append(line);
  return svg;
}

/** Numbers as people write them: 1,681 and 12.3. */
export function readable(value) {
  if (!Number.isFinite(value)) return '–';
  if (Number.isInteger(value)) return value.toLocaleString('en-US').replace('-', '−');
  const digits = Math.abs(value) >= 100 ? 1 : 3;
  return Number(value.toPrecision(digits === 1 ? 4 : 3)).toString().replace('-', '−');
}
