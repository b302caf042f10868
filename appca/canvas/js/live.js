/** aPPCA in one page: the canvas, with fits that a worker makes to the included digits or to dropped files. */

import { mountAlone } from './mount.js';
import { buildHead } from './parts/bar.js';
import { button, element, mapped, ofBase64 } from './parts/dom.js';
import { savePicture } from './parts/tools.js';

const textOf = (/** @type {string} */ id) => document.getElementById(id)?.textContent ?? '';
const worker = new Worker(URL.createObjectURL(new Blob([textOf('worker')])));
const { values, look, ...digits } = JSON.parse(textOf('data'));

const size = { k: 4, l: 2, latent: 'shared' };
/** @type {any} */ let rows = { most: 4 }; // the part of a scene that does not depend on the fit
/** @type {any} */ let next; // a scene that waits until the previous scene is drawn
/** @type {Handle | undefined} */ let canvas;
let [drawing, asked] = [false, 0];
/** @type {((answer: any) => void)[]} */ const waiting = [];

/** @param {string} kind @param {Record<string, any>} question @returns {Promise<any>} */
const ask = (kind, question) =>
  new Promise((resolve) => {
    waiting[(asked += 1)] = resolve;
    worker.postMessage({ kind, id: asked, ...question });
  });

const status = element('output', 'appca-count live-status', { 'aria-live': 'polite' });

/** @param {Partial<typeof size>} change @param {boolean} [moving] */
function want(change, moving = false) {
  Object.assign(size, change);
  status.dataset.state = '';
  worker.postMessage({ kind: 'size', size: { ...size, moving } });
}

const head = buildHead(
  () => /** @type {Handle} */ (canvas),
  ({ k, l, moving }) => want({ k, l: l ?? size.l }, moving),
  () => ({ k: size.k, l: size.l, most_k: rows.most }),
);

/** @param {any} scene @returns {Input} */
function inputOf({ meta, buffers, pictures }) {
  const layouts = { ...meta.layouts, ...rows.meta.layouts };
  const colourings = { ...rows.meta.colourings, ...meta.colourings };
  const image = (/** @type {any} */ made) => new ImageData(made.pixels, made.width, made.height);
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
  for (let scene = next; scene; scene = next) {
    next = undefined;
    const input = inputOf(scene);
    if (canvas && !scene.fresh) {
      const { meta, views } = canvas.stage;
      const { name } = views[0].layout;
      const layout = name === meta.first ? input.meta.first : name;
      const came = scene.came.map((/** @type {boolean} */ isNew) => (isNew ? 'new' : ''));
      await canvas.update({ ...input, options: { layout, came } });
    } else {
      const gpu = canvas?.destroy(true);
      canvas = mountAlone({ ...input, gpu }, head);
      await canvas.ready;
    }
    head.follow();
  }
  drawing = false;
}

worker.onmessage = (/** @type {MessageEvent} */ { data: message }) => {
  if (message.id) waiting[message.id](message);
  else if (message.kind === 'said') {
    if (status.dataset.state === 'refused' && message.state !== 'refused') return;
    Object.assign(status, { textContent: message.text }).dataset.state = message.state;
  } else if (message.kind === 'scene') {
    next = { ...message, fresh: rows.fresh || next?.fresh };
    rows.fresh = false;
    draw();
  } else {
    next = undefined; // it shows the previous rows
    rows = { ...message, fresh: true };
    Object.assign(size, message.size);
    const [title, footer] = document.querySelectorAll('h1, body > footer');
    document.title = title.textContent = message.name;
    footer.textContent = message.note;
  }
};

/** @param {FileList | null | undefined} files */
function read(files) {
  if (!files?.length) return;
  Object.assign(status, { textContent: `Reading ${files[0].name}` }).dataset.state = '';
  worker.postMessage({ kind: 'files', files: [...files], size });
}

/** @param {string} what */
async function save(what) {
  if (what === 'png' && canvas) return savePicture(canvas.stage);
  const selected = Uint8Array.from(canvas?.stage.rows.flags ?? [], (flags) => flags & 1);
  const { parts } = await ask('save', { what, selected });
  const href = URL.createObjectURL(new Blob(parts));
  element('a', '', { href, download: `${document.title}.${what}` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

const take = () => {
  read(picker.files);
  picker.value = ''; // so that the same file can be read again
};
const picker = element('input', '', { type: 'file', multiple: '', hidden: '', change: take });
const opener = button('', {}, () => picker.click(), 'Open files');
/** @param {string} label @param {Record<string, string>} options @param {(value: string) => void} change */
function chooser(label, options, change) {
  const made = element('select', '', { 'aria-label': label, change: () => change(made.value) });
  made.append(...Object.entries(options).map(([value, text]) => new Option(text, value)));
  return made;
}
const variances = { shared: 'one variance', component: 'variance per component' };
const variance = chooser('Factor variance', variances, (latent) => want({ latent }));
const kinds = { '': 'Save', png: 'Picture', csv: 'Projections', appca: 'Session for the app' };
const saver = chooser('Save', kinds, (what) => {
  saver.value = '';
  save(what);
});
const tools = element('div', 'live-tools', {}, variance, picker, opener, saver);
document.querySelector('h1')?.after(status, head.box, tools);
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', (event) => {
  event.preventDefault();
  read(event.dataTransfer?.files);
});
const data = { ...digits, values: ofBase64(values) };
worker.postMessage({ kind: 'open', data, size, look });
