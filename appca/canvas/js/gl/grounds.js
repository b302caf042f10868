/** The cards that panels stand on, with their axes through zero. */

import { pointToPage } from '../layout/place.js';
import { rgb } from '../theme.js';
import { vertices } from './programs.js';
import { scissor } from './points.js';

/** @typedef {import('../types.js').Rect} Rect */
/** @typedef {{card: Rect, plot: Rect, zero: [number, number], focus: boolean, strength: number, apart?: boolean}} Ground `apart`: no other card lies over it */

/** The ground of a panel. @param {import('../layout/place.js').Placed} spot @returns {Ground} */
export const groundOf = (spot) => ({
  card: spot.card,
  plot: spot.plot,
  zero: spot.part.layout.kind === 'map' || spot.panel.other ? [-9, -9] : pointToPage(spot, 0, 0),
  focus: false,
  strength: spot.strength,
});

/** Edges and axes are shaded; what is between them is cleared to its colour, the cheapest way to fill. @param {import('./gpu.js').Gpu} gpu @param {Ground[]} grounds @param {import('../theme.js').Theme} theme @param {import('./points.js').Look} look @param {Rect} view */
export function drawGrounds(gpu, grounds, theme, look, view) {
  const { gl, grounds: program } = gpu;
  const flat = (/** @type {(ground: Ground) => number[]} */ pick) =>
    Float32Array.from(grounds.flatMap(pick));
  const between = flat((ground) => betweenEdges(ground, look.dpr));
  gl.clearColor(...rgb(theme.panel), 1);
  for (let at = 0; at < between.length; at += 4) {
    const [x, y, right, bottom] = between.subarray(at, at + 4);
    const left = Math.max(x, view.x);
    scissor(gl, look, { x: left, y, w: Math.min(right, view.x + view.w) - left, h: bottom - y });
    if (right > left) gl.clear(gl.COLOR_BUFFER_BIT);
  }
  scissor(gl, look, view);
  const made = vertices(
    gl,
    {
      0: [flat(({ card }) => [card.x, card.y, card.w, card.h]), 4],
      1: [flat(({ plot }) => [plot.x, plot.y, plot.x + plot.w, plot.y + plot.h]), 4],
      2: [flat(({ zero, focus, strength }) => [...zero, focus ? 1 : 0, strength]), 4],
      3: [between, 4],
    },
    1,
  );
  gl.useProgram(program.program);
  gl.uniform2f(program.at.uView, look.width, look.height);
  gl.uniform1f(program.at.uDpr, look.dpr);
  gl.uniform2f(
    program.at.uPixel,
    look.width / gl.drawingBufferWidth,
    look.height / gl.drawingBufferHeight,
  );
  for (const [name, hex] of [
    ['uFill', theme.panel],
    ['uLine', theme.line],
    ['uAxis', theme.axis],
    ['uAccent', theme.primary],
  ]) {
    gl.uniform3fv(program.at[name], rgb(hex));
  }
  gl.bindVertexArray(made.array);
  gl.drawArraysInstanced(gl.TRIANGLES, 0, 36, grounds.length);
  made.free();
}

/** Corners, in whole pixels, of what edge and rounded corners leave of a card; nothing where it is not opaque. @param {Ground} ground @param {number} dpr */
function betweenEdges({ card: { x, y, w, h }, strength, apart }, dpr) {
  const rim = apart && strength === 1 ? 4 + 0.3 * Math.min(12, 0.02 * w) : Infinity; // the shader has the radius
  const whole = (/** @type {number} */ at) => Math.round(at * dpr) / dpr;
  const [left, top] = [whole(x + Math.min(rim, w / 2)), whole(y + Math.min(rim, h / 2))];
  return [left, top, Math.max(left, whole(x + w - rim)), Math.max(top, whole(y + h - rim))];
}
