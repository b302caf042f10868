/** Images over points, as room allows: the first of each panel's room order that keep their distance. */

import { element, paint } from '../parts/dom.js';
import { rgb } from '../theme.js';
import { texture, vertices } from './gpu.js';
import { prepare } from './points.js';

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
