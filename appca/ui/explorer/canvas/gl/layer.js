/** Points of a heavy view as a picture: drawn in chunks while nothing moves, shifted and scaled meanwhile. */

import { drawPoints, passesOf } from './points.js';
import { texture } from './programs.js';

/** @typedef {import('./gpu.js').Gpu} Gpu @typedef {import('./points.js').Job} Job @typedef {import('./points.js').Look} Look */
/** @typedef {import('../layout/camera.js').Camera} Camera */
/** @typedef {{texture: WebGLTexture, target: WebGLFramebuffer, width: number, height: number}} Sheet */
/** @typedef {{source: WebGLVertexArrayObject, base: number, first: number, count: number, passes: number[]}} Chunk */

const ALL = { x: 0, y: 0, w: 1, h: 1 };
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
    this.chunk = 200000; // points at a time, adapted to how long they take
    /** @type {WebGLSync | null} of the chunk on its way */
    this.fence = null;
    this.sent = 0;
  }

  /** Begin another picture; `key` says of what. @param {string} key @param {Job[]} jobs @param {Look} look @param {Camera[]} cameras */
  begin(key, jobs, look, cameras) {
    const { gl } = this.gpu;
    const [width, height] = [gl.drawingBufferWidth, gl.drawingBufferHeight];
    let back = this.sheets[1];
    if (!back || back.width !== width || back.height !== height) back = this.sheets[1] = this.sheet(back, width, height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, back.target);
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.building = key;
    if (this.fence) gl.deleteSync(this.fence);
    this.fence = null;
    this.next = cameras;
    this.queue = passesOf(look).flatMap((pass) => jobs.flatMap((job) => job.firsts.map((first, i) => (
      { source: this.gpu.layout(job.layout).array, base: job.base, first, count: pass === 2 ? job.fulls[i] : job.counts[i], passes: [pass] }))));
  }

  /** Another picture in one go, for a few points, over the last one where it shows the same places. @param {string} key @param {Job[]} jobs @param {Look} look @param {Camera[]} cameras @param {boolean} same */
  quick(key, jobs, look, cameras, same) {
    const { chunk, gpu: { gl } } = this;
    this.begin(key, jobs, look, cameras);
    if (same) {
      gl.bindFramebuffer(gl.FRAMEBUFFER, /** @type {Sheet} */ (this.sheets[1]).target);
      this.show(ALL, ALL, UNDER);
    }
    this.chunk = Infinity;
    this.step(look);
    this.chunk = chunk;
    if (this.fence) this.gpu.gl.deleteSync(this.fence);
    this.fence = null;
    if (this.building) this.swap();
  }

  /** Draw the next chunk when the last is through; true when the picture stands. @param {Look} look */
  step(look) {
    const { gl } = this.gpu;
    if (this.fence) {
      if (gl.getSyncParameter(this.fence, gl.SYNC_STATUS) !== gl.SIGNALED) return false;
      const took = performance.now() - this.sent;
      this.chunk = Math.min(600000, Math.max(40000, this.chunk * (took > 70 ? 0.7 : took < 36 ? 1.6 : 1)));
      gl.deleteSync(this.fence);
      this.fence = null;
    }
    if (!this.queue.length) return this.swap();
    gl.bindFramebuffer(gl.FRAMEBUFFER, /** @type {Sheet} */ (this.sheets[1]).target);
    let left = this.chunk;
    while (left > 0 && this.queue.length) {
      const { source, base, passes } = this.queue[0];
      const firsts = [];
      const counts = [];
      while (left > 0 && this.queue[0]?.source === source && this.queue[0].base === base && this.queue[0].passes[0] === passes[0]) {
        const one = this.queue[0];
        const count = Math.min(one.count, Math.max(1, Math.round(left)));
        firsts.push(one.first);
        counts.push(count);
        left -= count;
        if (count === one.count) this.queue.shift();
        else { one.first += count; one.count -= count; }
      }
      drawPoints(this.gpu, look, { array: source }, base, firsts, counts, passes);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    this.sent = performance.now();
    gl.flush();
    return false;
  }

  /** @private */
  swap() {
    [this.sheets[0], this.sheets[1]] = [this.sheets[1], this.sheets[0]];
    this.key = this.building;
    this.cameras = this.next;
    this.building = '';
    return true;
  }

  /** Show a view's part of the picture where `to` says, in shares of the canvas. @param {import('../types.js').Rect} to @param {import('../types.js').Rect} from @param {number} strength */
  show(to, from, strength = 1) {
    const { gl, blit } = this.gpu;
    if (!this.sheets[0]) return;
    gl.useProgram(blit.program);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.sheets[0].texture);
    gl.uniform1i(blit.at.uLayer, 0);
    gl.uniform1f(blit.at.uStrength, strength);
    gl.uniform4f(blit.at.uTo, to.x, 1 - to.y - to.h, to.w, to.h);
    gl.uniform4f(blit.at.uFrom, from.x, 1 - from.y - from.h, from.w, from.h);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  /** @private @param {Sheet | null} old @param {number} width @param {number} height @returns {Sheet} */
  sheet(old, width, height) {
    const { gl } = this.gpu;
    if (old) { gl.deleteTexture(old.texture); gl.deleteFramebuffer(old.target); }
    const made = texture(gl, gl.TEXTURE_2D, gl.LINEAR);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
    const target = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, made, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return { texture: made, target, width, height };
  }
}
