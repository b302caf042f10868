/** The worker: reads files, fits, and creates scenes, images and files to save. */

import { arranged, closedForm, describe, Fits, resized, rowsOf, times } from './em.js';
import { readFiles, sessionOf, tableOf } from './files.js';
import { fitPart, rowsPart, sheet } from './maker.js';

const [AT_ONCE, LARGE] = [90, 1e6]; // ms until a fit is shown; number of values above which data are large
const [PATIENCE, LAST] = [1500, 6]; // for large data: ms for the starts, and maximum number of steps over all features
const TRAVEL = 450; // ms in which points move and the worker pauses
const WORTH = 5e-3; // minimum gain in nats per row at which a better fit replaces the one shown

/** @typedef {{k: number, l: number, latent: Latent, moving?: boolean}} Wanted */

/** @type {any} */ const host = globalThis;
/** @type {PageLook} */ let look;
/** @type {PageData} */ let data;
/** @type {Fits} */ let fits;
/** @type {{state: FitState, said: Described, wanted: Wanted} | null} on screen */ let shown = null;
/** @type {Wanted | null} */ let next = null;
let [busy, reading] = [false, 0]; // whether a fit is running; number of drops being read
/** @type {Map<string, {state: FitState, value: number, done: boolean}>} */ let ends = new Map();

const { port1, port2 } = new MessageChannel();
/** @type {(_?: any) => void} */ let wake = () => {};
/** Let messages arrive; wait `ms` milliseconds, or until another fit is requested. */
const pause = (ms = 0) =>
  new Promise((resume) => {
    if (ms) return setTimeout((wake = resume), ms);
    port1.onmessage = resume;
    port2.postMessage(0);
  });

/** Run a path to its end. @param {Generator<any, any>} path @param {() => boolean} over whether to stop early @param {(state: FitState) => void} [better] called with the best of the first starts */
async function follow(path, over, better) {
  for (let last = performance.now(); ;) {
    const { done, value } = path.next();
    if (done || over()) return { state: value.state ?? value, done };
    if (value.named) better?.(value.state);
    if (performance.now() - last < 12) continue;
    await pause();
    last = performance.now();
  }
}

/** @param {number} value @param {boolean} done */
function say(value, done) {
  const text = `${value.toFixed(2).replace('-', '−')} nats per row`;
  const [state, more] = done ? ['done', ''] : ['fitting', ', searching for a better fit'];
  host.postMessage({ kind: 'said', text: text + more, state });
}

/** @param {Wanted} wanted @param {FitState} state @param {boolean} done */
function show(wanted, state, done) {
  const { k, l, latent } = wanted;
  const key = `${k} ${l} ${latent}`;
  const found = describe(state, fits.rows, l);
  const value = found.density.reduce((sum, one) => sum + one, 0) / data.n;
  const before = ends.get(key);
  if (before && value < before.value + WORTH) {
    before.done ||= done;
    if (shown?.wanted === wanted) return say(before.value, done);
  } else ends.set(key, { state, value, done });
  const refined = shown?.wanted === wanted; // the same K and L from another start
  const { came: all, ...made } = arranged(state, found, shown?.state ?? null);
  shown = { ...made, wanted };
  const part = fitPart(data, made.state, made.said, look);
  const moved = Object.values(part.buffers).map(({ buffer }) => buffer);
  host.postMessage({ kind: 'scene', ...part, came: refined ? [] : all }, moved);
  say(value, done);
}

/** Fit the requested K and L: first from an available fit, then from other starts until another size is requested. @param {Wanted} wanted */
async function fit(wanted) {
  const { k, l, latent } = wanted;
  const [here, start] = [fits, performance.now()];
  const late = (/** @type {number} */ ms) => performance.now() - start > ms;
  const over = () => Boolean(next) || reading > 0 || here !== fits;
  const travel = shown ? TRAVEL : 0;
  const large = data.n * data.d > LARGE;
  const known = ends.get(`${k} ${l} ${latent}`);
  if (known) show(wanted, known.state, known.done);
  else if (k < l + 1) show(wanted, closedForm(fits.rows, k, latent), true);
  else {
    const path = shown ? fits.warm(shown.state, k, l, latent) : fits.rough(k, l, latent);
    const { state } = await follow(path, () => late(AT_ONCE));
    if (here === fits) show(wanted, shown ? fits.lifted(state) : state, false);
  }
  await pause(travel);
  if (wanted.moving || known?.done || k === l || over()) return;
  const path = fits.best(k, l, latent, () => large && late(PATIENCE), large ? LAST : undefined);
  const better = (/** @type {FitState} */ state) => show(wanted, fits.lifted(state), false);
  const { state, done } = await follow(path, over, better);
  if (done && here === fits) show(wanted, state, true);
}

async function work() {
  if (busy) return;
  busy = true;
  for (let wanted = next; wanted; wanted = next) {
    next = null;
    await fit(wanted);
  }
  busy = false;
}

/** @param {PageData} opened @param {Wanted} size @param {PageLook} [seen] */
function open(opened, size, seen = look) {
  [data, look] = [opened, seen];
  const { n, d, name, note, values, divide } = data;
  fits = new Fits(rowsOf(values, n, d, 1 / divide), size.k);
  [ends, shown] = [new Map(), null];
  const most = fits.mostK;
  const scores = times(fits.rows, resized(fits.first, fits.few, 2), 2);
  const part = rowsPart(data, scores, look, fits.rows.total);
  next = { ...size, k: Math.min(size.k, most), l: Math.min(size.l, size.k, most) };
  host.postMessage({ kind: 'data', ...part, name, note, most, size: next });
  work();
}

/** @type {Record<string, (message: any) => any>} */
const answers = {
  open: (message) => open(message.data, message.size, message.look),
  size: ({ size }) => {
    next = size;
    wake();
    work();
  },
  files: async ({ files, size }) => {
    reading += 1;
    try {
      open(await readFiles(files), size);
    } catch (error) {
      const text = /** @type {Error} */ (error).message;
      host.postMessage({ kind: 'said', text, state: 'refused' });
      next ??= shown && shown.wanted;
    }
    reading -= 1;
    work();
  },
  sheet: ({ number, id }) => {
    const made = sheet(data, number);
    host.postMessage({ id, ...made }, [made.pixels.buffer]);
  },
  save: async ({ what, id, selected }) => {
    if (!shown) return;
    const { state, said, wanted } = shown;
    const { origin } = fits.rows;
    const whole = { data, origin, state, said, latent: wanted.latent, selected, look };
    host.postMessage({ id, parts: what === 'csv' ? tableOf(whole) : await sessionOf(whole) });
  },
};

host.onmessage = (/** @type {MessageEvent} */ message) => answers[message.data.kind](message.data);
