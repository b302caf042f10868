/** What lives on the graphics card: programs, textures of rows, palette and panel table, buffers of layouts. */

import { paletteBytes } from '../theme.js';
import { program, texture, vertices } from './programs.js';
import { BLIT, GROUNDS, IMAGES, POINTS } from './shaders.js';

/** @typedef {import('../scene/layouts.js').Layout} Layout */

const WIDTH = 2048; // of the textures that hold one value a row
const TEXELS = 3; // of a panel in the table: place, plot, look

export class Gpu {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    const gl = canvas.getContext('webgl2', {
      antialias: false,
      alpha: false,
      powerPreference: 'high-performance',
    });
    if (!gl)
      throw new Error(
        'This browser does not offer WebGL 2, which the picture needs; turn on hardware acceleration or use another browser.',
      );
    this.gl = gl;
    this.multi = gl.getExtension('WEBGL_multi_draw');
    const made = (/** @type {string[]} */ [vertex, fragment]) => program(gl, vertex, fragment);
    this.points = made(POINTS);
    this.images = made(IMAGES);
    this.grounds = made(GROUNDS);
    this.blit = made(BLIT);
    this.table = texture(gl, gl.TEXTURE_2D);
    this.palette = texture(gl, gl.TEXTURE_2D);
    this.codes = texture(gl, gl.TEXTURE_2D);
    this.flags = texture(gl, gl.TEXTURE_2D);
    /** @type {Map<Layout, import('./programs.js').Vertices & {revision: number}>} */
    this.layouts = new Map();
    this.seen = { codes: 0, flags: 0, palette: '' };
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.disable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** Bring the textures of rows and the palette up to date. @param {import('../scene/rows.js').Rows} rows @param {import('../types.js').Colouring | undefined} colouring @param {boolean} dark */
  update(rows, colouring, dark) {
    const { gl, seen } = this;
    const key = `${dark} ${colouring?.title} ${colouring?.table}`;
    if (seen.codes !== rows.codesChanged) this.fill(this.codes, rows.codes);
    if (seen.flags !== rows.flagsChanged) this.fill(this.flags, rows.flags);
    if (seen.palette !== key) {
      this.colours = paletteBytes(colouring, dark);
      gl.bindTexture(gl.TEXTURE_2D, this.palette);
      if (!seen.palette) gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, 256, 256);
      gl.texSubImage2D(
        gl.TEXTURE_2D,
        0,
        0,
        0,
        256,
        this.colours.length / 1024,
        gl.RGBA,
        gl.UNSIGNED_BYTE,
        this.colours,
      );
    }
    this.seen = { codes: rows.codesChanged, flags: rows.flagsChanged, palette: key };
  }

  /** @private @param {WebGLTexture} into @param {Uint8Array | Uint16Array} values one a row */
  fill(into, values) {
    const { gl } = this;
    const wide = values instanceof Uint16Array;
    const height = Math.max(1, Math.ceil(values.length / WIDTH));
    const lines = new (wide ? Uint16Array : Uint8Array)(WIDTH * height); // the texture has no part of a line
    lines.set(values);
    const [format, kind] = wide ? [gl.R16UI, gl.UNSIGNED_SHORT] : [gl.R8UI, gl.UNSIGNED_BYTE];
    gl.bindTexture(gl.TEXTURE_2D, into);
    gl.texImage2D(gl.TEXTURE_2D, 0, format, WIDTH, height, 0, gl.RED_INTEGER, kind, lines);
  }

  /** @param {Float32Array} texels three a panel */
  setTable(texels) {
    const { gl } = this;
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.table);
    gl.texImage2D(
      gl.TEXTURE_2D,
      0,
      gl.RGBA32F,
      TEXELS,
      texels.length / (4 * TEXELS),
      0,
      gl.RGBA,
      gl.FLOAT,
      texels,
    );
  }

  /** Vertices of a layout, made when it is first drawn or an axis of a panel changed. @param {Layout} layout */
  layout(layout) {
    const cached = this.layouts.get(layout);
    if (cached && cached.revision === layout.revision) return cached;
    cached?.free();
    const panels = new Uint16Array(layout.rows.length);
    for (const { index, start, count } of layout.panels) panels.fill(index, start, start + count);
    const made = {
      ...vertices(this.gl, { 0: [layout.xy, 2], 1: [layout.rows, 1], 2: [panels, 1] }),
      revision: layout.revision,
    };
    this.layouts.set(layout, made);
    return made;
  }

  /** Let go of layouts that are not shown. @param {Set<Layout>} kept */
  prune(kept) {
    for (const [layout, made] of this.layouts) {
      if (!kept.has(layout)) {
        made.free();
        this.layouts.delete(layout);
      }
    }
  }

  destroy() {
    this.gl.getExtension('WEBGL_lose_context')?.loseContext();
  }
}
