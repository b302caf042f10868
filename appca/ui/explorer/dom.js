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

/** Numbers as people write them: 1,681, −1,235 and 12.3; with a true minus. */
export function readable(value) {
  if (!Number.isFinite(value)) return '–';
  const digits = Math.abs(value) >= 100 ? 4 : 3;
  const rounded = Number.isInteger(value) ? value : Number(value.toPrecision(digits));
  const isLong = Math.abs(rounded) >= 1000; // no digit before the point is rounded away
  const text = isLong ? Math.round(value).toLocaleString('en-US') : String(rounded);
  return text.replaceAll('-', '−');
}
