/** A scene: its header `meta`, buffers fetched when first needed, and the codes of a colouring. */

import { clamp, mix } from '../layout/geometry.js';
import { rgb } from '../theme.js';
import { addOther, buildLayout, gatheredOf } from './layouts.js';
import { componentName } from './names.js';

const KIND = { f4: Float32Array, i2: Int16Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };

export class Scene {
  /** @param {Input} input */
  constructor(input) {
    this.input = input;
    this.meta = input.meta;
    this.rows = input.meta.rows;
    this.active = input.meta.most_used ?? input.meta.n_active ?? 0;
    /** @type {Map<string, Promise<any>>} */ this.loads = new Map();
    this.components = new Uint8Array(0); // or Uint16Array
    this.scores = new Int16Array(0);
    this.priority = new Uint32Array(0); // rows in the order in which images are placed
    this.tile = new Uint32Array(this.rows); // number of each row's image
    this.doubt = new Uint8Array(0);
    this.outside = new Uint8Array(0);
    this.near = new Uint32Array(0); // nearest rows of each row in the data, once fetched
  }

  /** Fetch the data that every layout needs, and prefetch the given buffers. @param {string[]} [next] buffers */
  async open(next = []) {
    const wide = this.meta.components.length > 255;
    const kinds = { components: wide ? 'u2' : 'u1', scores: 'i2', doubt: 'u1', outside: 'u1' };
    const wanted = Promise.all(
      Object.entries(kinds).map(([name, kind]) =>
        this.has(name) ? this.array(name, kind) : new Uint8Array(0),
      ),
    );
    for (const name of next)
      if (this.has(name) && this.meta.buffers?.[name]) this.array(name, this.meta.buffers[name][0]);
    this.priority = spreadOrder(this.rows); // computed while the buffers arrive
    for (let tile = 0; tile < this.rows; tile += 1) this.tile[this.priority[tile]] = tile;
    [this.components, this.scores, this.doubt, this.outside] = await wanted;
    return this;
  }

  /** @param {string} name */
  has(name) {
    return name in this.input.buffers;
  }

  /** Return a buffer as numbers; the host copies bytes at an odd offset. @param {string} name @param {string} kind such as "u1" @returns {Promise<any>} */
  array(name, kind) {
    return this.once(name, async () => {
      const buffer = await this.input.buffers[name]();
      return new KIND[/** @type {keyof typeof KIND} */ (kind)](buffer);
    });
  }

  /** Return the texts of a hover buffer (a JSON list). @param {string} name @returns {Promise<string[]>} */
  texts(name) {
    return this.once(name, async () =>
      JSON.parse(new TextDecoder().decode(await this.input.buffers[name]())),
    );
  }

  /** @param {string} name @returns {Promise<Layout>} */
  layout(name) {
    return this.once(`layout ${name}`, async () => {
      const meta = this.meta.layouts[name];
      const map = meta.kind === 'map' ? await this.array(`map.${name}`, 'u2') : null;
      const order = await this.array(`order.${name}`, 'u4');
      const layout = buildLayout(this, name, order, map);
      await addOther(this, layout);
      return layout;
    });
  }

  /** Return subspaces that have no panel. @param {string} name of a layout @returns {Promise<import('./layouts.js').Gathered[]>} */
  gathered(name) {
    return this.once(`gathered ${name}`, () => gatheredOf(this, name));
  }

  /** Return the sheet of the components' pictures, if any. @returns {Promise<ImageBitmap | null>} */
  pictures() {
    const { meta, sheets } = this.input;
    return this.once('pictures', async () =>
      meta.component_pictures && sheets?.components
        ? createImageBitmap(await sheets.components())
        : null,
    );
  }

  /** @param {string} name @returns {Promise<Uint8Array | Uint16Array>} */
  async codes(name) {
    if (!this.has(`codes.${name}`)) return new Uint8Array(this.rows);
    return this.array(`codes.${name}`, this.meta.colourings[name].names.length > 255 ? 'u2' : 'u1');
  }

  /** Return the row's score on a component in units of the buffer, 0 if unused. @param {number} row @param {number} component */
  score(row, component) {
    for (let at = row * this.active, end = at + this.active; at < end; at += 1) {
      if (this.components[at] === component) return this.scores[at];
    }
    return 0;
  }

  /** @private @param {string} key @param {() => Promise<any>} make */
  once(key, make) {
    const load = this.loads.get(key) ?? make();
    this.loads.set(key, load);
    load.catch(() => this.loads.delete(key)); // so that it can be requested again
    return load;
  }
}

/** Return all rows in golden-section steps, in the same order as the host. @param {number} count */
export function spreadOrder(count) {
  let step = Math.floor(count * 0.618033988749895);
  while (divisor(step, count) > 1) step += 1;
  const rows = new Uint32Array(count);
  for (let i = 1, row = step; i < count; i += 1, row = (row + step) % count) rows[i] = row;
  return rows;
}

