/** The cards that panels stand on, with their axes through zero. */

import { rgb } from '../theme.js';
import { vertices } from './programs.js';

/** @typedef {{card: import('../types.js').Rect, plot: import('../types.js').Rect, zero: [number, number], focus: boolean, strength: number}} Ground */

/** @param {import('./gpu.js').Gpu} gpu @param {Ground[]} grounds @param {import('../theme.js').Theme} theme @param {import('./points.js').Look} look */
export function drawGrounds(gpu, grounds, theme, look) {
  const { gl, grounds: program } = gpu;
  if (!grounds.length) return;
  const flat = (/** @type {(one: Ground) => number[]} */ pick) => Float32Array.from(grounds.flatMap(pick));
  const made = vertices(gl, [
    { at: 0, data: flat(({ card }) => [card.x, card.y, card.w, card.h]), size: 4, kind: gl.FLOAT },
    { at: 1, data: flat(({ plot }) => [plot.x, plot.y, plot.x + plot.w, plot.y + plot.h]), size: 4, kind: gl.FLOAT },
    { at: 2, data: flat(({ zero, focus, strength }) => [...zero, focus ? 1 : 0, strength]), size: 4, kind: gl.FLOAT },
  ], 1);
  gl.useProgram(program.program);
  gl.uniform2f(program.at.uView, look.width, look.height);
  gl.uniform1f(program.at.uDpr, look.dpr);
  for (const [name, hex] of [['uFill', theme.panel], ['uLine', theme.line], ['uAxis', theme.axis], ['uAccent', theme.primary]]) {
    gl.uniform3fv(program.at[name], rgb(hex));
  }
  gl.bindVertexArray(made.array);
  gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, grounds.length);
  made.free();
}
