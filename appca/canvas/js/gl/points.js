/** Points of many panels in one call: prefixes of the panels' ranges, so that fewer are a fair sample. */

import { rgb } from '../theme.js';

/**
 * @typedef {object} Look what all points share
 * @property {number} width @property {number} height @property {number} dpr
 * @property {boolean} selecting @property {number} only a code shown alone, or -1 @property {string} grey
 *
 * @typedef {object} Job points of one layout: firsts and counts in its buffer
 * @property {import('../scene/layouts.js').Layout} layout @property {number} base of its panels in the table
 * @property {number[]} firsts @property {number[]} counts @property {number[]} fulls where nothing is left out
 *
 * @typedef {{array: WebGLVertexArrayObject, x?: number[], y?: number[], mode?: number, t?: number, fade?: [number, number]}} Source
 */

/** Set what points and images have in common. @param {import('./gpu.js').Gpu} gpu @param {import('./programs.js').Program} program @param {Look} look @param {number} base @param {Partial<Source>} source */
export function prepare(gpu, program, look, base, source) {
  const { gl } = gpu;
  const { at } = program;
  gl.useProgram(program.program);
  [gpu.table, gpu.palette, gpu.codes, gpu.flags].forEach((texture, i) => {
    gl.activeTexture(gl.TEXTURE0 + i);
    gl.bindTexture(gl.TEXTURE_2D, texture);
  });
  gl.uniform1i(at.uPanels, 0);
  gl.uniform1i(at.uPalette, 1);
  gl.uniform1i(at.uCodes, 2);
  gl.uniform1i(at.uFlags, 3);
  gl.uniform4fv(at.uX, source.x ?? [1, 0, 0, 0]);
  gl.uniform4fv(at.uY, source.y ?? [0, 1, 0, 0]);
  gl.uniform2f(at.uView, look.width, look.height);
  gl.uniform2fv(at.uFade, source.fade ?? [1, 1]);
  gl.uniform1i(at.uBase, base);
  gl.uniform1i(at.uMode, source.mode ?? 0);
  gl.uniform1f(at.uT, source.t ?? 1);
  gl.uniform1i(at.uSelecting, look.selecting ? 1 : 0);
  gl.uniform1i(at.uOnly, look.only);
  gl.uniform3fv(at.uGrey, rgb(look.grey));
  gl.uniform1f(at.uDpr, look.dpr);
}

/** @param {import('./gpu.js').Gpu} gpu @param {Look} look @param {Source} source @param {number} base @param {number[]} firsts @param {number[]} counts @param {number[]} [passes] */
export function drawPoints(gpu, look, source, base, firsts, counts, passes = passesOf(look)) {
  const { gl, multi, points } = gpu;
  prepare(gpu, points, look, base, source);
  gl.bindVertexArray(source.array);
  for (const pass of passes) {
    gl.uniform1i(points.at.uPass, pass);
    if (multi) multi.multiDrawArraysWEBGL(gl.POINTS, firsts, 0, counts, 0, firsts.length);
    else firsts.forEach((first, i) => gl.drawArrays(gl.POINTS, first, counts[i]));
  }
  gl.bindVertexArray(null);
}

/** Draw only within a part of the page. @param {WebGL2RenderingContext} gl @param {Look} look @param {import('../types.js').Rect} rect */
export function scissor(gl, { dpr, height }, { x, y, w, h }) {
  gl.scissor(
    Math.round(x * dpr),
    Math.round((height - y - h) * dpr),
    Math.max(0, Math.round(w * dpr)),
    Math.max(0, Math.round(h * dpr)),
  );
}

/** Grey points first, then those that stand out. @param {Look} look */
export const passesOf = (look) => (look.selecting || look.only >= 0 ? [1, 2] : [0]);

const ALL = 700000; // points; in a view of more, each panel draws a sample
const A_PIXEL = 1.5; // points of such a sample

/** How many of a panel's points are drawn where the view has so many: more than cover its pixels cannot be distinguished. @param {import('../layout/place.js').Placed} spot @param {number} all */
export const drawnOf = ({ panel: { count }, plot }, all) =>
  all <= ALL ? count : Math.min(count, Math.max(2000, Math.ceil(A_PIXEL * plot.w * plot.h)));

/** @param {import('../layout/place.js').Placed[]} placed */
export const pointsIn = (placed) => placed.reduce((sum, { panel }) => sum + panel.count, 0);

/** Ranges of the panels shown, at most `budget` points in all, each panel by its share. @param {import('../layout/place.js').Placed[]} placed @param {number} budget @returns {Job[]} */
export function jobsOf(placed, budget) {
  const all = pointsIn(placed);
  const drawn = placed.reduce((sum, spot) => sum + drawnOf(spot, all), 0);
  const share = Math.min(1, budget / Math.max(1, drawn));
  /** @type {Map<object, Job>} */
  const jobs = new Map();
  for (const spot of placed) {
    const { part, panel, strength } = spot;
    if (strength <= 0.02) continue;
    const job = jobs.get(part) ?? {
      layout: part.layout,
      base: part.base,
      firsts: [],
      counts: [],
      fulls: [],
    };
    const count = Math.ceil(drawnOf(spot, all) * share);
    job.firsts.push(panel.start);
    job.counts.push(count);
    job.fulls.push(share === 1 ? panel.count : count);
    jobs.set(part, job);
  }
  return [...jobs.values()];
}
