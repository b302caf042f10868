/** The canvas as a self-contained page. */

import { mountAlone } from './mount.js';
import { buildHead } from './parts/bar.js';
import { mapped, ofBase64 } from './parts/dom.js';

/** Return K and L of the shown fit, and the available values. @param {Fit[]} fits @param {number} shown index of a fit @returns {Sizes} */
function sizesOf(fits, shown) {
  const distinct = (/** @type {0 | 1} */ i) =>
    [...new Set(fits.map(({ size }) => size[i] ?? 0))].sort((a, b) => a - b);
  const [ks, ls] = [distinct(0), distinct(1)];
  const [k, l] = fits[shown].size;
  return { k, l: ls.length > 1 ? l : null, most_k: ks[ks.length - 1], ks, ls };
}

/** Return the index of the fit with this K, or the next larger K, and the nearest L. @param {Fit[]} fits @param {Size} wanted */
function placeOf(fits, { k, l }) {
  const off = (/** @type {Fit} */ { size: [a, b] }) =>
    (a < k ? 1e6 : 0) + 1e3 * Math.abs(a - k) + Math.abs((b ?? 0) - (l ?? 0));
  return fits.indexOf(fits.reduce((a, b) => (off(b) < off(a) ? b : a)));
}

/** @typedef {{size: [number, number | null], meta: number, buffers: Record<string, number>, components: string | null}} Fit `meta`, `buffers` and `components` are indices of packed texts */
/** @typedef {{packed: string[], fits: Fit[], sheets: string[], colouring: string}} Content */

/** Unpack a buffer, whose bytes were grouped by rank for compression. @param {string} text @returns {Promise<ArrayBuffer>} */
async function unpacked(text) {
  const bytes = ofBase64(text);
  const stream = new Blob([bytes.subarray(1)])
    .stream()
    .pipeThrough(new DecompressionStream('deflate'));
  const ranks = new Uint8Array(await new Response(stream).arrayBuffer());
  const [size] = bytes;
  const count = ranks.length / size;
  const whole = new Uint8Array(ranks.length);
  for (let rank = 0; rank < size; rank += 1) {
    for (let i = 0; i < count; i += 1) whole[i * size + rank] = ranks[rank * count + i];
  }
  return whole.buffer;
}

/** @param {string} text @param {string} type */
const blob = (text, type) => new Blob([ofBase64(text)], { type });

/** Return the canvas's input for a fit. @param {Content} content @param {Fit} fit @returns {Promise<Input>} */
async function inputOf({ packed, sheets }, { meta, buffers, components }) {
  const header = await unpacked(packed[meta]);
  return {
    meta: JSON.parse(new TextDecoder().decode(header)),
    buffers: mapped(buffers, (place) => () => unpacked(packed[place])),
    sheets: {
      tile: async (number) => blob(sheets[number], 'image/webp'),
      components: components ? async () => blob(components, 'image/png') : undefined,
    },
  };
}

/** @param {Content} content */
async function open(content) {
  const { fits, colouring } = content;
  let shown = Math.floor(fits.length / 2);
  let wanted = shown;
  let moving = false;
  const move = async (/** @type {number} */ place) => {
    wanted = place;
    if (moving) return; // skips the fits in between
    moving = true;
    while (shown !== wanted) {
      shown = wanted;
      await canvas.update(await inputOf(content, fits[shown]));
    }
    moving = false;
  };
  const head = buildHead(
    () => canvas,
    (size) => {
      move(placeOf(fits, size));
      head.follow();
    },
    () => (fits.length > 1 ? sizesOf(fits, wanted) : undefined),
  );
  const input = await inputOf(content, fits[shown]);
  const canvas = mountAlone({ ...input, options: { colouring } }, head);
  await canvas.ready;
  document.querySelector('header')?.append(head.box);
}

open(JSON.parse(document.getElementById('data')?.textContent ?? ''));
