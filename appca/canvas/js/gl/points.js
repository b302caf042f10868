/** Points of many panels in one call, the grounds below them, and the layer that keeps what was drawn. */

import { clamp } from '../layout/geometry.js';
import { pointToPage } from '../layout/place.js';
import { rgb } from '../theme.js';
import { texture, vertices } from './gpu.js';

/** @typedef {{array: WebGLVertexArrayObject, x?: number[], y?: number[], mode?: number, t?: number, fade?: [number, number]}} Source */

/** Set what points and images have in common. @param {Gpu} gpu @param {import('./gpu.js').Program} program @param {Look} look @param {number} base @param {Partial<Source>} source */
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

/** @param {Gpu} gpu @param {Look} look @param {Source} source @param {number} base @param {number[]} firsts @param {number[]} counts @param {number[]} [passes] */
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

/** Draw only within a part of the page. @param {WebGL2RenderingContext} gl @param {Look} look @param {Rect} rect */
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

/** How many of a panel's points are drawn where the view has so many: more than cover its pixels cannot be distinguished. @param {Placed} spot @param {number} all */
export const drawnOf = ({ panel: { count }, plot }, all) =>
  all <= ALL ? count : Math.min(count, Math.max(2000, Math.ceil(A_PIXEL * plot.w * plot.h)));

/** @param {Placed[]} placed */
export const pointsIn = (placed) => placed.reduce((sum, { panel }) => sum + panel.count, 0);

