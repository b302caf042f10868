/** The canvas as a page by itself, with all that it shows inside. */

import { head, mount } from './mount.js';
import { element, ofBase64, range } from './parts/dom.js';

/** @typedef {[k: number, l: number | null]} Size */

/** @param {Size[]} sizes of the fits @param {number} first place of the fit that is shown @param {(place: number) => void} show @returns {HTMLElement} */
function buildSizes(sizes, first, show) {
  const box = element('div', 'appca-sizes');
  const [k, l] = sizes[first];
  const wanted = { k, l };
  const lOf = (/** @type {number} */ chosen) =>
    sizes.filter(([other]) => other === chosen).map(([, active]) => active);
  const take = () => {
    const possible = lOf(wanted.k);
    const nearest = possible.reduce((a, b) =>
      distance(b, wanted.l) < distance(a, wanted.l) ? b : a,
    );
    say(ofK, 'K', wanted.k);
    if (ofL) say(ofL, 'L', nearest);
    show(sizes.findIndex(([a, b]) => a === wanted.k && b === nearest));
  };
  const ofK = slider(box, 'Components, K', distinct(sizes.map(([a]) => a)), k, (value) => {
    wanted.k = value;
    take();
  });
  const all = distinct(sizes.map(([, b]) => b ?? 0));
  const ofL =
    all.length > 1
      ? slider(box, 'Components a row uses, L', all, l ?? 0, (value) => {
          wanted.l = value;
          if (!lOf(wanted.k).includes(value))
            wanted.k = Math.min(...sizes.filter(([, b]) => b === value).map(([a]) => a));
          take();
        })
      : null;
  say(ofK, 'K', k);
  if (ofL) say(ofL, 'L', l);
  return box;
}

/** @param {number | null} a @param {number | null} b */
const distance = (a, b) => Math.abs((a ?? 0) - (b ?? 0));

/** @param {number[]} numbers */
const distinct = (numbers) => [...new Set(numbers)].sort((a, b) => a - b);

/** @typedef {{input: HTMLInputElement, output: HTMLElement, values: number[]}} Slider */

/** Show a value. @param {Slider} slider @param {string} name @param {number | null} value */
function say({ input, output, values }, name, value) {
  input.value = String(values.indexOf(value ?? 0));
  output.textContent = `${name} = ${value}`;
  input.setAttribute('aria-valuetext', output.textContent);
}

/** @param {HTMLElement} box @param {string} label @param {number[]} values @param {number} value @param {(value: number) => void} take @returns {Slider} */
function slider(box, label, values, value, take) {
  const output = element('output', '');
  const input = range(label, values.length - 1, values.indexOf(value));
  input.title = label;
  input.addEventListener('input', () => take(values[Number(input.value)]));
  box.append(element('label', '', {}, output, input));
  return { input, output, values };
}

/**
 * @typedef {{size: [number, number | null], meta: number, buffers: Record<string, number>, components: string | null}} Fit its numbers are places among the packed texts
 * @typedef {{packed: string[], fits: Fit[], sheets: string[], colouring: string}} Content
 */

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

/** @param {string} text @param {string} type */
const blob = (text, type) => new Blob([ofBase64(text)], { type });

/** What the canvas draws of a fit. @param {Content} content @param {Fit} fit @returns {Promise<Input>} */
async function inputOf({ packed, sheets }, { meta, buffers, components }) {
  const header = await unpacked(packed[meta]);
  return {
    meta: JSON.parse(new TextDecoder().decode(header)),
    buffers: Object.fromEntries(
      Object.entries(buffers).map(([name, place]) => [name, () => unpacked(packed[place])]),
    ),
    sheets: {
      tile: async (number) => blob(sheets[number], 'image/webp'),
      ...(components ? { components: async () => blob(components, 'image/png') } : {}),
    },
  };
}

/** @param {Content} content */
async function open(content) {
  const { fits, colouring } = content;
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const theme = () =>
    (document.documentElement.dataset.theme = /** @type {'light' | 'dark'} */ (
      dark.matches ? 'dark' : 'light'
    ));
  let shown = Math.floor(fits.length / 2);
  const input = await inputOf(content, fits[shown]);
  let bar = head(input.meta, () => canvas, colouring);
  const header = /** @type {HTMLElement} */ (document.querySelector('header'));
  header.append(bar.box);
  const options = { colouring, theme: theme() };
  const canvas = mount(
    /** @type {HTMLElement} */ (document.getElementById('canvas')),
    { ...input, options },
    { onSelect: (_, count) => bar.count(count) },
  );
  Object.assign(window, { appca: canvas });
  dark.addEventListener('change', () => canvas.update({ options: { theme: theme() } }));

  let wanted = shown;
  let moving = false;
  const move = async (/** @type {number} */ place) => {
    wanted = place;
    if (moving) return; // the fits between are passed over
    moving = true;
    while (shown !== wanted) {
      shown = wanted;
      const { stage } = canvas;
      const { name } = stage.views[0].layout;
      const next = await inputOf(content, fits[shown]);
      const layout = name === stage.meta.first ? next.meta.first : name;
      await canvas.update({ ...next, options: { layout } });
      const { box } = bar;
      bar = head(next.meta, () => canvas, stage.colouringName, stage.views[0].layout.name);
      box.replaceWith(bar.box);
      bar.count(stage.rows.selected);
    }
    moving = false;
  };
  await canvas.ready;
  if (fits.length > 1)
    header.insertBefore(
      buildSizes(
        fits.map(({ size }) => size),
        shown,
        move,
      ),
      bar.box,
    );
  document.documentElement.dataset.ready = 'yes';
}

open(JSON.parse(document.getElementById('data')?.textContent ?? ''));
