import { holds, toPixels } from './axes.js';

/**
 * Names written on a panel, such as those of classes on a map.
 */

const SIZE = 12; // pixels of the letters
const LINE = 15;
const TRIES = [-1, 1, -2, 2, -3, 3]; // lines up or down: clear of the point, then of other names

/**
 * Choose where names stand: each above its point, or a few lines off where another one is.
 *
 * @param {{text: string, x: number, y: number}[]} names the most important first
 * @param {Object} frame of the panel, see axes.js
 * @param {function(string): number} widthOf pixels of a text
 * @returns {{text: string, left: number, top: number}[]} middles, in pixels, of those in sight
 */
export function placeNames(names, frame, widthOf) {
  const taken = [];
  return names.flatMap(({ text, x, y }) => {
    const [left, top] = toPixels(frame, x, y);
    if (!holds(frame, left, top)) return [];
    const half = widthOf(text) / 2;
    const boxes = TRIES.map((lines) => ({ left, top: top + lines * LINE, half }));
    const box = boxes.find((one) => !taken.some((other) => overlap(one, other))) ?? boxes[0];
    taken.push(box);
    return [{ text, left: box.left, top: box.top }];
  });
}

function overlap(one, other) {
  const near = Math.abs(one.left - other.left) < one.half + other.half + 4;
  return near && Math.abs(one.top - other.top) < LINE;
}

/** Write a panel's names over its points, each with a rim of the page's ground. */
export function drawNames(context, panel, theme) {
  if (!panel.names.length) return;
  context.save();
  context.font = `600 ${SIZE}px ${theme.font}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.lineJoin = 'round';
  context.lineWidth = 3.5;
  context.strokeStyle = theme.background;
  context.fillStyle = theme.text;
  const widthOf = (text) => context.measureText(text).width;
  for (const { text, left, top } of placeNames(panel.names, panel.frame, widthOf)) {
    context.strokeText(text, left, top);
    context.fillText(text, left, top);
  }
  context.restore();
}
