/** What computes beside the page: reads files, fits, makes scenes, images and files to save. */

import { readFiles, sessionOf, tableOf } from './files.js';
import { arranged, describe, Fits, numbered, rowsOf, times } from './em.js';
import { fitPart, rowsPart, sheet } from './maker.js';

const [AT_ONCE, FIRST, LARGE] = [90, 250, 1e6]; // ms of a fit until it is shown, of a first one of many numbers; and how many are many
const [PATIENCE, LAST] = [1500, 6]; // ms for starts, and steps over all features, of many numbers
const WORTH = 5e-3; // nats a row by which another end is shown instead

/** @typedef {{k: number, l: number, latent: Latent, moving?: boolean}} Wanted */
/** @typedef {{data: PageData, fits: Fits, ends: Map<string, {state: FitState, value: number, done: boolean}>, shown: FitState | null, said: Described | null, wanted: Wanted | null}} Opened */

/** @type {PageLook} */ let look;
/** @type {Opened | null} */ let opened = null;
/** @type {Wanted | null} */ let next = null;
let busy = false;

const channel = new MessageChannel();
/** Let messages in. */
const pause = () =>
  new Promise((resume) => {
    channel.port1.onmessage = resume;
    channel.port2.postMessage(0);
  });

/** @param {Record<string, any>} message @param {ArrayBufferView[]} [moved] */
const tell = (message, moved = []) =>
  /** @type {any} */ (globalThis).postMessage(
    message,
    moved.map(({ buffer }) => buffer),
  );

/** Steps until the end, a time or another wish; the state reached and whether it is the end. @param {Generator<any, any>} path @param {() => boolean} over */
async function follow(path, over) {
  let last = performance.now();
  for (;;) {
    const { done, value } = path.next();
    const state = value.state ?? value;
    if (done || over()) return { state, done: Boolean(done) };
    if (performance.now() - last > 12) {
      await pause();
      last = performance.now();
    }
  }
}

/** @param {Opened} now @param {Wanted} wanted @param {FitState} state @param {boolean} done */
function show(now, wanted, state, done) {
  const { data, fits, ends } = now;
  const { k, l, latent } = wanted;
  const said = describe(state, fits.rows, l);
  const value = said.density.reduce((sum, one) => sum + one, 0) / data.n;
  const key = `${k} ${l} ${latent}`;
  const before = ends.get(key);
  const better = !before || value > before.value + WORTH;
  if (better) ends.set(key, { state, value, done });
  else before.done = done;
  if (!better && now.wanted === wanted) return tell({ kind: 'stands', value: before.value, done });
  const how = numbered(state, said.variance, now.shown);
  now.shown = arranged(state, how);
  now.said = describe(now.shown, fits.rows, l);
  now.wanted = wanted;
  const { meta, buffers, pictures } = fitPart(data, now.shown, now.said, look);
  const { came } = how;
  const moved = Object.values(buffers);
  if (pictures) moved.push(pictures.pixels);
  tell({ kind: 'scene', meta, buffers, pictures, size: { k, l }, came, value, done }, moved);
}

/** Fit what is wanted: at once from what is there, then from other starts while nothing else is wanted. @param {Opened} now @param {Wanted} wanted */
async function fit(now, wanted) {
  const { fits, ends, shown, data } = now;
  const { k, l, latent } = wanted;
  const known = ends.get(`${k} ${l} ${latent}`);
  const large = data.n * data.d > LARGE;
  const start = performance.now();
  const late = (/** @type {number} */ ms) => performance.now() - start > ms;
  const gone = () => Boolean(next) || opened !== now;
  if (known) show(now, wanted, known.state, known.done);
  else if (k === l)
    show(now, wanted, /** @type {any} */ (fits.best(k, l, latent).next().value), true);
  else {
    const first = large && !shown;
    const path = shown ? fits.warm(shown, k, l, latent) : fits.rough(k, l, latent);
    const { state } = await follow(path, () => late(first ? FIRST : AT_ONCE));
    if (opened !== now) return;
    show(now, wanted, first || !shown ? state : fits.lifted(state), false);
  }
  if (wanted.moving || known?.done || k === l) return;
  await pause();
  const most = large ? LAST : 500;
  const path = fits.best(k, l, latent, () => large && late(PATIENCE), most);
  const end = await follow(path, gone);
  if (end.done) show(now, wanted, end.state, true);
}

async function work() {
  if (busy) return;
  busy = true;
  while (next && opened) {
    const wanted = next;
    next = null;
    await fit(opened, wanted);
  }
  busy = false;
}

/** @param {PageData} data @param {Wanted} size */
function open(data, size) {
  const fits = new Fits(rowsOf(data.values, data.n, data.d, 1 / data.divide));
  const few = Math.min(2, fits.mostK);
  const { rows } = fits;
  if (data.n * data.d <= LARGE) fits.prepare();
  const V = fits.planes(few);
  const scores = times(rows, V, few);
  const plane =
    few > 1
      ? scores
      : Float64Array.from({ length: 2 * data.n }, (_, at) => (at % 2 ? 0 : scores[at >> 1]));
  const { meta, buffers } = rowsPart(data, plane, look);
  opened = { data, fits, ends: new Map(), shown: null, said: null, wanted: null };
  const { name, note, n, d } = data;
  const most = fits.mostK;
  tell({ kind: 'data', meta, buffers, name, note, n, d, most });
  const k = Math.min(size.k, most);
  next = { ...size, k, l: Math.min(size.l, k) };
  work();
}

/** @type {Record<string, (message: any) => any>} */
const answers = {
  look: (message) => (look = message.look),
  open: ({ data, size }) => open(data, size),
  files: async ({ files, size }) => {
    try {
      const data = await readFiles(files);
      open(data, size);
    } catch (error) {
      tell({
        kind: 'said',
        text: error instanceof Error ? error.message : String(error),
        failed: true,
      });
    }
  },
  size: ({ size }) => {
    next = size;
    work();
  },
  sheet: ({ number, id }) => opened && tell({ id, ...sheet(opened.data, number) }),
  save: async ({ what, id, selected }) => {
    if (!opened?.shown || !opened.said || !opened.wanted) return;
    const { data, shown, said, wanted, fits } = opened;
    const { origin } = fits.rows;
    const whole = { data, origin, state: shown, said, latent: wanted.latent, selected, look };
    tell({ id, parts: what === 'csv' ? tableOf(whole) : await sessionOf(whole) });
  },
};

globalThis.onmessage = (/** @type {MessageEvent} */ { data }) => answers[data.kind](data);
