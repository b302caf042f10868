/** Points of many panels in one call, the grounds below them, images over them, and the layer that keeps what was drawn. */

import { clamp, pointToPage } from '../layout/geometry.js';
import { element, paint } from '../parts/dom.js';
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

const LAYERS = 8;
const AT_ONCE = 2; // sheets on their way

export class Sheets {
  /** @param {Gpu} gpu @param {Input} input @param {() => void} arrived */
  constructor(gpu, input, arrived) {
    const meta = /** @type {SheetMeta} */ (input.meta.sheets);
    this.gpu = gpu;
    this.meta = meta;
    this.get = /** @type {(sheet: number) => Promise<Blob>} */ (input.sheets?.tile);
    this.arrived = arrived;
    this.side = meta.cell * meta.columns;
    this.height = meta.cell * Math.ceil(meta.per_sheet / meta.columns);
    this.layers = Math.min(LAYERS, meta.count);
    /** @type {{sheet: number, used: number, ready: boolean}[]} */
    this.slots = Array.from({ length: this.layers }, () => ({ sheet: -1, used: 0, ready: false }));
    this.clock = 0;
    this.loading = 0;
    const { gl } = gpu;
    this.texture = texture(gl, gl.TEXTURE_2D_ARRAY, gl.LINEAR);
    gl.texParameteri(gl.TEXTURE_2D_ARRAY, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    const levels = 1 + Math.floor(Math.log2(meta.cell));
    gl.texStorage3D(
      gl.TEXTURE_2D_ARRAY,
      levels,
      meta.tile[2] === 3 ? gl.RGBA8 : gl.R8,
      this.side,
      this.side,
      this.layers,
    );
    this.reader = gl.createFramebuffer();
    /** @type {Map<string, HTMLCanvasElement>} tiles as pictures */ this.pictures = new Map();
  }

  /** The slot of a tile's sheet times tiles a sheet plus the tile, or -1 while it is not there. @param {number} tile */
  place(tile) {
    const sheet = Math.floor(tile / this.meta.per_sheet);
    const slot = this.slots.findIndex((entry) => entry.sheet === sheet);
    if (slot < 0 || !this.slots[slot].ready) return -1;
    this.slots[slot].used = this.clock;
    return slot * this.meta.per_sheet + (tile % this.meta.per_sheet);
  }

  /** Fetch sheets that images now wanted are in, the most wanted first. @param {Map<number, number>} wanted sheet to how many images */
  ask(wanted) {
    this.clock += 1;
    const order = [...wanted]
      .sort((a, b) => b[1] - a[1])
      .slice(0, this.layers)
      .map(([sheet]) => sheet);
    for (const slot of this.slots) if (order.includes(slot.sheet)) slot.used = this.clock;
    for (const sheet of order) {
      if (this.loading >= AT_ONCE || this.slots.some((slot) => slot.sheet === sheet)) continue;
      const slot = this.slots
        .filter((entry) => entry.ready || entry.sheet < 0)
        .sort((a, b) => a.used - b.used)[0];
      if (!slot || (slot.used === this.clock && slot.sheet >= 0)) return;
      Object.assign(slot, { sheet, ready: false, used: this.clock });
      this.load(slot, sheet);
    }
  }

  /** @private @param {{sheet: number, used: number, ready: boolean}} slot @param {number} sheet */
  async load(slot, sheet) {
    this.loading += 1;
    try {
      const blob = await this.get(sheet);
      const bitmap = await createImageBitmap(blob, {
        premultiplyAlpha: 'none',
        colorSpaceConversion: 'none',
      });
      const { gl } = this.gpu;
      if (!gl.isContextLost() && slot.sheet === sheet) {
        gl.activeTexture(gl.TEXTURE4);
        gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.texture);
        const format = this.meta.tile[2] === 3 ? gl.RGBA : gl.RED;
        gl.texSubImage3D(
          gl.TEXTURE_2D_ARRAY,
          0,
          0,
          0,
          this.slots.indexOf(slot),
          bitmap.width,
          bitmap.height,
          1,
          format,
          gl.UNSIGNED_BYTE,
          bitmap,
        );
        gl.generateMipmap(gl.TEXTURE_2D_ARRAY);
        slot.ready = true;
      }
      bitmap.close();
    } catch {
      slot.sheet = -1; // asked again when it is wanted again
    }
    this.loading -= 1;
    this.arrived();
  }

