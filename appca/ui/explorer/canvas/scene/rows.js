/** What is known of each row: its class, whether it is selected, doubtful, outside or filtered away. */

export const SELECTED = 1;
export const DOUBTFUL = 2;
export const OUTSIDE = 4;
export const HIDDEN = 8;

/** @typedef {'replace' | 'add' | 'subtract'} How */

export class Rows {
  /** @param {number} count */
  constructor(count) {
    this.count = count;
    this.flags = new Uint8Array(count);
    /** @type {Uint8Array | Uint16Array} */
    this.codes = new Uint8Array(count);
    this.selected = 0;
    this.hidden = 0;
    this.flagsChanged = 1; // revisions, compared by what is drawn from them
    this.codesChanged = 1;
  }

  /** @param {import('./scene.js').Scene} scene */
  readMarks(scene) {
    const least = scene.meta.doubt_below;
    for (let row = 0; row < this.count; row += 1) {
      const marks = ((scene.doubt[row] ?? 255) < least ? DOUBTFUL : 0) | (scene.outside[row] ? OUTSIDE : 0);
      this.flags[row] = (this.flags[row] & ~(DOUBTFUL | OUTSIDE)) | marks;
    }
    this.flagsChanged += 1;
  }

  /** Select the marked rows. @param {Uint8Array} hits one byte a row @param {How} how */
  apply(hits, how) {
    const { flags } = this;
    const kept = how === 'replace' ? 0 : SELECTED;
    const without = how === 'subtract';
    let count = 0;
    for (let row = 0; row < flags.length; row += 1) {
      const hit = hits[row] && !(flags[row] & HIDDEN) ? SELECTED : 0;
      const before = flags[row] & kept;
      const now = without ? before & ~hit : before | hit;
      flags[row] = (flags[row] & ~SELECTED) | now;
      count += now;
    }
    this.selected = count;
    this.flagsChanged += 1;
  }

  /** @param {Iterable<number>} list row numbers @param {How} how */
  applyList(list, how) {
    const hits = new Uint8Array(this.count);
    for (const row of list) hits[row] = 1;
    this.apply(hits, how);
  }

  /** One bit a row, lowest bit first. */
  packed() {
    const bits = new Uint8Array(Math.ceil(this.count / 8));
    for (let row = 0; row < this.count; row += 1) bits[row >> 3] |= (this.flags[row] & SELECTED) << (row & 7);
    return bits;
  }

  /** @param {Uint8Array} bits as `packed` gives them */
  unpack(bits) {
    const hits = new Uint8Array(this.count);
    for (let row = 0; row < this.count; row += 1) hits[row] = (bits[row >> 3] >> (row & 7)) & 1;
    this.apply(hits, 'replace');
  }

  /** @param {(row: number) => boolean} keeps whether a filter keeps the row */
  filter(keeps) {
    this.hidden = 0;
    for (let row = 0; row < this.count; row += 1) {
      const away = keeps(row) ? 0 : HIDDEN;
      this.flags[row] = (this.flags[row] & ~HIDDEN) | away;
      this.hidden += away ? 1 : 0;
    }
    this.flagsChanged += 1;
  }
}
