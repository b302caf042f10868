/** What is known of each row: its class, whether it is selected, doubtful, outside or filtered away. */

export const SELECTED = 1;
export const DOUBTFUL = 2;
export const OUTSIDE = 4;
export const HIDDEN = 8;
const EACH = 0x01010101; // SELECTED in each of four rows

/** @typedef {'replace' | 'add' | 'subtract'} How */

export class Rows {
  /** @param {number} count */
  constructor(count) {
    this.count = count;
    this.flags = this.bytes();
    /** @type {Uint8Array | Uint16Array} */
    this.codes = new Uint8Array(count);
    this.selected = 0;
    this.packed = new Uint8Array(Math.ceil(count / 8)); // one bit a row, lowest bit first
    this.hidden = 0;
    this.flagsChanged = 1; // revisions, compared by what is drawn from them
    this.codesChanged = 1;
    this.names = ''; // of the classes
  }

  /** @param {import('./scene.js').Scene} scene */
  readMarks(scene) {
    const least = scene.meta.doubt_below;
    for (let row = 0; row < this.count; row += 1) {
      const marks =
        ((scene.doubt[row] ?? 255) < least ? DOUBTFUL : 0) | (scene.outside[row] ? OUTSIDE : 0);
      this.flags[row] = (this.flags[row] & ~(DOUBTFUL | OUTSIDE)) | marks;
    }
    this.flagsChanged += 1;
  }

  /** A byte a row, with room to be read four at a time. */
  bytes() {
    return new Uint8Array(new ArrayBuffer(4 * Math.ceil(this.count / 4)), 0, this.count);
  }

  /** Select the marked rows. @param {Uint8Array} hits as `bytes` makes them, each 0 or 1 @param {How} how */
  apply(hits, how) {
    const [words, marks] = [this.flags, hits].map(({ buffer }) => new Int32Array(buffer));
    const bits = new Uint8Array(Math.ceil(this.count / 8));
    const kept = how === 'replace' ? 0 : EACH;
    const without = how === 'subtract';
    let count = 0;
    for (let i = 0; i < words.length; i += 1) {
      // four rows at a time
      const word = words[i];
      const hit = marks[i] & ~(word >> 3); // not what is hidden
      const before = word & kept;
      const now = without ? before & ~hit : before | hit;
      words[i] = (word & ~EACH) | now;
      bits[i >> 1] |= (now % 254) << (i & 1 ? 4 : 0); // 256 counts as 2: a bit a byte
      count += now % 255; // 256 counts as 1: their number
    }
    this.packed = bits;
    this.selected = count;
    this.flagsChanged += 1;
  }

  /** @param {Iterable<number>} list row numbers @param {How} how */
  applyList(list, how) {
    const hits = this.bytes();
    for (const row of list) hits[row] = 1;
    this.apply(hits, how);
  }

  /** @param {Uint8Array} bits as `packed` gives them */
  unpack(bits) {
    const hits = this.bytes();
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
