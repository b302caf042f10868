/** Sheets of images: fetched by need, at most eight in a texture array, the longest unused goes first. */

import { element, paint } from '../parts/dom.js';
import { texture } from './programs.js';

const LAYERS = 8;
const AT_ONCE = 2; // sheets on their way

export class Sheets {
  /** @param {import('./gpu.js').Gpu} gpu @param {import('../types.js').Input} input @param {() => void} arrived */
  constructor(gpu, input, arrived) {
    const meta = /** @type {import('../types.js').SheetMeta} */ (input.meta.sheets);
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
    /** @type {Map<string, HTMLCanvasElement>} tiles as pictures */
    this.pictures = new Map();
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
    const {
      cell,
      columns,
      per_sheet: per,
      tile: [h, w],
    } = this.meta;
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
