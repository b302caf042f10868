/** WebGL programs, shaders, buffers and textures, with the data of layouts, panels and colours. */

import { paletteBytes } from '../theme.js';

/** @typedef {WebGL2RenderingContext} GL */
/** @typedef {ReturnType<typeof program>} Program */

/** Number of floats in a uniform of this type; other types are integers. @type {Record<number, number>} */
const FLOATS = { 0x1406: 1, 0x8b50: 2, 0x8b51: 3, 0x8b52: 4 };

/** @param {GL} gl @param {string[]} sources vertex and fragment shader */
function program(gl, sources) {
  const made = gl.createProgram();
  sources.forEach((source, i) => {
    const kind = i ? gl.FRAGMENT_SHADER : gl.VERTEX_SHADER;
    const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
    const text = `#version 300 es\nprecision highp float; precision highp int;\n${source}`;
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  });
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
    const logs = (gl.getAttachedShaders(made) ?? []).map((shader) => gl.getShaderInfoLog(shader));
    throw new Error(`${gl.getProgramInfoLog(made)} ${logs.join(' ')}`);
  }
  /** @type {Record<string, (value: number[]) => void>} */ const uniforms = {};
  for (let i = 0; i < (gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS) ?? 0); i += 1) {
    const { name, type } = /** @type {WebGLActiveInfo} */ (gl.getActiveUniform(made, i));
    const at = gl.getUniformLocation(made, name);
    const set = FLOATS[type] ? `uniform${FLOATS[type]}fv` : 'uniform1iv';
    uniforms[name] = (value) => /** @type {any} */ (gl)[set](at, value);
  }
  /** Draw with this program and these uniforms. @param {Record<string, number | number[]>} values */
  return (values) => {
    gl.useProgram(made);
    for (const [name, value] of Object.entries(values)) uniforms[name]?.([value].flat());
  };
}