  /** A tile that is there as a picture, painted once. @param {number} tile @param {boolean} dark */
  picture(tile, dark) {
    const key = `${tile} ${dark}`;
    const bytes = this.pictures.has(key) ? null : this.read(tile);
    if (bytes) this.pictures.set(key, paint(element('canvas', ''), bytes, this.meta, dark));
    return this.pictures.get(key);
  }

  /** Pixels (RGBA) of a tile that is there. @param {number} tile */
  read(tile) {
    const placed = this.place(tile);
    if (placed < 0) return null;
    const { gl } = this.gpu;
    const { cell, columns, per_sheet: per } = this.meta;
    const [h, w] = this.meta.tile;
    const at = placed % per;
    const bytes = new Uint8ClampedArray(w * h * 4);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.reader);
    gl.framebufferTextureLayer(
      gl.FRAMEBUFFER,
      gl.COLOR_ATTACHMENT0,
      this.texture,
      0,
      Math.floor(placed / per),
    );
    gl.readPixels(
      (at % columns) * cell + ((cell - w) >> 1),
      Math.floor(at / columns) * cell + ((cell - h) >> 1),
      w,
      h,
      gl.RGBA,
      gl.UNSIGNED_BYTE,
      bytes,
    );
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return bytes;
  }
}

/** @typedef {{raw: number[], row: number[], panel: number[], tile: number[], from?: number[]}} Wanted */

const MOST = 900;

/** Side of images in pixels where a panel's plot has this side. @param {number} side @param {number} most */
export function imageSize(side, most) {
  const slow = 18 * (Math.max(side, 60) / 75) ** 0.17;
  return Math.min(most, slow * Math.max(1, side / 600) ** 0.55);
}

const WHOLE = 400; // px of a plot below which an image that its edge would cut is left out
const FILLED = 0.25; // of what is seen of a panel, where all its points are images
const DEEP = 4; // times as large as what is seen of it must a panel be
const LOOSE = 600; // rows tried where nobody knows ahead who has room

/** Pixels between images on a plot of some side. @param {number} px of an image @param {number} side */
const apartOn = (px, side) => px * (1.22 + 0.55 * Math.exp(-side / 260));

/** How many of a panel's images have room. @param {Placed} spot @param {number} px @param {number} [dense] how much closer they may stand */
function roomFor({ panel, plot, range, part }, px, dense = 1) {
  const { spacing } = part.layout;
  const { levels } = panel;
  if (!levels.length) return LOOSE;
  const zoom = Math.max(1e-9, (panel.range[1] - panel.range[0]) / (range[1] - range[0])); // an opened panel has its own range
  const side = Math.min(plot.w, plot.h) * zoom;
  const apart = apartOn(px, side) / side / dense;
  const step = Math.floor(4 * Math.log2(spacing / apart));
  if (step < 0) return side > 44 ? Math.min(2, levels[0]) : 0;
  return levels[Math.min(step, levels.length - 1)];
}

/** Whether all points of a panel that are in view have room as images: at a deep zoom none stays a point. @param {Placed} spot @param {number} px */
function allFit(
  { panel: { start, count, range: whole }, plot, range, view: { rect }, part: { layout } },
  px,
) {
  const [w, h] = [Math.min(plot.w, rect.w), Math.min(plot.h, rect.h)];
  const most = (FILLED * w * h) / px ** 2;
  const zoom = (whole[1] - whole[0]) / (range[1] - range[0]); // an opened panel has its own range
  if (zoom ** 2 * plot.w * plot.h < DEEP * w * h) return false;
  let seen = 0;
  for (let i = start; i < start + count && seen <= most; i += 1) {
    const x = plot.x + ((layout.xy[2 * i] - range[0]) / (range[1] - range[0])) * plot.w;
    const y =
      plot.y + plot.h - ((layout.xy[2 * i + 1] - range[2]) / (range[3] - range[2])) * plot.h;
    if (x > rect.x && x < rect.x + rect.w && y > rect.y && y < rect.y + rect.h) seen += 1;
  }
  return seen <= most;
}

