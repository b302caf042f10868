/** A frame: points of many panels in one draw call, backgrounds, images, and the layer that caches the drawing. */

import { box, carried, holds, pointToPage, scaleOf, tableOf, touches } from '../layout/geometry.js';
import { element, paint } from '../parts/dom.js';
import { HIDDEN, SELECTED } from '../scene/rows.js';
import { rgb } from '../theme.js';
import { bind, drawInstances, sheetOf, texture } from './gpu.js';

/** @typedef {{x?: number[], y?: number[], mode?: number, t?: number, fade?: number[]}} Source conversion of raw numbers to places */
/** @typedef {Source & {array: WebGLVertexArrayObject, base: number, firsts: number[], counts: number[], passes?: number[]}} Draw points of one layout; its first panel is entry `base` of the panel table */

/** Set the common uniforms of points and images, and `more`. @param {Gpu} gpu @param {import('./gpu.js').Program} program @param {Look} look @param {Source} source @param {Record<string, number | number[]>} more */
function prepare(gpu, program, look, { x, y, mode = 0, t = 1, fade = [1, 1] }, more) {
  const { gl, table, palette, codes, flags } = gpu;
  [table, palette, codes, flags].forEach((made, i) => bind(gl, i, gl.TEXTURE_2D, made));
  program({
    ...{ uPanels: 0, uPalette: 1, uCodes: 2, uFlags: 3, uX: x ?? [1, 0, 0, 0] },
    ...{ uY: y ?? [0, 1, 0, 0], uView: [look.width, look.height], uFade: fade, uMode: mode, uT: t },
    ...{ uSelecting: look.selecting ? 1 : 0, uOnly: look.only, uGrey: rgb(look.grey) },
    ...{ uDpr: look.dpr, ...more },
  });
}

/** @param {Gpu} gpu @param {Look} look @param {Draw} draw */
export function drawPoints(gpu, look, draw) {
  const { gl, multi, points } = gpu;
  const { firsts, counts } = draw;
  prepare(gpu, points, look, draw, { uBase: draw.base });
  gl.bindVertexArray(draw.array);
  for (const pass of draw.passes ?? passesOf(look)) {
    points({ uPass: pass });
    if (multi) multi.multiDrawArraysWEBGL(gl.POINTS, firsts, 0, counts, 0, firsts.length);
    else firsts.forEach((first, i) => gl.drawArrays(gl.POINTS, first, counts[i]));
  }
  gl.bindVertexArray(null);
}

/** Return left, bottom, width and height in pixels of the screen. @param {Look} look @param {Rect} rect */
const pixels = ({ dpr, height }, { x, y, w, h }) =>
  /** @type {[number, number, number, number]} */ (
    [x, height - y - h, Math.max(0, w), Math.max(0, h)].map((px) => Math.round(px * dpr))
  );

/** Restrict drawing to a part of the page. @param {WebGL2RenderingContext} gl @param {Look} look @param {Rect} rect */
export const scissor = (gl, look, rect) => gl.scissor(...pixels(look, rect));

/** Draw grey points first, then highlighted ones. @param {Look} look */
const passesOf = (look) => (look.selecting || look.only >= 0 ? [1, 2] : [0]);

const [ALL, A_PIXEL] = [700000, 1.5]; // points; if a view has more, each panel draws a sample with this many per pixel

/** Return the number of a panel's points to draw, because points beyond those that cover its pixels are indistinguishable. @param {Placed} spot @param {number} all */
export const drawnOf = ({ panel: { count }, plot }, all) =>
  all <= ALL ? count : Math.min(count, Math.max(2000, Math.ceil(A_PIXEL * plot.w * plot.h)));

/** @param {Placed[]} placed */
export const pointsIn = (placed) => placed.reduce((sum, { panel }) => sum + panel.count, 0);

/** Return draws of at most `budget` points of the visible panels, shared in proportion; highlighted points come last, and completely unless others are left out. @param {Gpu} gpu @param {Look} look @param {Placed[]} placed @param {number} budget @returns {Draw[]} */
export function drawsOf(gpu, look, placed, budget) {
  const all = pointsIn(placed);
  const drawn = placed.reduce((sum, spot) => sum + drawnOf(spot, all), 0);
  const share = Math.min(1, budget / Math.max(1, drawn));
  const shown = placed.filter(({ strength }) => strength > 0.02);
  return passesOf(look).flatMap((pass) =>
    [...new Set(shown.map(({ part }) => part))].map((part) => {
      const spots = shown.filter((spot) => spot.part === part);
      return {
        array: gpu.layout(part.layout).array,
        base: part.base,
        passes: [pass],
        firsts: spots.map(({ panel }) => panel.start),
        counts: spots.map((spot) =>
          pass === 2 && share === 1 ? spot.panel.count : Math.ceil(drawnOf(spot, all) * share),
        ),
      };
    }),
  );
}

