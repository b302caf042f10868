/**
 * Sets of data set rows: one flag a row in memory, one bit a row on the wire (first row lowest).
 */

/** @param {Uint8Array} mask @returns {Uint8Array} */
export function packMask(mask) {
  const bits = new Uint8Array(Math.ceil(mask.length / 8));
  for (let row = 0; row < mask.length; row += 1) {
    if (mask[row]) bits[row >> 3] |= 1 << (row & 7);
  }
  return bits;
}

/** @param {Uint8Array} bits @param {number} count @returns {Uint8Array} */
export function unpackMask(bits, count) {
  const mask = new Uint8Array(count);
  for (let row = 0; row < count; row += 1) mask[row] = (bits[row >> 3] >> (row & 7)) & 1;
  return mask;
}

/** @param {?Uint8Array} mask */
export function countRows(mask) {
  if (!mask) return 0;
  let count = 0;
  for (let row = 0; row < mask.length; row += 1) count += mask[row];
  return count;
}

/** Whether two selections hold the same rows; null is "nothing selected". */
export function sameRows(a, b) {
  if (a === null || b === null) return a === b;
  if (a.length !== b.length) return false;
  for (let row = 0; row < a.length; row += 1) if (a[row] !== b[row]) return false;
  return true;
}

/**
 * Join a new set of rows with the selection.
 *
 * @param {?Uint8Array} mask the selection so far
 * @param {Iterable<number>} rows
 * @param {number} count rows of the data set
 * @param {'replace'|'add'|'subtract'|'toggle'} how
 * @returns {?Uint8Array} null when nothing is left
 */
export function combineRows(mask, rows, count, how) {
  const next = how === 'replace' || !mask ? new Uint8Array(count) : mask.slice();
  for (const row of rows) {
    if (how === 'subtract') next[row] = 0;
    else if (how === 'toggle') next[row] = 1 - next[row];
    else next[row] = 1;
  }
  return next.includes(1) ? next : null;
}

/** How a gesture joins the selection, by the keys that are held. */
export function joinOf(event) {
  if (event.altKey) return 'subtract';
  return event.shiftKey || event.ctrlKey || event.metaKey ? 'add' : 'replace';
}

/** Places in `rows` whose row is selected, for Plotly. */
export function selectedPlaces(rows, mask) {
  const places = [];
  for (let i = 0; i < rows.length; i += 1) if (mask[rows[i]]) places.push(i);
  return places;
}

/** Whether the selection is exactly `rows` (each row once). */
export function isExactly(mask, selectedCount, rows) {
  if (!mask || rows.length !== selectedCount) return false;
  for (const row of rows) if (!mask[row]) return false;
  return true;
}
