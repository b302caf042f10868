/** Words on the canvas: fonts, measured widths, a halo of the ground's colour. */

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

/** A text, shortened to a width. @param {CanvasRenderingContext2D} context @param {string} text @param {number} width @param {string} style */
export function cut(context, text, width, style) {
  if (widthOf(context, text, style) <= width) return text;
  let length = text.length - 1;
  while (length > 1 && widthOf(context, `${text.slice(0, length)}…`, style) > width) length -= 1;
  return `${text.slice(0, length).trimEnd()}…`;
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