/** @typedef {{card: Rect, plot: Rect, zero: number[], focus: boolean, strength: number, apart: boolean}} Ground background of a panel; `apart`: no other card covers it */

/** Shade edges and axes; fill the area between them by clearing, which is fastest. @param {Stage} stage @param {Placed[]} placed @param {Look} look @param {Rect} view */
export function drawGrounds(stage, placed, look, view) {
  const { gpu, theme, tour } = stage;
  const { gl, grounds: program } = gpu;
  /** @type {Ground[]} */ const grounds = placed.map((spot) => {
    const { view: own, panel, part, card, plot, strength } = spot;
    const bare = part.layout.kind === 'map' || panel.other;
    const zero = bare ? [-9, -9] : pointToPage(tour?.hides(spot) ? tour.shown(spot) : spot, 0, 0);
    const focus = own.focus === panel.index && !part.inset && own.focusShown;
    return { card, plot, zero, focus, strength, apart: own.shift >= 1 };
  });
  const { width, height, dpr } = look;
  const flat = (/** @type {(ground: Ground) => number[]} */ pick) =>
    Float32Array.from(grounds.flatMap(pick));
  const between = flat((ground) => betweenEdges(ground, dpr));
  gl.clearColor(...rgb(theme.panel), 1);
  for (let at = 0; at < between.length; at += 4) {
    const [x, y, right, bottom] = between.subarray(at, at + 4);
    const [left, top] = [Math.max(x, view.x), Math.max(y, view.y)];
    const wide = Math.min(right, view.x + view.w) - left;
    const high = Math.min(bottom, view.y + view.h) - top;
    scissor(gl, look, box(left, top, wide, high));
    if (wide > 0 && high > 0) gl.clear(gl.COLOR_BUFFER_BIT);
  }
  scissor(gl, look, view);
  program({
    ...{ uView: [width, height], uDpr: dpr, uFill: rgb(theme.panel), uLine: rgb(theme.line) },
    ...{ uAxis: rgb(theme.axis), uAccent: rgb(theme.primary) },
    uPixel: [width / gl.drawingBufferWidth, height / gl.drawingBufferHeight],
  });
  drawInstances(gl, gl.TRIANGLES, 36, grounds.length, {
    0: [flat(({ card }) => [card.x, card.y, card.w, card.h]), 4],
    1: [flat(({ plot }) => [plot.x, plot.y, plot.x + plot.w, plot.y + plot.h]), 4],
    2: [flat(({ zero, focus, strength }) => [...zero, focus ? 1 : 0, strength]), 4],
    3: [between, 4],
  });
}

/** Return the corners, in whole pixels, of a card without its edge and rounded corners; empty if it is not opaque. @param {Ground} ground @param {number} dpr */
function betweenEdges({ card: { x, y, w, h }, strength, apart }, dpr) {
  const rim = apart && strength === 1 ? 4 + 0.3 * Math.min(12, 0.02 * w) : Infinity; // same radius as in the shader
  const whole = (/** @type {number} */ at) => Math.round(at * dpr) / dpr;
  const [left, top] = [whole(x + Math.min(rim, w / 2)), whole(y + Math.min(rim, h / 2))];
  return [left, top, Math.max(left, whole(x + w - rim)), Math.max(top, whole(y + h - rim))];
}

const UNDER = 0.4; // strength of the previous picture under a sample of the next one

