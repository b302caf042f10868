/** The canvas as a page by itself, with all that it shows inside. */

import { head } from './head.js';
import { mount } from './mount.js';
import { ofBase64 } from './scene/bytes.js';

/** @typedef {{meta: import('./types.js').Meta, buffers: Record<string, string>, sheets: string[], components: string | null, colouring: string}} Given */

/** A buffer: its bytes were put together by rank before they were packed. @param {string} text @returns {Promise<ArrayBuffer>} */
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

/** @param {Given} given */
async function open({ meta, buffers, sheets, components, colouring }) {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const theme = () =>
    (document.documentElement.dataset.theme = /** @type {'light' | 'dark'} */ (
      dark.matches ? 'dark' : 'light'
    ));
  const blob = (/** @type {string} */ text, /** @type {string} */ type) =>
    new Blob([ofBase64(text)], { type });
  const input = {
    meta,
    buffers: Object.fromEntries(
      Object.entries(buffers).map(([name, text]) => [name, () => unpacked(text)]),
    ),
    sheets: {
      tile: async (/** @type {number} */ number) => blob(sheets[number], 'image/webp'),
      ...(components ? { components: async () => blob(components, 'image/png') } : {}),
    },
    options: { colouring, theme: theme() },
  };
  const bar = head(meta, () => canvas, colouring);
  document.querySelector('header')?.append(bar.box);
  const canvas = mount(/** @type {HTMLElement} */ (document.getElementById('canvas')), input, {
    onSelect: (_, count) => bar.count(count),
  });
  Object.assign(window, { appca: canvas });
  dark.addEventListener('change', () => canvas.update({ options: { theme: theme() } }));
  await canvas.ready;
  document.documentElement.dataset.ready = 'yes';
}

open(JSON.parse(document.getElementById('data')?.textContent ?? ''));
