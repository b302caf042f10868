/** Points of a heavy view as a picture: drawn in chunks while nothing moves, shifted and scaled meanwhile. */

import { drawPoints, passesOf } from './points.js';
import { clamp } from '../layout/rect.js';
import { texture, vertices } from './programs.js';

/** @typedef {import('./gpu.js').Gpu} Gpu @typedef {import('./points.js').Job} Job @typedef {import('./points.js').Look} Look */
/** @typedef {import('../layout/camera.js').Camera} Camera @typedef {import('../layout/place.js').Placed} Placed @typedef {import('../types.js').Rect} Rect */
/** @typedef {{texture: WebGLTexture, target: WebGLFramebuffer, width: number, height: number}} Sheet */
/** @typedef {{source: WebGLVertexArrayObject, base: number, first: number, count: number, passes: number[]}} Chunk */

const UNDER = 0.4; // strength of the last picture under a sample of the next

export class Layer {
  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    /** @type {(Sheet | null)[]} */
    this.sheets = [null, null];
    this.key = ''; // of the picture that is shown
    this.building = '';
    /** @type {Chunk[]} */
    this.queue = [];
    /** @type {Camera[]} cameras the picture was drawn from, one a view */
    this.cameras = [];
    /** @type {Camera[]} */
    this.next = [];
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