export class Layer {
  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    /** @type {(import('./gpu.js').Sheet | null)[]} sheet on screen, sheet in progress */
    this.sheets = [null, null];
    /** @type {(import('./gpu.js').Sheet & {key: string, cameras: Camera[]}) | null} a frame without images */
    this.kept = null;
    this.key = ''; // key of the current picture
    this.building = '';
    /** @type {Draw[]} */ this.queue = [];
    /** @type {Camera[]} one per view, from which the picture was drawn */ this.cameras = [];
    /** @type {Camera[]} */ this.next = [];
    this.chunk = 80000; // number of points per chunk, adapted to their drawing time
    /** @type {{sync: WebGLSync, sent: number}[]} of unfinished chunks: while one is drawn, the next is queued */
    this.fences = [];
    this.through = 0; // time at which the last chunk was finished
  }

  /** Draw into the sheet under construction. @private @param {() => void} draw */
  into(draw) {
    const { gl } = this.gpu;
    this.sheets[1] = sheetOf(gl, this.sheets[1]);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.sheets[1].target);
    draw();
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  /** Begin a new picture, identified by `key`. @param {string} key @param {Draw[]} draws @param {Camera[]} cameras */
  begin(key, draws, cameras) {
    const { gl } = this.gpu;
    this.into(() => {
      gl.disable(gl.SCISSOR_TEST);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
    });
    [this.building, this.queue, this.next, this.fences] = [key, draws, cameras, []];
  }

  /** Draw a new picture of few points at once; where both show the same places, draw it over the previous picture. @param {string} key @param {Draw[]} draws @param {Look} look @param {Camera[]} cameras @param {Placed[]} same panels that both pictures show */
  quick(key, draws, look, cameras, same) {
    this.begin(key, draws, cameras);
    const page = box(0, 0, look.width, look.height);
    if (same.length) this.into(() => this.show(same, look, page, page, UNDER));
    this.draw(look, Infinity);
    this.swap();
  }

  /** Draw the next chunk when the chunk before the last is finished; return true if the picture is complete. @param {Look} look */
  step(look) {
    const { gl } = this.gpu;
    const { fences } = this;
    const now = performance.now();
    while (fences.length && gl.getSyncParameter(fences[0].sync, gl.SYNC_STATUS) === gl.SIGNALED) {
      const took = now - Math.max(this.through, fences[0].sent);
      const next = this.chunk * (took > 60 ? 0.7 : took < 28 ? 1.6 : 1);
      this.chunk = Math.min(Math.max(next, 40000), 600000);
      this.through = now;
      fences.shift();
    }
    if (!this.queue.length) return fences.length ? false : this.swap();
    if (fences.length > 1) return false;
    this.draw(look, this.chunk);
    const sync = /** @type {WebGLSync} */ (gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0));
    fences.push({ sync, sent: now });
    gl.flush();
    return false;
  }

  /** @private @param {Look} look @param {number} left points */
  draw(look, left) {
    const { gpu, queue } = this;
    this.into(() => {
      while (left > 0 && queue.length) {
        const { firsts, counts } = queue[0];
        /** @type {Draw} */ const part = { ...queue[0], firsts: [], counts: [] };
        for (; left > 0 && firsts.length; left -= part.counts.at(-1) ?? 0) {
          const count = Math.min(counts[0], Math.max(1, Math.round(left)));
          part.firsts.push(firsts[0]);
          part.counts.push(count);
          firsts[0] += count;
          counts[0] -= count;
          if (counts[0]) continue;
          firsts.shift();
          counts.shift();
        }
        drawPoints(gpu, look, part);
        if (!firsts.length) queue.shift();
      }
    });
  }

  /** @private */
  swap() {
    this.sheets.reverse();
    [this.key, this.building, this.cameras] = [this.building, '', this.next];
    return true;
  }

  /** Keep a frame drawn beside the canvas. @param {string} key @param {View[]} views */
  keep(key, views) {
    const { gpu, kept } = this;
    if (!key || key === kept?.key || !gpu.sheet) return;
    const made = sheetOf(gpu.gl, kept);
    gpu.copy(gpu.sheet, made, 0, 0, [0, 0, made.width, made.height]);
    this.kept = { ...made, key, cameras: views.map(({ cam }) => ({ ...cam })) };
  }

  /** Copy a view of the kept frame to where it is now; return that place, or null if nothing is left of it. @param {string} key @param {Look} look @param {View} view @param {number} at index of the view @returns {Rect | null} */
  carry(key, look, { rect, cam, opened }, at) {
    const { gpu, kept } = this;
    if (!key || key !== kept?.key || !gpu.sheet) return null;
    const to = opened ? rect : carried(kept.cameras[at], cam, rect);
    const [x, y, w, h] = pixels(look, rect);
    const [left, bottom] = pixels(look, to);
    const [dx, dy] = [left - x, bottom - y];
    const [wide, high] = [w - Math.abs(dx), h - Math.abs(dy)];
    if (wide <= 0 || high <= 0) return null;
    gpu.copy(kept, gpu.sheet, dx, dy, [x - Math.min(0, dx), y - Math.min(0, dy), wide, high]);
    return to;
  }

  /** Draw the panels' parts of the picture from one rectangle of the page into another. @param {Placed[]} placed @param {Look} look @param {Rect} to @param {Rect} from @param {number} strength */
  show(placed, { width, height }, to, from, strength = 1) {
    const { gl, blit } = this.gpu;
    if (!this.sheets[0]) return;
    const cards = placed.flatMap(({ card: { x, y, w, h } }) => [x, y, w, h]);
    bind(gl, 0, gl.TEXTURE_2D, this.sheets[0].texture);
    const filter = to.w === from.w ? gl.NEAREST : gl.LINEAR; // an unscaled copy needs no interpolation
    for (const when of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
      gl.texParameteri(gl.TEXTURE_2D, when, filter);
    const [kx, ky] = [from.w / to.w, from.h / to.h];
    const scale = [kx / gl.drawingBufferWidth, ky / gl.drawingBufferHeight];
    const shift = [(from.x - to.x * kx) / width, 1 - ky + (to.y * ky - from.y) / height];
    const places = { uCarry: [...scale, ...shift], uTo: [to.x, to.y, to.w, to.h] };
    blit({ ...places, uLayer: 0, uStrength: strength, uView: [width, height] });
    drawInstances(gl, gl.TRIANGLE_STRIP, 4, placed.length, { 0: [Float32Array.from(cards), 4] });
  }
}

