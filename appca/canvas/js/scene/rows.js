/** The state of each row: class, selected, doubtful, outside, filtered. */

export const SELECTED = 1;
export const DOUBTFUL = 2;
export const OUTSIDE = 4;
export const HIDDEN = 8;
const EACH = 0x01010101; // SELECTED in the bytes of four rows

export class Rows {
  /** @param {number} count */
  constructor(count) {
    this.count = count;
    this.flags = this.bytes();
    /** @type {Uint8Array | Uint16Array} */ this.codes = new Uint8Array(count);
    this.selected = 0;
    this.packed = new Uint8Array(Math.ceil(count / 8)); // one bit per row, lowest bit first
    this.hidden = 0;
    this.flagsChanged = 1; // revision numbers, which increase with every change
    this.codesChanged = 1;
    this.names = ''; // class names
  }

  /** @param {Scene} scene */
  readMarks(scene) {
    const { doubt, outside } = scene;
    const least = scene.meta.doubt_below;
    for (let row = 0; row < this.count; row += 1) {
      const marks = ((doubt[row] ?? 255) < least ? DOUBTFUL : 0) | (outside[row] ? OUTSIDE : 0);
      this.flags[row] = (this.flags[row] & ~(DOUBTFUL | OUTSIDE)) | marks;
    }
    this.flagsChanged += 1;
  }

  /** Return a byte per row, padded so that four can be read at a time. */
  bytes() {
    return new Uint8Array(new ArrayBuffer(4 * Math.ceil(this.count / 4)), 0, this.count);
  }

  /** Select the marked rows. @param {Uint8Array} hits 0 or 1 per row, padded as by `bytes` @param {How} how */
  apply(hits, how) {
    const [words, marks] = [this.flags, hits].map(({ buffer }) => new Int32Array(buffer));
    const bits = new Uint8Array(Math.ceil(this.count / 8));
    const kept = how === 'replace' ? 0 : EACH;
    const without = how === 'subtract';
    let count = 0;
    for (let i = 0; i < words.length; i += 1) {
      // process four rows at a time
      const word = words[i];
      const hit = marks[i] & ~(word >> 3); // hidden rows cannot be selected
      const before = word & kept;
      const now = without ? before & ~hit : before | hit;
      words[i] = (word & ~EACH) | now;
      bits[i >> 1] |= (now % 254) << (i & 1 ? 4 : 0); // modulo 254, 256 is 2: each byte gives one bit
      count += now % 255; // modulo 255, 256 is 1: the sum of the bytes
    }
    this.packed = bits;
    this.selected = count;
    this.flagsChanged += 1;
  }

  /** @param {Iterable<number>} list row indices @param {How} how */
  applyList(list, how) {
    const hits = this.bytes();
    for (const row of list) hits[row] = 1;
    this.apply(hits, how);
  }

  /** @param {Uint8Array} bits in the format of `packed` */
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

/** @typedef {{count: number, classes: Map<number, number>}} Cell */
/** @typedef {{cells: Cell[], classes: Map<number, number>, beyond: [number, number, number, number]}} Counts */

/** @type {WeakMap<Layout, Map<string, Counts>>} */ const counted = new WeakMap();

/** Count points in cells (−−, +−, −+, ++ by the signs of x and y), and beyond the left, right, bottom and top edges. @param {Layout} layout @param {Panel} panel @param {Rows} rows @param {Bounds} range @returns {Counts} */
export function countsOf(layout, panel, rows, range) {
  const store = counted.get(layout) ?? new Map();
  counted.set(layout, store);
  const key = `${panel.index} ${layout.revision} ${rows.codesChanged} ${rows.hidden} ${range}`;
  const counts = store.get(key) ?? count(layout, panel, rows, range);
  if (store.size > 400) store.clear();
  store.set(key, counts);
  return counts;
}

/** @param {Layout} layout @param {Panel} panel @param {Rows} rows @param {Bounds} range @returns {Counts} */
function count({ rows: numbers, xy }, { start, count: all }, { codes, flags }, range) {
  const size = codesIn(codes);
  const table = new Uint32Array(4 * size); // cells by code
  /** @type {[number, number, number, number]} */ const beyond = [0, 0, 0, 0];
  for (let i = start; i < start + all; i += 1) {
    const row = numbers[i];
    if (flags[row] & HIDDEN) continue;
    const [x, y] = [xy[2 * i], xy[2 * i + 1]];
    table[((x > 0 ? 1 : 0) + (y > 0 ? 2 : 0)) * size + codes[row]] += 1;
    if (x < range[0]) beyond[0] += 1;
    else if (x > range[1]) beyond[1] += 1;
    else if (y < range[2]) beyond[2] += 1;
    else if (y > range[3]) beyond[3] += 1;
  }
  /** @type {Map<number, number>} */ const classes = new Map();
  const cells = [0, 1, 2, 3].map((cell) => {
    const own = table.subarray(cell * size, (cell + 1) * size);
    const present = new Map();
    own.forEach((many, code) => many && present.set(code, many));
    for (const [code, many] of present) classes.set(code, (classes.get(code) ?? 0) + many);
    return { count: own.reduce((sum, many) => sum + many, 0), classes: present };
  });
  return { cells, classes, beyond };
}

/** Return the number of possible codes. @param {Uint8Array | Uint16Array} codes */
export const codesIn = (codes) => 2 ** (8 * codes.BYTES_PER_ELEMENT);

/** Sort codes by count, largest first. @param {Map<number, number>} classes */
export const ranked = (classes) => [...classes].sort((a, b) => b[1] - a[1]);

/** Return, for example, "mostly 9s and 4s". @param {Cell} cell @param {string[]} names */
export function mostly(cell, names) {
  const said = ranked(cell.classes)
    .filter(([code, many]) => code < names.length && many > 0.25 * cell.count)
    .slice(0, 2);
  const many = said.reduce((sum, [, own]) => sum + own, 0);
  if (2 * many <= cell.count || said.length === names.length) return '';
  return `mostly ${said.map(([code]) => plural(names[code])).join(' and ')}`;
}

/** @param {string} name */
const plural = (name) => (/^\d$/.test(name) ? `${name}s` : name);