/** @param {GL} gl @param {number} kind @param {number} [filter] */
export function texture(gl, kind, filter = gl.NEAREST) {
  const made = gl.createTexture();
  gl.bindTexture(kind, made);
  gl.texParameteri(kind, gl.TEXTURE_MIN_FILTER, filter);
  gl.texParameteri(kind, gl.TEXTURE_MAG_FILTER, filter);
  gl.texParameteri(kind, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(kind, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  return made;
}

/** @param {GL} gl @param {number} unit @param {number} kind @param {WebGLTexture} made */
export function bind(gl, unit, kind, made) {
  gl.activeTexture(gl.TEXTURE0 + unit);
  gl.bindTexture(kind, made);
}

/** @typedef {Record<number, [Int16Array | Float32Array | Uint16Array | Uint32Array, number]>} Attributes by location: an array, and its number of values per vertex */

/** Create a vertex array; unsigned numbers remain integers in the shader. @param {GL} gl @param {Attributes} attributes @param {number} [divisor] */
export function vertices(gl, attributes, divisor = 0) {
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  const buffers = Object.entries(attributes).map(([location, [data, size]]) => {
    const at = Number(location);
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(at);
    const wide = data.BYTES_PER_ELEMENT === 4;
    if (data instanceof Uint32Array || data instanceof Uint16Array)
      gl.vertexAttribIPointer(at, size, wide ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT, 0, 0);
    else gl.vertexAttribPointer(at, size, wide ? gl.FLOAT : gl.SHORT, false, 0, 0);
    gl.vertexAttribDivisor(at, divisor);
    return buffer;
  });
  gl.bindVertexArray(null);
  const free = () => {
    buffers.forEach((buffer) => gl.deleteBuffer(buffer));
    gl.deleteVertexArray(array);
  };
  return { array, free };
}
/** @typedef {ReturnType<typeof vertices>} Vertices */

/** Draw `count` instances of some corners with the program in use. @param {GL} gl @param {number} mode @param {number} corners @param {number} count @param {Attributes} attributes per instance */
export function drawInstances(gl, mode, corners, count, attributes) {
  const { array, free } = vertices(gl, attributes, 1);
  gl.bindVertexArray(array);
  gl.drawArraysInstanced(mode, 0, corners, count);
  free();
}

const ROWS = `
precision highp sampler2D; precision highp usampler2D;
layout(location=0) in vec4 aRaw; layout(location=1) in uint aRow; layout(location=2) in uint aPanel;
layout(location=3) in vec3 aFrom;
uniform sampler2D uPanels, uPalette; uniform usampler2D uCodes, uFlags;
uniform vec4 uX, uY; uniform vec2 uView, uFade; uniform int uBase, uMode, uSelecting, uOnly; uniform float uT; uniform vec3 uGrey;
vec4 plot, look; uint flags; bool on; float strength, shape;
vec2 place() { // pixels; raw scores through the two axes into the panel's plot
  int panel = int(aPanel) + uBase; ivec2 row = ivec2(int(aRow & 2047u), int(aRow >> 11u));
  vec4 at = texelFetch(uPanels, ivec2(0, panel), 0);
  plot = texelFetch(uPanels, ivec2(1, panel), 0); look = texelFetch(uPanels, ivec2(2, panel), 0);
  flags = texelFetch(uFlags, row, 0).r;
  vec2 p = at.xy + at.zw * vec2(dot(uX, aRaw), dot(uY, aRaw));
  strength = (flags & 8u) != 0u ? 0. : look.y; if ((flags & 4u) != 0u) p = clamp(p, plot.xy, plot.zw); // marked rows beyond the axes
  if (uMode == 1) { p = mix(aFrom.xy, p, uT); strength *= aFrom.z > .5 ? 1. : smoothstep(.66, 1., uT); }
  else if (any(lessThan(p, plot.xy - .5)) || any(greaterThan(p, plot.zw + .5))) strength = 0.;
  if (uMode == 2) strength *= min(1., dot(aFrom.xy, uFade));
  return p;
}
vec3 colour() {
  ivec2 row = ivec2(int(aRow & 2047u), int(aRow >> 11u)); int code = int(texelFetch(uCodes, row, 0).r);
  on = (uSelecting == 0 || (flags & 1u) != 0u) && (uOnly < 0 || code == uOnly);
  vec4 known = texelFetch(uPalette, ivec2(code & 255, code >> 8), 0); shape = floor(known.a * 255. + .5);
  return on ? known.rgb : uGrey;
}
vec4 clip(vec2 p) { return vec4(p.x / uView.x * 2. - 1., 1. - p.y / uView.y * 2., 0., 1.); }
const vec4 NOWHERE = vec4(2., 2., 2., 1.);
`;

const POINTS = [
  `${ROWS}
uniform int uPass; uniform float uDpr; flat out vec4 vColour; flat out vec3 vShape;
void main() {
  vec2 p = place(); vec3 c = colour(); float size = look.x; float a = strength;
  if (!on) a *= .38; else if (uSelecting + (uOnly + 1) > 0) { size *= 1.15; a = min(1., a * 1.4 + .1 * sign(a)); }
  bool marked = (flags & 4u) != 0u; float mark = !marked && (flags & 2u) != 0u ? 1. : 0.;
  if (marked) size = max(6., 1.5 * size); else if (mark > 0. && on) { if (size > 3.6) size += 1.2; else a *= .55; }
  if (size < 4.2) shape = 0.; else if (shape > 0.) size += 1.2;
  size *= uDpr; vColour = vec4(c, a); vShape = vec3(size, size < 3.6 * uDpr ? 0. : mark, shape);
  gl_Position = a <= 0. || (uPass == 1 && on) || (uPass == 2 && !on) ? NOWHERE : clip(p);
  gl_PointSize = max(1., size);
}`,
  `
flat in vec4 vColour; flat in vec3 vShape; out vec4 o;
float reach(vec2 q) { // distance from the middle to the edge of the shape in that direction
  vec2 k = abs(q);
  return vShape.z < .5 ? length(q) : vShape.z < 1.5 ? .8 * (k.x + k.y) : vShape.z < 2.5 ? 1.15 * max(k.x, k.y)
    : vShape.z < 3.5 ? max(2.8 * min(k.x, k.y), max(k.x, k.y)) : 1.2 * max(q.y, .87 * k.x - .5 * q.y);
}
void main() {
  float a = vColour.a; vec2 q = (gl_PointCoord - .5) * vShape.x;
  if (vShape.x <= 2.) a *= mix(1., .64, smoothstep(1.5, 2., vShape.x)); // as much ink as the discs of larger points
  else {
    float d = reach(q), r = vShape.x * .5 - mix(.2, .5, smoothstep(2., 4., vShape.x));
    a *= 1. - smoothstep(r - .5, r + .5, d);
    if (vShape.y > 0.) a *= .12 + .88 * smoothstep(r - 1.9, r - 1.1, d);
  }
  o = vec4(vColour.rgb * a, a);
}`,
];

const IMAGES = [
  `${ROWS}
layout(location=4) in uint aTile; uniform float uPx, uDpr, uLift; uniform vec4 uSheet; // tile height, width, cell, columns
uniform float uPer; flat out vec3 vColour; flat out vec3 vInfo; flat out vec4 vPlot; out vec3 vUv; out vec2 vAt; out vec2 vPage;
void main() {
  vec2 p = place(); vColour = colour(); vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  float per = uPer, tile = mod(float(aTile), per); float layer = floor(float(aTile) / per + .0001);
  vec2 half_ = uPx * .5 * vec2(uSheet.y, uSheet.x) / max(uSheet.x, uSheet.y); vec2 cell = vec2(mod(tile, uSheet.w), floor(tile / uSheet.w)); p.y -= uLift;
  vec2 off = (uSheet.zz - uSheet.yx) * .5;
  vUv = vec3((cell * uSheet.z + off + corner * uSheet.yx) / (uSheet.z * uSheet.w), layer);
  vAt = (corner - .5) * half_ * 2.; vInfo = vec3(half_, on ? 1. : 0.); vPlot = uMode == 1 ? vec4(-1e6, -1e6, 1e6, 1e6) : plot;
  vec2 page = floor((p - half_) * uDpr + .5) / uDpr + corner * half_ * 2.; vPage = page;
  gl_Position = strength <= 0. ? NOWHERE : clip(page);
}`,
  `
precision mediump sampler2DArray; uniform sampler2DArray uSheets; uniform vec3 uCard; uniform int uInk; uniform float uDpr, uHeavy;
flat in vec3 vColour; flat in vec3 vInfo; flat in vec4 vPlot; in vec3 vUv; in vec2 vAt; in vec2 vPage; out vec4 o;
void main() {
  if (any(lessThan(vPage, vPlot.xy)) || any(greaterThan(vPage, vPlot.zw))) discard;
  vec4 t = texture(uSheets, vUv); float ink = smoothstep(.15, .4, t.r) * (vInfo.z > .5 ? 1. : .35); if (uInk == 3) { o = vec4(mix(uCard, mix(vColour, 1. - uCard, .35), smoothstep(.38, .62, t.r)) * ink, ink); return; }
  float radius = min(4., vInfo.x * .3); vec2 k = abs(vAt) - (vInfo.xy - radius);
  float far = length(max(k, 0.)) + min(max(k.x, k.y), 0.) - radius; float inside = 1. - smoothstep(-.7 / uDpr, .3 / uDpr, far);
  float frame = smoothstep(-1.4 - uHeavy, -.7 - uHeavy, far) * (vInfo.z > .5 ? .45 + .55 * step(.5, uHeavy) : .3);
  vec3 c = uInk == 1 ? mix(uCard, vColour, t.r) : uInk == 2 ? t.rrr : t.rgb; c = mix(c, vColour, frame);
  float a = inside * (vInfo.z > .5 ? (uInk == 1 ? .95 : 1.) : .35); o = vec4(c * a, a);
}`,
];

const GROUNDS = [
  `
layout(location=0) in vec4 aCard; layout(location=1) in vec4 aPlot; layout(location=2) in vec4 aLook; layout(location=3) in vec4 aInner;
uniform vec2 uView; flat out vec4 vCard, vPlot, vLook;
const int CORNERS[6] = int[](0, 1, 2, 2, 1, 3);
void main() { // border rectangles: above, below, left and right of the inner part; then the two axes
  vec2 a = aCard.xy, b = a + aCard.zw, c = aInner.xy, d = aInner.zw, from = clamp(aLook.xy - 1., c, d), to = clamp(aLook.xy + 1., c, d);
  vec4 quads[6] = vec4[](vec4(a, b.x, c.y), vec4(a.x, d.y, b), vec4(a.x, c.y, c.x, d.y), vec4(d.x, c.y, b.x, d.y), vec4(from.x, c.y, to.x, d.y), vec4(c.x, from.y, d.x, to.y));
  vec4 quad = quads[gl_VertexID / 6]; int k = CORNERS[gl_VertexID % 6];
  vec2 p = mix(quad.xy, quad.zw, vec2(k & 1, k >> 1)); vCard = aCard; vPlot = aPlot; vLook = aLook;
  gl_Position = vec4(p.x / uView.x * 2. - 1., 1. - p.y / uView.y * 2., 0., 1.);
}`,
  `
flat in vec4 vCard, vPlot, vLook; uniform vec2 uView, uPixel; uniform vec3 uFill, uLine, uAxis, uAccent; uniform float uDpr; out vec4 o;
void main() { // vLook: zero's x and y, focus, strength
  vec2 at = vec2(0., uView.y) + vec2(1., -1.) * gl_FragCoord.xy * uPixel;
  float radius = min(12., 3. + .02 * vCard.z); vec2 k = abs(at - vCard.xy - vCard.zw * .5) - (vCard.zw * .5 - radius);
  float far = length(max(k, 0.)) + min(max(k.x, k.y), 0.) - radius; float inside = 1. - smoothstep(-.5 / uDpr, .5 / uDpr, far);
  float wide = vLook.z > .5 ? 2. : 1.; float edge = smoothstep(-wide - .5 / uDpr, -wide + .5 / uDpr, far);
  vec2 zero = abs(at - vLook.xy); bool within = all(greaterThan(at, vPlot.xy)) && all(lessThan(at, vPlot.zw));
  vec3 c = within && min(zero.x, zero.y) < .55 ? uAxis : uFill; c = mix(c, vLook.z > .5 ? uAccent : uLine, edge);
  float a = inside * vLook.w; o = vec4(c * a, a);
}`,
];

const BLIT = [
  `
layout(location=0) in vec4 aCard; uniform vec4 uTo; uniform vec2 uView;
void main() { // a card, including points that extend over its edges
  float rim = min(3., .02 * aCard.z); vec2 p = mix(aCard.xy - rim, aCard.xy + aCard.zw + rim, vec2(gl_VertexID & 1, gl_VertexID >> 1));
  p = clamp(p, uTo.xy, uTo.xy + uTo.zw); gl_Position = vec4(p.x / uView.x * 2. - 1., 1. - p.y / uView.y * 2., 0., 1.);
}`,
  `
uniform sampler2D uLayer; uniform vec4 uCarry; uniform float uStrength; out vec4 o; // samples at pixel coordinates, which is exact at rest
void main() { o = texture(uLayer, gl_FragCoord.xy * uCarry.xy + uCarry.zw) * uStrength; }`,
];

/** @typedef {{texture: WebGLTexture, target: WebGLFramebuffer, width: number, height: number, image?: ImageData, bytes?: Uint8Array}} Sheet `image` and `bytes`: its pixels on this side */

/** Return a sheet of the canvas's size to draw into: the old one if it has this size. @param {GL} gl @param {Sheet | null} old @returns {Sheet} */
export function sheetOf(gl, old) {
  const { drawingBufferWidth: width, drawingBufferHeight: height, FRAMEBUFFER } = gl;
  if (old?.width === width && old.height === height) return old;
  gl.deleteTexture(old?.texture ?? null);
  gl.deleteFramebuffer(old?.target ?? null);
  const made = texture(gl, gl.TEXTURE_2D, gl.LINEAR);
  gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, width, height);
  const target = gl.createFramebuffer();
  gl.bindFramebuffer(FRAMEBUFFER, target);
  gl.framebufferTexture2D(FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, made, 0);
  gl.bindFramebuffer(FRAMEBUFFER, null);
  return { texture: made, target, width, height };
}

const WIDTH = 2048; // width of textures with one value per row

export class Gpu {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    const look = /** @type {const} */ ({ alpha: false, powerPreference: 'high-performance' });
    const gl = canvas.getContext('webgl2', { antialias: false, ...look });
    if (!gl)
      throw new Error(
        'This browser does not offer WebGL 2, which the picture needs; turn on hardware acceleration or use another browser.',
      );
    this.canvas = canvas;
    this.gl = gl;
    /** @type {Sheet | null} with the late frame */ this.sheet = null;
    this.buffer = gl.createBuffer(); // its pixels
    /** @type {WebGLSync | null} */ this.sync = null;
    this.sent = 0; // time in ms at which it was drawn, 0 if none is awaited
    this.multi = gl.getExtension('WEBGL_multi_draw');
    this.points = program(gl, POINTS);
    this.images = program(gl, IMAGES);
    this.grounds = program(gl, GROUNDS);
    this.blit = program(gl, BLIT);
    this.table = texture(gl, gl.TEXTURE_2D);
    this.palette = texture(gl, gl.TEXTURE_2D);
    this.codes = texture(gl, gl.TEXTURE_2D);
    this.flags = texture(gl, gl.TEXTURE_2D);
    /** @type {Map<Layout, Vertices & {revision: number}>} */ this.layouts = new Map();
    this.seen = { codes: 0, flags: 0, palette: '' };
    this.colours = new Uint8Array(4);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.disable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** Update the textures of rows and the palette. @param {Rows} rows @param {Colouring | undefined} colouring @param {boolean} dark */
  update(rows, colouring, dark) {
    const { gl, seen } = this;
    const { TEXTURE_2D: kind, RGBA, UNSIGNED_BYTE } = gl;
    const key = `${dark} ${colouring?.title} ${colouring?.table}`;
    if (seen.codes !== rows.codesChanged) this.fill(this.codes, rows.codes);
    if (seen.flags !== rows.flagsChanged) this.fill(this.flags, rows.flags);
    if (seen.palette !== key) {
      const colours = (this.colours = paletteBytes(colouring, dark));
      const lines = colours.length / 1024;
      gl.bindTexture(kind, this.palette);
      gl.texImage2D(kind, 0, gl.RGBA8, 256, lines, 0, RGBA, UNSIGNED_BYTE, colours);
    }
    this.seen = { codes: rows.codesChanged, flags: rows.flagsChanged, palette: key };
  }

  /** @private @param {WebGLTexture} into @param {Uint8Array | Uint16Array} values one per row */
  fill(into, values) {
    const { gl } = this;
    const wide = values instanceof Uint16Array;
    const height = Math.max(1, Math.ceil(values.length / WIDTH));
    const lines = new (wide ? Uint16Array : Uint8Array)(WIDTH * height); // uploads need complete lines
    lines.set(values);
    const [format, type] = wide ? [gl.R16UI, gl.UNSIGNED_SHORT] : [gl.R8UI, gl.UNSIGNED_BYTE];
    gl.bindTexture(gl.TEXTURE_2D, into);
    gl.texImage2D(gl.TEXTURE_2D, 0, format, WIDTH, height, 0, gl.RED_INTEGER, type, lines);
  }

  /** @param {Float32Array} texels three per panel */
  setTable(texels) {
    const { gl } = this;
    const { TEXTURE_2D: kind, RGBA32F, RGBA, FLOAT } = gl;
    bind(gl, 0, kind, this.table);
    gl.texImage2D(kind, 0, RGBA32F, 3, texels.length / 12, 0, RGBA, FLOAT, texels);
  }

  /** Return the vertices of a layout, created at its first drawing or after an axis changed. @param {Layout} layout */
  layout(layout) {
    const cached = this.layouts.get(layout);
    if (cached && cached.revision === layout.revision) return cached;
    cached?.free();
    const panels = new Uint16Array(layout.rows.length);
    for (const { index, start, count } of layout.panels) panels.fill(index, start, start + count);
    const made = vertices(this.gl, { 0: [layout.xy, 2], 1: [layout.rows, 1], 2: [panels, 1] });
    const kept = { ...made, revision: layout.revision };
    this.layouts.set(layout, kept);
    return kept;
  }

  /** Delete layouts that are not shown. @param {Set<Layout>} kept */
  prune(kept) {
    for (const [layout, made] of this.layouts)
      if (!kept.has(layout)) {
        made.free();
        this.layouts.delete(layout);
      }
  }

  /** Draw a frame beside the canvas and let the GPU copy it: without a GPU, the browser waits until what is drawn in the canvas is finished. @param {(target: WebGLFramebuffer) => void} draw */
  drawLate(draw) {
    const { gl } = this;
    this.sent = performance.now();
    this.sheet = sheetOf(gl, this.sheet);
    const { target, width, height } = this.sheet;
    draw(target);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, this.buffer);
    gl.bufferData(gl.PIXEL_PACK_BUFFER, 4 * width * height, gl.STREAM_READ);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, 0);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.sync = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
  }

  /** Copy pixels, counted from below, between sheets; without a GPU, a program takes ten times as long. @param {Sheet} from @param {Sheet} to @param {number} dx @param {number} dy @param {[number, number, number, number]} part */
  copy(from, to, dx, dy, [x, y, w, h]) {
    const { gl, sheet } = this;
    gl.bindFramebuffer(gl.READ_FRAMEBUFFER, from.target);
    bind(gl, 0, gl.TEXTURE_2D, to.texture);
    gl.copyTexSubImage2D(gl.TEXTURE_2D, 0, x + dx, y + dy, x, y, w, h);
    gl.bindFramebuffer(gl.FRAMEBUFFER, sheet?.target ?? null);
  }

  /** Return the late frame if it is finished; its lines come from below. */
  readLate() {
    const { gl, sync, sheet } = this;
    if (!sync || !sheet || gl.getSyncParameter(sync, gl.SYNC_STATUS) !== gl.SIGNALED) return null;
    const image = (sheet.image ??= new ImageData(sheet.width, sheet.height));
    const size = image.data.length;
    const bytes = (sheet.bytes ??= new Uint8Array(size)); // a new one takes 4 ms
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, this.buffer);
    gl.getBufferSubData(gl.PIXEL_PACK_BUFFER, 0, bytes);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
    for (let at = 0, line = 4 * sheet.width; at < size; at += line)
      image.data.set(bytes.subarray(at, at + line), size - line - at);
    return image;
  }

  /** Delete a picture, but keep the programs, which take long to compile. @param {({texture: WebGLTexture} | null)[]} made textures of the picture */
  clear(made) {
    for (const old of made) this.gl.deleteTexture(old?.texture ?? null);
    this.prune(new Set());
    this.sent = 0;
    Object.assign(this.seen, { codes: 0, flags: 0 });
  }
}