/** Images of the panels shown that stand inside the view. @param {Placed[]} placed @param {number} size px @param {(row: number) => number} tileOf @param {(row: number) => boolean} hidden @param {number} [dense] @returns {Wanted} */
export function chooseImages(placed, size, tileOf, hidden, dense = 1) {
  /** @type {Wanted} */ const wanted = { raw: [], row: [], panel: [], tile: [] };
  for (const spot of placed) {
    const { key, panel, plot, range, view, strength } = spot;
    const { layout } = spot.part;
    const side = Math.min(plot.w, plot.h);
    const all = side > WHOLE && allFit(spot, size);
    const wished = all ? panel.count : roomFor(spot, size, dense);
    const room = strength < 0.6 || plot.w < 40 ? 0 : Math.min(panel.count, wished);
    const apart = all || panel.levels.length ? 0 : apartOn(size, side) / dense;
    /** @type {[number, number][]} */ const taken = [];
    const [kx, ky] = [plot.w / (range[1] - range[0]), plot.h / (range[3] - range[2])];
    for (let i = panel.start; i < panel.start + room && wanted.row.length < MOST; i += 1) {
      const [x, y, row] = [layout.xy[2 * i], layout.xy[2 * i + 1], layout.rows[i]];
      const [px, py] = [plot.x + (x - range[0]) * kx, plot.y + plot.h - (y - range[2]) * ky];
      const inside =
        px > view.rect.x - 40 &&
        px < view.rect.x + view.rect.w + 40 &&
        py > -40 &&
        py < view.rect.y + view.rect.h + 40;
      if (apart && taken.some((at) => Math.max(Math.abs(at[0] - px), Math.abs(at[1] - py)) < apart))
        continue;
      const margin = side < WHOLE ? size / 2 : 0;
      if (
        !inside ||
        px < plot.x + margin ||
        px > plot.x + plot.w - margin ||
        py < plot.y + margin ||
        py > plot.y + plot.h - margin ||
        hidden(row)
      )
        continue;
      if (apart) taken.push([px, py]);
      wanted.raw.push(x, y, 0, 0);
      wanted.row.push(row);
      wanted.panel.push(key);
      wanted.tile.push(tileOf(row));
    }
  }
  return wanted;
}

/** Draw the images whose sheet is there; says how many. @param {Gpu} gpu @param {Sheets} sheets @param {Wanted} wanted @param {Look} look @param {number} px @param {string} card @param {Partial<import('./points.js').Source>} [source] */
export function drawImages(gpu, sheets, wanted, look, px, card, source = {}) {
  const { gl, images } = gpu;
  const places = wanted.tile.map((tile) => sheets.place(tile));
  const there = [...places.keys()].filter((i) => places[i] >= 0);
  if (!there.length) return 0;
  const { from } = wanted;
  /** @type {import('./gpu.js').Attributes} */ const attributes = {
    0: [Int16Array.from(there.flatMap((i) => wanted.raw.slice(4 * i, 4 * i + 4))), 4],
    1: [Uint32Array.from(there, (i) => wanted.row[i]), 1],
    2: [Uint16Array.from(there, (i) => wanted.panel[i]), 1],
    4: [Uint32Array.from(there, (i) => places[i]), 1],
  };
  if (from)
    attributes[3] = [Float32Array.from(there.flatMap((i) => from.slice(3 * i, 3 * i + 3))), 3];
  const made = vertices(gl, attributes, 1);
  prepare(gpu, images, look, 0, source);
  const { cell, columns: across, per_sheet: per, style } = sheets.meta;
  const [h, w, channels] = sheets.meta.tile;
  gl.activeTexture(gl.TEXTURE4);
  gl.bindTexture(gl.TEXTURE_2D_ARRAY, sheets.texture);
  gl.uniform1i(images.at.uSheets, 4);
  gl.uniform1f(images.at.uPx, px);
  gl.uniform4f(images.at.uSheet, h, w, cell, across);
  gl.uniform1f(images.at.uPer, per);
  gl.uniform3fv(images.at.uCard, rgb(card));
  gl.uniform1i(images.at.uInk, style === 'ink' && channels === 1 ? 1 : channels === 1 ? 2 : 0);
  gl.uniform1f(images.at.uHeavy, look.selecting ? 0.8 : 0);
  gl.bindVertexArray(made.array);
  gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, there.length);
  made.free();
  return there.length;
}
