/** Helpers: elements, icons in the style of Material Symbols, tiles as pictures, canvas text and lines, base64. */

/** Create an element; a function among its attributes listens to the event of that name. @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {string} name @param {Record<string, string | number | boolean | ((event: any) => void)>} [attributes] @param {...(Node | string)} children @returns {HTMLElementTagNameMap[T]} */
export function element(tag, name, attributes = {}, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  for (const [key, value] of Object.entries(attributes))
    if (typeof value === 'function') made.addEventListener(key, value);
    else made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** Create a paragraph in a muted style. @param {string} text */
export const quiet = (text) => element('p', 'appca-count', {}, text);

const ICONS = {
  pan: 'M8 12V5a1.4 1.4 0 0 1 2.8 0v5-7a1.4 1.4 0 0 1 2.8 0v7-5.5a1.4 1.4 0 0 1 2.8 0V12 8a1.4 1.4 0 0 1 2.6 0v7c0 4-2.5 6.500-6.300 6.500-3 0-4.600-1.400-6.100-4L4.300 13.200c-.9-1.700 1-2.900 2.200-1.600L8 13.200',
  lasso:
    'M7 18c-3-1-4.500-3.500-4.500-6.500C2.500 7 6.500 4 12 4s9.500 3 9.500 7-4 7-8.500 7c-2.500 0-4.500-.5-5-2s1-2.500 2.500-2 1.500 3-.5 6',
  box: 'M4 7V4h3M17 4h3v3M20 17v3h-3M7 20H4v-3M10.500 4h3M10.500 20h3M4 10.500v3M20 10.500v3',
  minus: 'M5 12h14',
  plus: 'M5 12h14M12 5v14',
  fit: 'M4 9V5h4M16 5h4v4M20 15v4h-4M8 19H4v-4M9 10h6v4H9z',
  play: 'M8 5.500v13l10.500-6.500z',
  pause: 'M8 5v14M16 5v14',
  back: 'M20 12H5M11 6l-6 6 6 6',
  tune: 'M4 7h9M19 7h1M4 17h1M11 17h9M13 4.500v5M5 14.500v5M16 4.500v5M8 14.500v5M13 7h3M5 17h3',
  bookmark: 'M7 4h10v16l-5-4-5 4z',
  list: 'M4 6h3v3H4zM4 15h3v3H4zM11 7.500h9M11 16.500h9',
  search: 'M10.500 17a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13M15.500 15.500 20 20',
  close: 'M7 7l10 10M17 7 7 17',
  undo: 'M8 5 4 9l4 4M4 9h10a5 5 0 0 1 0 10H9',
  redo: 'M16 5l4 4-4 4M20 9H10a5 5 0 0 0 0 10h5',
};

/** @param {keyof typeof ICONS} name */
export function icon(name) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  const size = { viewBox: '0 0 24 24', width: 18, height: 18, 'aria-hidden': true };
  const line = { fill: 'none', stroke: 'currentColor', 'stroke-width': 1.8 };
  const look = { ...size, ...line, 'stroke-linecap': 'round', 'stroke-linejoin': 'round' };
  for (const [key, value] of Object.entries(look)) made.setAttribute(key, String(value));
  path.setAttribute('d', ICONS[name]);
  made.append(path);
  return made;
}

/** @param {string} name @param {Record<string, string>} attributes @param {() => void} click @param {...(Node | string)} children */
export const button = (name, attributes, click, ...children) =>
  element('button', name, { type: 'button', ...attributes, click }, ...children);

/** Create a button with an icon; `word` is its accessible name and tooltip. @param {keyof typeof ICONS} name @param {string} word @param {() => void} run */
export const iconButton = (name, word, run) =>
  button('appca-tool', { title: word, 'aria-label': word }, run, icon(name));

/** Create a slider that starts at 0. @param {string} label @param {number} max @param {number} value @param {number} [step] */
export const range = (label, max, value, step = 1) =>
  element('input', '', { type: 'range', max, step, value, 'aria-label': label });

/** Draw a tile; ink is dark on a light page and light on a dark one. @param {HTMLCanvasElement} into @param {Uint8ClampedArray} bytes RGBA @param {Pick<SheetMeta, 'tile' | 'style'>} sheet @param {boolean} dark */
export function paint(into, bytes, { tile: [h, w, channels], style }, dark) {
  [into.width, into.height] = [w, h];
  for (let i = 0; i < bytes.length; i += 4) {
    if (channels === 1)
      bytes[i] = bytes[i + 1] = bytes[i + 2] = style === 'ink' && !dark ? 255 - bytes[i] : bytes[i];
    bytes[i + 3] = 255;
  }
  into.getContext('2d')?.putImageData(new ImageData(/** @type {any} */ (bytes), w, h), 0, 0);
  return into;
}

const FAMILY = '"Source Sans", "Source Sans 3", "Source Sans Pro", system-ui, sans-serif';

/** @param {number} size @param {number} [weight] */
export const font = (size, weight = 400) => `${weight} ${size}px ${FAMILY}`;

/** @type {Map<string, number>} */ const widths = new Map();

/** @param {CanvasRenderingContext2D} context @param {string} text @param {string} style */
export function widthOf(context, text, style) {
  const key = `${style}|${text}`;
  const cached = widths.get(key);
  if (cached !== undefined) return cached;
  context.font = style;
  const width = context.measureText(text).width;
  if (widths.size > 5000) widths.clear();
  widths.set(key, width);
  return width;
}

/** Shorten a text to a width; its end stays, because similar names differ there. @param {CanvasRenderingContext2D} context @param {string} text @param {number} width @param {string} style */
export function cut(context, text, width, style) {
  let [short, length] = [text, text.length];
  while (widthOf(context, short, style) > width && (length -= 1) > 0) {
    const end = length < 6 ? 0 : Math.floor(length / 3);
    short = `${text.slice(0, length - end).trimEnd()}…${text.slice(text.length - end)}`;
  }
  return short;
}

/** Stroke a path, filled or on a halo. @param {CanvasRenderingContext2D} context @param {{colour: string, width?: number, dash?: number[], fill?: string, halo?: string}} look @param {() => void} path */
export function trace(context, { colour, width = 1, dash = [], fill, halo }, path) {
  context.save();
  context.beginPath();
  path();
  if (fill) context.fillStyle = fill;
  if (fill) context.fill();
  context.setLineDash(dash);
  [context.strokeStyle, context.lineWidth] = [halo ?? colour, width + 2.75];
  if (halo) context.stroke();
  [context.strokeStyle, context.lineWidth] = [colour, width];
  context.stroke();
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {string} text @param {number} x @param {number} y top @param {{style: string, colour: string, halo?: string, align?: CanvasTextAlign}} look */
export function write(context, text, x, y, { style, colour, halo, align = 'left' }) {
  context.font = style;
  context.textAlign = align;
  context.textBaseline = 'top';
  if (halo) {
    context.lineWidth = 3;
    context.lineJoin = 'round';
    context.strokeStyle = halo;
    context.strokeText(text, x, y);
  }
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

/** Map the values of an object. @template A, B @param {Record<string, A>} given @param {(value: A, name: string) => B} make @returns {Record<string, B>} */
export const mapped = (given, make) =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [name, make(value, name)]));

/** @param {Uint8Array} bytes */
export function toBase64(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += 32768)
    text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(text);
}

/** @param {string} text */
export const ofBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