/** Return the greatest common divisor. @param {number} a @param {number} b @returns {number} */
const divisor = (a, b) => (b ? divisor(b, a % b) : a);

const COMPUTED = /^components?:(\d+)(?:,(\d+))?$/;
const RAMP = ['#2f6fb3', '#c9ccd2', '#c83c28'];
const SIDE = 15; // steps per axis of the colour key, an odd number so that zero is in the middle
const CORNERS = ['#2f6fb3', '#2a9d6f', '#8a4fc4', '#d4552a'].map(rgb); // −−, +−, −+, ++
const MIDDLE = rgb('#b9bec6');

/** Name a colouring by one or two components. @param {Meta} meta @param {number[]} some */
export const colouringBy = (meta, some) =>
  some.length
    ? `component${some.length > 1 ? 's' : ''}:${some.map((k) => meta.components[k].number)}`
    : '';

/** Return the components (at most two) of a colouring. @param {Meta} meta @param {string} name */
export function colouredBy(meta, name) {
  const numbers = COMPUTED.exec(name)?.slice(1).filter(Boolean) ?? [];
  const by = numbers.map((one) => meta.components.findIndex(({ number }) => `${number}` === one));
  return by.includes(-1) ? [] : by;
}

/** @typedef {{codes: Uint8Array, colouring: Colouring}} Colours */

/** Colour rows by their scores on a component. @param {Scene} scene @param {number} component @returns {Colours} */
export function rampOf({ components, scores, active, rows, meta }, component) {
  const own = scores.filter((_, at) => components[at] === component);
  const most = own.reduce((largest, score) => Math.max(largest, Math.abs(score)), 1);
  const codes = new Uint8Array(rows).fill(255);
  for (let at = 0; at < scores.length; at += 1)
    if (components[at] === component)
      codes[Math.floor(at / active)] = Math.round(127 + (127 * scores[at]) / most);
  const limit = most * meta.score_unit;
  const limits = /** @type {[number, number]} */ ([-limit, limit]);
  const title = `Component ${componentName(meta, component)}`;
  return { codes, colouring: { kind: 'quantity', title, names: [], table: RAMP, limits } };
}

/** Colour rows that use at least one of two components by steps on a square. @param {Scene} scene @param {number[]} axes @returns {Colours} */
export function planeOf({ components, scores, active, rows, meta }, axes) {
  const none = (SIDE - 1) / 2;
  const most = axes.map((axis) => {
    const own = scores.filter((_, at) => components[at] === axis);
    const sizes = own.map(Math.abs).sort();
    return sizes[Math.floor(0.98 * (sizes.length - 1))] || 1; // because outliers would compress the other rows
  });
  const codes = new Uint8Array(rows).fill(255);
  for (let row = 0; row < rows; row += 1)
    for (let i = row * active; i < (row + 1) * active; i += 1) {
      const axis = axes.indexOf(components[i]);
      if (axis < 0) continue;
      if (codes[row] === 255) codes[row] = none + SIDE * none;
      const step = Math.round(none * (1 + clamp(scores[i] / most[axis], -1, 1)));
      codes[row] += (step - none) * (axis ? SIDE : 1);
    }
  const title = `Components ${axes.map((k) => meta.components[k].number).join(' and ')}`;
  const table = Array.from({ length: SIDE * SIDE }, (_, code) => squareColour(code));
  return { codes, colouring: { kind: 'plane', title, names: [], table, axes } };
}

/** Return the colour of a step: a mixture of the corners' colours, grey in the middle. @param {number} code */
function squareColour(code) {
  const [x, y] = [code % SIDE, Math.floor(code / SIDE)].map((step) => step / (SIDE - 1));
  const far = Math.min(1, Math.hypot(2 * x - 1, 2 * y - 1));
  const colour = MIDDLE.map((grey, i) => {
    const [a, b, c, d] = CORNERS.map((corner) => corner[i]);
    return Math.round(255 * mix(grey, mix(mix(a, b, x), mix(c, d, x), y), far));
  });
  return `#${colour.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

/** Update the colours of rows to the current colouring. @param {Stage} stage */
export async function recolour(stage) {
  const { meta, scene, rows, colouringName: name } = stage;
  const by = colouredBy(meta, name);
  const made = by.length ? (by.length > 1 ? planeOf(scene, by) : rampOf(scene, by[0])) : null;
  stage.computed = made && { name, colouring: made.colouring };
  const codes = made?.codes ?? (await scene.codes(name));
  if (name !== stage.colouringName || stage.gone) return;
  const names = String(stage.colouring?.names);
  const { codes: before } = rows;
  const same =
    names === rows.names &&
    before.constructor === codes.constructor &&
    before.length === codes.length &&
    before.every((/** @type {number} */ code, /** @type {number} */ row) => code === codes[row]);
  if (!same) [rows.codesChanged, stage.only] = [rows.codesChanged + 1, -1]; // otherwise the new scene has the same classes
  Object.assign(rows, { codes, names });
  stage.settleSoon();
}
