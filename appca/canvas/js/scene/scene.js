/** A scene: what `meta` says and the buffers it names, fetched when they are first needed. */

import { addOther, buildLayout, gatheredOf } from './layouts.js';

const KINDS = {
  f4: Float32Array,
  i2: Int16Array,
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
};

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
    this.priority = new Uint32Array(0); // rows in the order of their images
    this.tile = new Uint32Array(this.rows); // number of each row's image
    this.doubt = new Uint8Array(0);
    this.outside = new Uint8Array(0);
    this.near = new Uint32Array(0); // of each row its nearest rows in the data, once they are asked for
  }

  /** Fetch what every layout needs, and meanwhile what is needed next. @param {string[]} [next] buffers */
  async open(next = []) {
    const wide = this.meta.components.length > 255;
    const get = (/** @type {string} */ name, /** @type {keyof typeof KINDS} */ kind) =>
      this.has(name) ? this.array(name, kind) : new KINDS[kind](0);
    const wanted = Promise.all([
      get('components', wide ? 'u2' : 'u1'),
      get('scores', 'i2'),
      get('doubt', 'u1'),
      get('outside', 'u1'),
    ]);
    for (const name of next)
      if (this.has(name) && this.meta.buffers?.[name]) this.array(name, this.meta.buffers[name][0]);
    this.priority = spreadOrder(this.rows); // while they are on their way
    for (let tile = 0; tile < this.rows; tile += 1) this.tile[this.priority[tile]] = tile;
    [this.components, this.scores, this.doubt, this.outside] = await wanted;
    return this;
  }

  /** @param {string} name */
  has(name) {
    return name in this.input.buffers;
  }

  /** A buffer as numbers; bytes at an odd offset are copied by the host. @param {string} name @param {string} kind as "u1" @returns {Promise<any>} */
  array(name, kind) {
    return this.once(name, async () => {
      const buffer = await this.input.buffers[name]();
      return new KINDS[/** @type {keyof typeof KINDS} */ (kind.replace(/^[<|>]/, ''))](buffer);
    });
  }

  /** Texts of a hover buffer (a JSON list). @param {string} name @returns {Promise<string[]>} */
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

  /** Subspaces that have no panel of their own. @param {string} name of a layout @returns {Promise<import('./layouts.js').Gathered[]>} */
  gathered(name) {
    return this.once(`gathered ${name}`, () => gatheredOf(this, name));
  }

  /** The sheet of the components' pictures, if there are any. @returns {Promise<ImageBitmap | null>} */
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

  /** The row's score on a component in units of the buffer, 0 where the row does not use it. @param {number} row @param {number} component */
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
    load.catch(() => this.loads.delete(key)); // asked again later
    return load;
  }
}

/** All rows in steps of the golden section, as the host orders them. @param {number} count */
export function spreadOrder(count) {
  let step = Math.floor(count * 0.618033988749895);
  while (divisor(step, count) > 1) step += 1;
  const rows = new Uint32Array(count);
  for (let i = 1, row = step; i < count; i += 1, row = (row + step) % count) rows[i] = row;
  return rows;
}

/** The greatest that both have. @param {number} a @param {number} b @returns {number} */
const divisor = (a, b) => (b ? divisor(b, a % b) : a);
