/** aPPCA in one page: the canvas, with fits that a worker makes of the digits inside or of dropped files. */

import { mount } from './mount.js';
import { buildHead } from './parts/bar.js';
import { button, element, mapped, ofBase64 } from './parts/dom.js';

const contents = JSON.parse(document.getElementById('data')?.textContent ?? '');
const code = document.getElementById('worker')?.textContent ?? '';
const worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })));
const dark = matchMedia('(prefers-color-scheme: dark)');

const size = { k: 4, l: 2, latent: /** @type {Latent} */ ('shared') };
let most = 4;
/** @type {any} */ let rows; // the part of a scene that no fit changes
/** @type {Handle | undefined} */ let canvas;
/** @type {any} */ let next; // a scene that waits until the one before is drawn
let drawing = false;
let asked = 0;
/** @type {Map<number, (answer: any) => void>} */ const waiting = new Map();

/** @param {string} kind @param {Record<string, any>} question @returns {Promise<any>} */
const ask = (kind, question) =>
  new Promise((resolve) => {
    waiting.set((asked += 1), resolve);
    worker.postMessage({ kind, id: asked, ...question });
  });

/** @param {{pixels: any, width: number, height: number}} picture */
const image = ({ pixels, width, height }) => new ImageData(pixels, width, height);

const status = element('output', 'appca-count live-status', { 'aria-live': 'polite' });
const place = /** @type {HTMLElement} */ (document.getElementById('canvas'));
const title = /** @type {HTMLElement} */ (document.querySelector('h1'));
const footer = /** @type {HTMLElement} */ (document.querySelector('footer'));

const theme = () => {
  /** @type {'light' | 'dark'} */ const ground = dark.matches ? 'dark' : 'light';
  document.documentElement.dataset.theme = ground;
  return ground;
};

/** @param {Partial<typeof size>} change @param {boolean} [moving] */
function want(change, moving = false) {
  Object.assign(size, change);
  size.l = Math.min(size.l, size.k);
  worker.postMessage({ kind: 'size', size: { ...size, moving } });
}

const head = buildHead(
  () => /** @type {Handle} */ (canvas),
  ({ k, l, moving }) => {
    want({ k, l: l ?? size.l }, moving);
    head.follow();
  },
  () => ({ k: size.k, l: size.l, most_k: most, hint: 'K: components. L: components a row uses.' }),
);

/** @param {any} scene @returns {Input} */
function inputOf({ meta, buffers, pictures }) {
  const layouts = { ...meta.layouts, ...rows.meta.layouts };
  const colourings = { ...rows.meta.colourings, ...meta.colourings };
  return {
    meta: { ...rows.meta, ...meta, layouts, colourings },
    buffers: mapped({ ...rows.buffers, ...buffers }, (array) => async () => array.buffer),
    sheets: {
      tile: async (number) => image(await ask('sheet', { number })),
      components: pictures && (async () => image(pictures)),
    },
  };
}

async function draw() {
  if (drawing) return;
  drawing = true;
  while (next) {
    const scene = next;
    next = undefined;
    const input = inputOf(scene);
    if (scene.fresh || !canvas) {
      canvas?.destroy();
      canvas = mount(
        place,
        { ...input, options: { theme: theme() } },
        { onSelect: () => head.follow() },
      );
      Object.assign(window, { appca: canvas });
      await canvas.ready;
      canvas.stage.settled.push(head.follow);
      document.documentElement.dataset.ready = 'yes';
    } else {
      const { name } = canvas.stage.views[0].layout;
      const layout = name === canvas.stage.meta.first ? input.meta.first : name;
      const came = scene.came.map((/** @type {boolean} */ isNew) => (isNew ? 'new' : ''));
      await canvas.update({ ...input, options: { layout, came } });
    }
    head.follow();
    say(scene);
  }
  drawing = false;
}

/** @param {{value: number, done: boolean}} fit */
function say({ value, done }) {
  const digits = `${value < 0 ? '−' : ''}${Math.abs(value).toFixed(2)}`;
  status.textContent = `${digits} nats per row${done ? '' : ', improving'}`;
  status.dataset.done = String(done);
}

worker.onmessage = (/** @type {MessageEvent} */ { data: message }) => {
  if (message.id) {
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  } else if (message.kind === 'scene') {
    next = { fresh: rows.fresh || next?.fresh, ...message };
    rows.fresh = false;
    draw();
  } else if (message.kind === 'stands') say(message);
  else if (message.kind === 'said') {
    status.textContent = message.text;
    status.dataset.failed = String(Boolean(message.failed));
  } else {
    rows = { ...message, fresh: true };
    most = message.most;
    size.k = Math.min(size.k, most);
    size.l = Math.min(size.l, size.k);
    document.title = title.textContent = message.name;
    footer.textContent = message.note;
    delete status.dataset.failed;
  }
};

/** @param {FileList | null | undefined} files */
const read = (files) =>
  files?.length && worker.postMessage({ kind: 'files', files: [...files], size });

/** @param {'csv' | 'session'} what @param {string} ending */
async function save(what, ending) {
  const selected = Uint8Array.from(canvas?.stage.rows.flags ?? [], (flags) => flags & 1);
  const { parts } = await ask('save', { what, selected });
  const href = URL.createObjectURL(new Blob(parts));
  element('a', '', { href, download: title.textContent + ending }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

const picker = element('input', '', { type: 'file', multiple: '', hidden: '' });
picker.addEventListener('change', () => read(picker.files));
const variance = element('select', '', {
  'aria-label': 'Latent variance',
  change: () => want({ latent: /** @type {Latent} */ (variance.value) }),
});
variance.append(
  new Option('One variance', 'shared'),
  new Option('Variance per component', 'component'),
);
document.querySelector('header')?.append(
  head.box,
  variance,
  button('live-button', {}, () => picker.click(), 'Open files'),
  button('live-button', {}, () => save('csv', '.csv'), 'Save table'),
  button('live-button', {}, () => save('session', '.appca'), 'Save session'),
  status,
);
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', (event) => {
  event.preventDefault();
  read(event.dataTransfer?.files);
});
dark.addEventListener('change', () => canvas?.update({ options: { theme: theme() } }));
theme();
const { values, look, ...digits } = contents;
const labels = digits.labels.map((/** @type {any} */ label) => ({
  ...label,
  codes: Uint8Array.from(label.codes),
}));
worker.postMessage({ kind: 'look', look });
worker.postMessage({ kind: 'open', data: { ...digits, labels, values: ofBase64(values) }, size });