const [LAYERS, AT_ONCE] = [8, 2]; // sheets on the GPU, and that load at the same time

export class Sheets {
  /** @param {Gpu} gpu @param {Input} input @param {() => void} arrived */
  constructor(gpu, input, arrived) {
    const meta = /** @type {SheetMeta} */ (input.meta.sheets);
    this.gpu = gpu;
    this.meta = meta;
    this.get = /** @type {(sheet: number) => Promise<Blob>} */ (input.sheets?.tile);
    this.arrived = arrived;
    const layers = Math.min(LAYERS, meta.count);
    this.slots = Array.from({ length: layers }, () => ({ sheet: -1, used: 0, ready: false }));
    this.clock = 0;
    this.loading = 0;
    const { gl } = gpu;
    const { TEXTURE_2D_ARRAY: kind } = gl;
    this.texture = texture(gl, kind, gl.LINEAR);
    gl.texParameteri(kind, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    const levels = 1 + Math.floor(Math.log2(meta.cell));
    const format = meta.tile[2] === 3 ? gl.RGBA8 : gl.R8;
    const side = meta.cell * meta.columns;
    gl.texStorage3D(kind, levels, format, side, side, layers);
    this.reader = gl.createFramebuffer();
    /** @type {Map<string, HTMLCanvasElement>} tiles as pictures */ this.pictures = new Map();
    this.wide = meta.style === 'name' ? 3.8 : 1; // names are wider than pictures
  }

  /** Return the sheet of a tile. @param {number} tile */
  of(tile) {
    return Math.floor(tile / this.meta.per_sheet);
  }

  /** Return the index of a loaded tile over all slots, or -1. @param {number} tile */
  place(tile) {
    const sheet = this.of(tile);
    const slot = this.slots.findIndex((entry) => entry.sheet === sheet);
    if (!this.slots[slot]?.ready) return -1;
    this.slots[slot].used = this.clock;
    return slot * this.meta.per_sheet + (tile % this.meta.per_sheet);
  }

  /** Fetch the sheets that are needed now, beginning with those that have the most images. @param {number[]} tiles */
  ask(tiles) {
    /** @type {Map<number, number>} */ const wanted = new Map();
    for (const tile of tiles) wanted.set(this.of(tile), 1 + (wanted.get(this.of(tile)) ?? 0));
    const most = [...wanted].sort((a, b) => b[1] - a[1]).slice(0, this.slots.length);
    const order = most.map(([sheet]) => sheet);
    this.clock += 1;
    for (const slot of this.slots) if (order.includes(slot.sheet)) slot.used = this.clock;
    for (const sheet of order) {
      if (this.loading >= AT_ONCE || this.slots.some((slot) => slot.sheet === sheet)) continue;
      const idle = this.slots.filter((entry) => entry.ready || entry.sheet < 0);
      const [slot] = idle.sort((a, b) => a.used - b.used);
      if (!slot || (slot.used === this.clock && slot.sheet >= 0)) return;
      Object.assign(slot, { sheet, ready: false, used: this.clock });
      this.load(slot, sheet);
    }
  }

  /** @private @param {{sheet: number, used: number, ready: boolean}} slot @param {number} sheet */
  async load(slot, sheet) {
    this.loading += 1;
    try {
      const how = /** @type {const} */ ({ premultiplyAlpha: 'none', colorSpaceConversion: 'none' });
      const levels = [await createImageBitmap(await this.get(sheet), how)];
      for (let side = this.meta.cell; side > 1; side /= 2) {
        const last = levels[levels.length - 1]; // the GPU could create mipmaps only for all sheets at once
        const half = { ...how, resizeWidth: last.width / 2, resizeHeight: last.height / 2 };
        levels.push(await createImageBitmap(last, half));
      }
      const { gl } = this.gpu;
      if (!gl.isContextLost() && slot.sheet === sheet) {
        const { TEXTURE_2D_ARRAY: kind, UNSIGNED_BYTE } = gl;
        bind(gl, 4, kind, this.texture);
        const format = this.meta.tile[2] === 3 ? gl.RGBA : gl.RED;
        const at = this.slots.indexOf(slot);
        levels.forEach((bitmap, level) => {
          const { width, height } = bitmap;
          gl.texSubImage3D(kind, level, 0, 0, at, width, height, 1, format, UNSIGNED_BYTE, bitmap);
        });
        slot.ready = true;
      }
      levels.forEach((bitmap) => bitmap.close());
    } catch {
      slot.sheet = -1; // fetched again when it is needed
    }
    this.loading -= 1;
    this.arrived();
  }

  /** Return a loaded tile as a picture, painted once. @param {number} tile @param {boolean} dark */
  picture(tile, dark) {
    const key = `${tile} ${dark}`;
    const bytes = this.pictures.has(key) ? null : this.read(tile);
    if (bytes) this.pictures.set(key, paint(element('canvas', ''), bytes, this.meta, dark));
    return this.pictures.get(key);
  }

  /** Return the pixels (RGBA) of a loaded tile. @param {number} tile */
  read(tile) {
    const placed = this.place(tile);
    if (placed < 0 || this.wide > 1) return null;
    const { gl } = this.gpu;
    const { FRAMEBUFFER, COLOR_ATTACHMENT0 } = gl;
    const { cell, columns, per_sheet: per } = this.meta;
    const [h, w] = this.meta.tile;
    const at = placed % per;
    const x = (at % columns) * cell + ((cell - w) >> 1);
    const y = Math.floor(at / columns) * cell + ((cell - h) >> 1);
    const bytes = new Uint8ClampedArray(w * h * 4);
    gl.bindFramebuffer(FRAMEBUFFER, this.reader);
    const slot = Math.floor(placed / per);
    gl.framebufferTextureLayer(FRAMEBUFFER, COLOR_ATTACHMENT0, this.texture, 0, slot);
    gl.readPixels(x, y, w, h, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    gl.bindFramebuffer(FRAMEBUFFER, null);
    return bytes;
  }
}

/** @typedef {{raw: number[], row: number, key: number, tile: number, from?: number[]}} Picture of a row in the panel with this key; `raw` (two or four numbers) sets its position */

const MOST = 900;

/** Return the side of images in pixels in a plot of this side. @param {number} side @param {number} most */
export function imageSize(side, most) {
  const slow = 18 * (Math.max(side, 60) / 75) ** 0.17;
  return Math.min(most, slow * Math.max(1, side / 600) ** 0.55);
}

const WHOLE = 400; // plot size in px below which images cut by its edge are omitted
const [FILLED, DEEP] = [0.25, 4]; // where all points are images: most they fill, least magnification of the panel
const [FLAT, LOOSE] = [5, 600]; // width of a name / height; most rows tried without precomputed placement

/** Pixels between images in a plot. @param {number} px side of an image @param {number} side of the plot */
const apartOn = (px, side) => px * (1.22 + 0.55 * Math.exp(-side / 260));

/** Return the magnification of an opened panel, relative to its size among all panels. @param {Placed} spot */
const zoomOf = ({ panel, range }) => (panel.range[1] - panel.range[0]) / (range[1] - range[0]);

/** Return how many of a panel's images fit. @param {Placed} spot @param {number} px @param {number} dense density relative to the default */
function roomFor(spot, px, dense) {
  const { levels } = spot.panel;
  if (!levels.length) return LOOSE;
  const side = Math.min(spot.plot.w, spot.plot.h) * Math.max(1e-9, zoomOf(spot));
  const apart = apartOn(px, side) / side / dense;
  const step = Math.floor(4 * Math.log2(spot.part.layout.spacing / apart));
  if (step < 0) return side > 44 ? Math.min(2, levels[0]) : 0;
  return levels[Math.min(step, levels.length - 1)];
}

/** Whether all visible points of a panel fit as images, as at a deep zoom. @param {Placed} spot @param {number} px */
function allFit(spot, px) {
  const { panel, plot, view, part } = spot;
  const { xy } = part.layout;
  const area = Math.min(plot.w, view.rect.w) * Math.min(plot.h, view.rect.h);
  const most = (FILLED * area) / px ** 2;
  if (zoomOf(spot) ** 2 * plot.w * plot.h < DEEP * area) return false;
  const { left, bottom, kx, ky } = scaleOf(spot);
  let seen = 0;
  for (let i = panel.start; i < panel.start + panel.count && seen <= most; i += 1)
    if (holds(view.rect, left + xy[2 * i] * kx, bottom - xy[2 * i + 1] * ky)) seen += 1;
  return seen <= most;
}

/** Choose the images of visible panels that are inside the view. @param {Stage} stage @param {Placed[]} placed @param {number} size px */
export function chooseImages({ scene, rows, options: { dense = 1 }, sheets }, placed, size) {
  const [isName, flat] = (sheets?.wide ?? 1) > 1 ? [true, FLAT] : [false, 1];
  /** @type {Picture[]} */ const wanted = [];
  for (const spot of placed) {
    const { key, panel, plot, view, strength, part } = spot;
    const { xy, rows: numbers } = part.layout;
    const side = Math.min(plot.w, plot.h);
    const all = isName ? rows.selected > 0 : side > WHOLE && allFit(spot, size);
    const wished = all ? panel.count : isName ? LOOSE : roomFor(spot, size, dense);
    const room = strength < 0.6 || plot.w < 40 ? 0 : Math.min(panel.count, wished);
    const loose = isName ? size : panel.levels.length ? 0 : apartOn(size, side);
    const [apart, margin] = [all && !isName ? 0 : loose / dense, side < WHOLE ? size / 2 : 0];
    /** @type {[number, number][]} */ const taken = [];
    const { left, bottom, kx, ky } = scaleOf(spot);
    for (let i = panel.start; i < panel.start + room && wanted.length < MOST; i += 1) {
      const [row, flags] = [numbers[i], rows.flags[numbers[i]]];
      if (flags & HIDDEN || (all && isName && !(flags & SELECTED))) continue;
      const [x, y] = [left + xy[2 * i] * kx, bottom - xy[2 * i + 1] * ky];
      if (!holds(view.rect, x, y, 40) || !holds(plot, x, y, -margin)) continue;
      if (apart) {
        if (taken.some(([u, v]) => Math.max(Math.abs(u - x), flat * Math.abs(v - y)) < apart))
          continue;
        taken.push([x, y]);
      }
      wanted.push({ raw: [xy[2 * i], xy[2 * i + 1], 0, 0], row, key, tile: scene.tile[row] });
    }
  }
  return wanted;
}

/** Draw the images whose sheets are loaded; return their number. @param {Gpu} gpu @param {Sheets} sheets @param {Picture[]} wanted @param {Look} look @param {number} px @param {string} card @param {Source} [source] */
export function drawImages(gpu, sheets, wanted, look, px, card, source = {}) {
  const { gl, images } = gpu;
  const there = wanted.filter(({ tile }) => sheets.place(tile) >= 0);
  if (!there.length) return 0;
  const { cell, columns: across, per_sheet: uPer, style } = sheets.meta;
  const [h, w, channels] = sheets.meta.tile;
  const uInk = channels > 1 ? 0 : { ink: 1, photo: 2, name: 3 }[style];
  const uLift = sheets.wide > 1 ? (px * h) / w / 2 + 4 : 0; // a name is above its point
  const more = { uPer, uInk, uPx: px, uLift, uCard: rgb(card), uHeavy: look.selecting ? 0.8 : 0 };
  const sheet = { uBase: 0, uSheets: 4, uSheet: [h, w, cell, across] };
  prepare(gpu, images, look, source, { ...sheet, ...more });
  bind(gl, 4, gl.TEXTURE_2D_ARRAY, sheets.texture);
  drawInstances(gl, gl.TRIANGLE_STRIP, 4, there.length, {
    0: [Int16Array.from(there.flatMap(({ raw }) => raw)), 4],
    1: [Uint32Array.from(there, ({ row }) => row), 1],
    2: [Uint16Array.from(there, ({ key }) => key), 1],
    3: [Float32Array.from(there.flatMap(({ from }) => from ?? [0, 0, 0])), 3],
    4: [Uint32Array.from(there, ({ tile }) => sheets.place(tile)), 1],
  });
  return there.length;
}

const [DIRECT, FEW] = [20000, 60000]; // maximum number of points redrawn in every frame, if the cached layer could be moved or scaled
const ONCE = 100000; // maximum number of a layer's points drawn at once
const SAMPLE = 0.03; // points per pixel drawn at once after a change of colours or selection; the others follow
const PART = 'sample ';
const [SCALED, NAMED, IMAGES_EVERY] = [4, 26, 130]; // maximum magnification of images, height of names in px; ms between their choices while moving

/** @param {Stage} stage @param {Look} look @param {WebGLFramebuffer | null} target */
export function drawFrame(stage, look, target) {
  const { gpu, theme, rows, views, tour, morph, layer, stats } = stage;
  const { gl } = gpu;
  gpu.update(rows, stage.colouring, stage.dark);
  const table = tableOf(stage.placed, stage.panels, drawnOf);
  tour?.place(stage, table);
  gpu.setTable(table);
  gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
  const heavy = prepareLayer(stage, look);
  gl.bindFramebuffer(gl.FRAMEBUFFER, target);
  gl.disable(gl.SCISSOR_TEST);
  gl.clearColor(...rgb(theme.ground), 1);
  gl.clear(gl.COLOR_BUFFER_BIT);
  gl.flush(); // the GPU draws the points while the rest is prepared
  gl.enable(gl.SCISSOR_TEST);
  const sides = views.map(({ cam, shift, focus, focusShown }) => [cam.k, shift, focus, focusShown]);
  const alike = heavy && target && !tour ? `${heavy}${layer.key} ${sides}` : ''; // key of pictures that only move
  for (const [i, view] of views.entries()) {
    const here = stage.placed.filter((spot) => spot.view === view);
    const shown = here.filter((spot) => !tour?.hides(spot));
    const copied = layer.carry(alike, look, view, i);
    if (copied)
      stage.quick = stats.last = 0; // so fast a frame says nothing about others
    else drawGrounds(stage, here, look, view.rect);
    if (morph?.view === view) morph.draw(stage, look);
    else if (heavy) drawHeavy(stage, view, shown, look, heavy, copied);
    else direct(stage, shown, look, Infinity);
  }
  if (!stage.moving) layer.keep(alike, views);
  stats.whole = !heavy || (layer.key.startsWith(heavy) && !layer.key.startsWith(heavy + PART));
  drawAllImages(stage, look);
  gl.disable(gl.SCISSOR_TEST);
  tour?.draw(stage, look);
  gl.flush(); // the GPU draws while the text is written
}

/** @param {Stage} stage @param {Placed[]} placed @param {Look} look @param {number} budget */
function direct({ gpu }, placed, look, budget) {
  for (const draw of drawsOf(gpu, look, placed, budget)) drawPoints(gpu, look, draw);
}

/** Whether points come from the layer, which is updated while nothing moves; also sets its key. @param {Stage} stage @param {Look} look */
function prepareLayer(stage, look) {
  const { gpu, layer, placed, rows, views, tour } = stage;
  const total = pointsIn(placed);
  if (total * look.dpr <= DIRECT || stage.morph) {
    layer.building = ''; // its panels are no longer shown
    return '';
  }
  const places = views.map(({ layout, rect, opened }) =>
    [layout.name, layout.revision, rect.x, opened?.panel, opened?.range].join(' '),
  );
  const shape = `${[look.width, look.height, look.dpr, ...places].join(' ')}|`;
  const cams = `|${views.map(({ cam }) => `${cam.x} ${cam.y} ${cam.k}`)}`;
  const states = [rows.codesChanged, rows.flagsChanged, stage.only, stage.dark, Boolean(tour)];
  const filter = JSON.stringify(stage.options.filter ?? '');
  const content = `${shape}${[...states, stage.colouringName, filter].join(' ')}|`;
  const key = content + cams;
  const steady = !stage.moving && views.every((view) => view.shift >= 1);
  const still = steady && !stage.waiting;
  const shown = placed.filter((spot) => !tour?.hides(spot));
  const from = views.map(({ cam }) => ({ ...cam }));
  if (steady && !layer.key.startsWith(content)) {
    const area = shown.reduce((sum, { plot }) => sum + plot.w * plot.h, 0);
    const most = total * look.dpr <= ONCE ? Infinity : SAMPLE * area; // a random sample at once
    const part = most < total;
    const same = part && layer.key.startsWith(shape) && layer.key.endsWith(cams);
    const draws = drawsOf(gpu, look, shown, most);
    layer.quick(part ? content + PART + cams : key, draws, look, from, same ? shown : []);
  }
  if (still && layer.key !== key && layer.building !== key) {
    layer.begin(key, drawsOf(gpu, look, shown, Infinity), from);
    layer.step(look); // at once, which saves a frame
  }
  if (!still) layer.building = '';
  stage.building = layer.building ? () => layer.step(look) : null;
  return content;
}

/** @param {Stage} stage @param {View} view @param {Placed[]} placed @param {Look} look @param {string} content @param {Rect | null} copied where the view was copied to */
function drawHeavy(stage, view, placed, look, content, copied) {
  const { layer, gpu, budget } = stage;
  const { rect, cam, opened, shift } = view;
  const from = layer.cameras[stage.views.indexOf(view)];
  const scale = from ? cam.k / from.k : 0;
  const few = pointsIn(stage.placed) * stage.dpr <= FEW;
  const fits = few ? scale === 1 : scale >= 0.35 && scale <= 3;
  if (!copied && (!layer.key.startsWith(content) || shift < 1 || !fits))
    return direct(stage, placed, look, few ? Infinity : budget);
  const to = copied ?? (opened ? rect : carried(from, cam, rect));
  if (!copied) layer.show(placed, look, to, rect);
  const [right, bottom] = [to.x + to.w, to.y + to.h];
  const edges = [
    box(rect.x, rect.y, to.x - rect.x, rect.h),
    box(right, rect.y, rect.x + rect.w - right, rect.h),
    box(to.x, rect.y, to.w, to.y - rect.y),
    box(to.x, bottom, to.w, rect.y + rect.h - bottom),
  ].filter(({ w, h }) => w > 1 && h > 1);
  for (const edge of edges) {
    const near = placed.filter(({ card }) => touches(card, edge));
    if (copied) drawGrounds(stage, near, look, edge);
    scissor(gpu.gl, look, edge);
    direct(stage, near, look, budget / edges.length);
  }
  scissor(gpu.gl, look, rect);
}

/** @param {Stage} stage @param {Look} look */
function drawAllImages(stage, look) {
  const { sheets, scene, gpu, theme, stats, held, near } = stage;
  stats.images = 0;
  if (!sheets || stage.morph) return;
  const now = performance.now();
  if (stage.frame === '' || (stage.moving && now - Number(stage.frame) > IMAGES_EVERY)) {
    stage.frame = String(now);
    const most = sheets.wide > 1 ? NAMED : 340;
    const largest = Math.min(most, stage.height * 0.6, SCALED * Math.max(...sheets.meta.tile));
    const seen = stage.placed.filter((spot) => !stage.tour?.hides(spot));
    const groups = stage.views.flatMap((view) =>
      [true, false].map((open) => seen.filter((spot) => spot.view === view && spot.open === open)),
    );
    stage.images = groups
      .filter((group) => group.length)
      .map((group) => {
        const plots = group.filter(({ part }) => !part.inset).map(({ plot }) => plot);
        const sides = plots.map((plot) => Math.min(plot.w, plot.h)).sort((a, b) => a - b);
        const px = imageSize(sides[sides.length >> 1] ?? 300, largest) * sheets.wide;
        return { px, rect: group[0].view.rect, wanted: chooseImages(stage, group, px) };
      });
    const large = held < 0 ? [] : [held, ...near];
    const shown = stage.images.flatMap(({ wanted }) => wanted.map(({ tile }) => tile));
    sheets.ask([...shown, ...large.map((row) => scene.tile[row])]);
  }
  for (const { wanted, px, rect } of stage.images) {
    scissor(gpu.gl, look, rect);
    stats.images += drawImages(gpu, sheets, wanted, look, px, theme.panel);
  }
}