/** Ranges of the panels shown, at most `budget` points in all, each panel by its share. @param {Placed[]} placed @param {number} budget @returns {Job[]} */
export function jobsOf(placed, budget) {
  const all = pointsIn(placed);
  const drawn = placed.reduce((sum, spot) => sum + drawnOf(spot, all), 0);
  const share = Math.min(1, budget / Math.max(1, drawn));
  /** @type {Map<object, Job>} */ const jobs = new Map();
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

/** @typedef {{card: Rect, plot: Rect, zero: [number, number], focus: boolean, strength: number, apart?: boolean}} Ground `apart`: no other card lies over it */

/** The ground of a panel. @param {Placed} spot @returns {Ground} */
export const groundOf = (spot) => ({
  card: spot.card,
  plot: spot.plot,
  zero: spot.part.layout.kind === 'map' || spot.panel.other ? [-9, -9] : pointToPage(spot, 0, 0),
  focus: false,
  strength: spot.strength,
});

/** Edges and axes are shaded; what is between them is cleared to its colour, the cheapest way to fill. @param {Gpu} gpu @param {Ground[]} grounds @param {Theme} theme @param {Look} look @param {Rect} view */
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

/** @typedef {{texture: WebGLTexture, target: WebGLFramebuffer, width: number, height: number}} Sheet */
/** @typedef {{source: WebGLVertexArrayObject, base: number, first: number, count: number, passes: number[]}} Chunk */

const UNDER = 0.4; // strength of the last picture under a sample of the next

export class Layer {
  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    /** @type {(Sheet | null)[]} */ this.sheets = [null, null];
    this.key = ''; // of the picture that is shown
    this.building = '';
    /** @type {Chunk[]} */ this.queue = [];
    /** @type {Camera[]} cameras the picture was drawn from, one a view */ this.cameras = [];
    /** @type {Camera[]} */ this.next = [];
    this.chunk = 80000; // points at a time, adapted to how long they take
    /** @type {{sync: WebGLSync, sent: number}[]} of the chunks on their way: the card has the next when one is through */
    this.fences = [];
    this.through = 0; // when the last one was
  }

  /** Begin another picture; `key` says of what. @param {string} key @param {Job[]} jobs @param {Look} look @param {Camera[]} cameras */
  begin(key, jobs, look, cameras) {
    const { gl } = this.gpu;
    const [width, height] = [gl.drawingBufferWidth, gl.drawingBufferHeight];
    let back = this.sheets[1];
    if (!back || back.width !== width || back.height !== height)
      back = this.sheets[1] = this.sheet(back, width, height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, back.target);
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.building = key;
    this.forget(this.fences.length);
    this.next = cameras;
    this.queue = passesOf(look).flatMap((pass) =>
      jobs.flatMap((job) =>
        job.firsts.map((first, i) => ({
          source: this.gpu.layout(job.layout).array,
          base: job.base,
          first,
          count: pass === 2 ? job.fulls[i] : job.counts[i],
          passes: [pass],
        })),
      ),
    );
  }

  /** Another picture in one go, for a few points, over the last one where it shows the same places. @param {string} key @param {Job[]} jobs @param {Look} look @param {Camera[]} cameras @param {Placed[]} same panels */
  quick(key, jobs, look, cameras, same) {
    const { gl } = this.gpu;
    this.begin(key, jobs, look, cameras);
    if (same.length) {
      const page = { x: 0, y: 0, w: look.width, h: look.height };
      gl.bindFramebuffer(gl.FRAMEBUFFER, /** @type {Sheet} */ (this.sheets[1]).target);
      this.show(same, look, page, page, UNDER);
    }
    this.draw(look, Infinity);
    this.swap();
  }

  /** Draw the next chunk when the last but one is through; true when the picture stands. @param {Look} look */
  step(look) {
    const { gl } = this.gpu;
    const now = performance.now();
    while (
      this.fences.length &&
      gl.getSyncParameter(this.fences[0].sync, gl.SYNC_STATUS) === gl.SIGNALED
    ) {
      const took = now - Math.max(this.through, this.fences[0].sent);
      this.chunk = clamp(this.chunk * (took > 60 ? 0.7 : took < 28 ? 1.6 : 1), 40000, 600000);
      this.through = now;
      this.forget(1);
    }
    if (!this.queue.length) return this.fences.length ? false : this.swap();
    if (this.fences.length > 1) return false;
    this.draw(look, this.chunk);
    this.fences.push({
      sync: /** @type {WebGLSync} */ (gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0)),
      sent: now,
    });
    gl.flush();
    return false;
  }

  /** @private @param {number} count of the first fences */
  forget(count) {
    for (const { sync } of this.fences.splice(0, count)) this.gpu.gl.deleteSync(sync);
  }

  /** @private @param {Look} look @param {number} left points */
  draw(look, left) {
    const { gl } = this.gpu;
    gl.bindFramebuffer(gl.FRAMEBUFFER, /** @type {Sheet} */ (this.sheets[1]).target);
    while (left > 0 && this.queue.length) {
      const { source, base, passes } = this.queue[0];
      const firsts = [];
      const counts = [];
      while (
        left > 0 &&
        this.queue[0]?.source === source &&
        this.queue[0].base === base &&
        this.queue[0].passes[0] === passes[0]
      ) {
        const chunk = this.queue[0];
        const count = Math.min(chunk.count, Math.max(1, Math.round(left)));
        firsts.push(chunk.first);
        counts.push(count);
        left -= count;
        if (count === chunk.count) this.queue.shift();
        else {
          chunk.first += count;
          chunk.count -= count;
        }
      }
      drawPoints(this.gpu, look, { array: source }, base, firsts, counts, passes);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  /** @private */
  swap() {
    [this.sheets[0], this.sheets[1]] = [this.sheets[1], this.sheets[0]];
    this.key = this.building;
    this.cameras = this.next;
    this.building = '';
    return true;
  }

  /** Show panels' parts of the picture: what was drawn in one rectangle of the page fills another. @param {Placed[]} placed @param {Look} look @param {Rect} to @param {Rect} from @param {number} strength */
  show(placed, { width, height }, to, from, strength = 1) {
    const { gl, blit } = this.gpu;
    if (!this.sheets[0]) return;
    const made = vertices(
      gl,
      { 0: [Float32Array.from(placed.flatMap(({ card: { x, y, w, h } }) => [x, y, w, h])), 4] },
      1,
    );
    gl.useProgram(blit.program);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.sheets[0].texture);
    const filter = to.w === from.w ? gl.NEAREST : gl.LINEAR; // unscaled, pixels fall on pixels
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, filter);
    gl.uniform1i(blit.at.uLayer, 0);
    gl.uniform1f(blit.at.uStrength, strength);
    const [kx, ky] = [from.w / to.w, from.h / to.h];
    gl.uniform4f(
      blit.at.uCarry,
      kx / gl.drawingBufferWidth,
      ky / gl.drawingBufferHeight,
      (from.x - to.x * kx) / width,
      1 - ky + (to.y * ky - from.y) / height,
    );
    gl.uniform4f(blit.at.uTo, to.x, to.y, to.w, to.h);
    gl.uniform2f(blit.at.uView, width, height);
    gl.bindVertexArray(made.array);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, placed.length);
    made.free();
  }

  /** @private @param {Sheet | null} old @param {number} width @param {number} height @returns {Sheet} */
  sheet(old, width, height) {
    const { gl } = this.gpu;
    if (old) {
      gl.deleteTexture(old.texture);
      gl.deleteFramebuffer(old.target);
    }
    const made = texture(gl, gl.TEXTURE_2D, gl.LINEAR);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
    const target = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, made, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return { texture: made, target, width, height };
  }
}
