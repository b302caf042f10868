/** The canvas as a notebook widget (anywidget): changes of the model update the picture, and selections are sent back. */

import { mount } from './mount.js';
import { buildHead } from './parts/bar.js';
import { element, mapped } from './parts/dom.js';

/** @typedef {{get: (name: string) => any, set: (name: string, value: unknown) => void, save_changes: () => void, send: (content: unknown, callbacks?: unknown, buffers?: ArrayBuffer[]) => void, on: (event: string, run: Function) => void, off: (event: string, run: Function) => void}} Model */
/** @typedef {'light' | 'dark'} Ground */

export default { render };

let asked = 0; // questions so far

/** @param {{model: Model, el: HTMLElement}} given */
async function render({ model, el }) {
  const style = `height: ${model.get('_height')}px`;
  const box = element('div', 'appca-widget', { style, 'data-lm-suppress-shortcuts': true }); // keeps keys from JupyterLab
  const picture = element('div', 'appca-picture-box');
  el.append(box);
  let byHand = false; // the user made the model's selection here
  const options = { theme: themeOf(el) };
  const head = buildHead(() => handle);
  box.append(head.box, picture);
  box.dataset.theme = options.theme;
  const input = { ...inputOf(model), options };
  const handle = mount(picture, input, {
    onSelect: (bits) => {
      head.follow();
      byHand = true;
      model.set('selection', new DataView(bits.slice().buffer));
      model.save_changes();
      byHand = false;
    },
    project: async (rows) => new Float32Array(await answered(model, rows)),
  });
  const select = () => {
    if (byHand) return;
    handle.select(bytesOf(model.get('selection')));
    head.follow();
  };
  const change = () => handle.update(inputOf(model));
  const look = new MutationObserver(() => {
    const theme = themeOf(el);
    if (theme === box.dataset.theme) return;
    box.dataset.theme = theme;
    handle.update({ options: { theme } });
  });
  for (const node of [document.documentElement, document.body])
    look.observe(node, { attributes: true });
  model.on('change:_scene', change);
  model.on('change:selection', select);
  await handle.ready;
  handle.stage.settled.push(head.follow);
  select();
  return () => {
    look.disconnect();
    model.off('change:_scene', change);
    model.off('change:selection', select);
    handle.destroy();
  };
}

/** @param {Model} model @returns {Input} */
function inputOf(model) {
  const { meta, buffers, components } = model.get('_scene');
  const sheets = model.get('_sheets');
  const png = (/** @type {DataView<ArrayBuffer>} */ view) =>
    new Blob([bytesOf(view)], { type: 'image/png' });
  return {
    meta,
    buffers: mapped(buffers, (/** @type {any} */ view) => async () => bytesOf(view).buffer),
    sheets: {
      tile: async (number) => png(sheets[number]),
      components: components && (async () => png(components)),
    },
  };
}

/** Copy the bytes of a message, which may be unaligned. @param {DataView<ArrayBuffer>} view */
const bytesOf = ({ buffer, byteOffset, byteLength }) =>
  new Uint8Array(buffer, byteOffset, byteLength).slice();

/** Return scores of rows on all components. @param {Model} model @param {number[]} rows @returns {Promise<ArrayBuffer>} */
function answered(model, rows) {
  const question = (asked += 1);
  return new Promise((resolve) => {
    const hear = (/** @type {any} */ { answer }, /** @type {any} */ [scores]) => {
      if (answer !== question) return;
      model.off('msg:custom', hear);
      resolve(bytesOf(scores).buffer);
    };
    model.on('msg:custom', hear);
    model.send({ question }, undefined, [new Uint32Array(rows).buffer]);
  });
}

/** Whether the notebook around an element is dark, by the first background that is not transparent. @param {Element} element @returns {Ground} */
function themeOf(element) {
  /** @type {any} */ const pixel = new OffscreenCanvas(1, 1).getContext('2d');
  for (let node = /** @type {any} */ (element); node; node = node.parentNode ?? node.host) {
    if (!(node instanceof Element)) continue;
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = getComputedStyle(node).backgroundColor; // in any colour space that the page uses
    pixel.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
    if (alpha > 127) return red + green + blue < 384 ? 'dark' : 'light';
  }
  return 'light';
}
