// @ts-check
/**
 * Steering: scores under the hand, and the row they stand for, rebuilt in the browser at each move.
 *
 * @typedef {{number: number, name: string, picture: string | null, reach: number}} Part a component
 * @typedef {{name: string, low: number, high: number}} Column
 * @typedef {{width: number, height: number, channels: number, low: number, factor: number, ink: boolean}} Picture
 * @typedef {{scores: string, colours: string[], codes: string, count: number}} Cloud
 * @typedef {object} Message
 * @property {string} id of the fit and of where to start
 * @property {Part[]} parts @property {string} average float32 @property {string} patterns float32, K x m
 * @property {Picture | null} image @property {Column[]} columns
 * @property {number[]} start @property {string} from @property {string | null} given the row's own picture @property {[number, number]} pair @property {Cloud} cloud
 * @typedef {object} Steer
 * @property {Message} data @property {Float32Array} average @property {Float32Array[]} patterns
 * @property {Float32Array} scores of the cloud @property {Uint8Array} codes
 * @property {number[]} z @property {[number, number]} pair @property {HTMLElement} root
 */

import { clamp } from '../../canvas/js/layout/geometry.js';
import { button, element, font, ofBase64, write } from '../../canvas/js/parts/dom.js';
import { signed, ticks } from '../../canvas/js/scene/names.js';
import { THEMES, isDark } from '../../canvas/js/theme.js';

/** @type {WeakMap<Element, {id: string, steer: Steer}>} */ const shown = new WeakMap();
const PAD = 300; // CSS pixels of the panel's side
const EDGE = 1.06; // of a reach: so far the panel goes, so that no point is cut
const NEAR = 0.005; // of a reach: so near to zero a slider stands at it

/** @param {{data: Message, parentElement: HTMLElement}} call */
export default function show({ data, parentElement }) {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector('.ca-steer'));
  const before = shown.get(root);
  const dark = isDark(root);
  const id = `${data.id} ${dark}`;
  if (before?.id !== id) {
    const same = before && before.steer.data.id === data.id;
    const steer = begun(root, data, same ? before.steer : null);
    shown.set(root, { id, steer });
    build(steer);
    draw(steer);
  }
}

/** @param {HTMLElement} root @param {Message} data @param {Steer | null} old @returns {Steer} */
function begun(root, data, old) {
  const all = floats(data.patterns);
  const m = all.length / Math.max(1, data.parts.length);
  const patterns = data.parts.map((_, k) => all.subarray(k * m, (k + 1) * m));
  const pair = old?.pair ?? /** @type {[number, number]} */ ([...data.pair]);
  return {
    data,
    root,
    patterns,
    average: floats(data.average),
    scores: floats(data.cloud.scores),
    codes: ofBase64(data.cloud.codes),
    z: old?.z ?? [...data.start],
    pair,
  };
}

/** The parts of the page, once a fit or start. @param {Steer} steer */
function build(steer) {
  const { root, data } = steer;
  root.replaceChildren();
  const chosen = element('div', 'ca-steer-axes', {}, axis(steer, 0), axis(steer, 1));
  const plane = element('canvas', 'ca-steer-plane', { 'aria-hidden': 'true' }); // the sliders say and do the same
  const hint = element('div', 'ca-steer-hint', {}, 'Drag anywhere in the panel.');
  const reset = () => set(steer, data.start);
  const seen = [
    data.image ? element('canvas', 'ca-steer-image') : bars(data.columns),
    element('div', 'ca-steer-sum'),
    ...(data.given ? [beside(data.given, data.from)] : []),
    button('ca-steer-reset', {}, reset, `Back to ${data.from}`),
  ];
  root.append(
    element('div', 'ca-steer-pad', {}, chosen, plane, hint),
    element('div', 'ca-steer-seen', {}, ...seen),
    element('div', 'ca-steer-list', {}, ...data.parts.map((_, k) => slider(steer, k))),
  );
  const follow = (/** @type {PointerEvent} */ event) => drag(steer, plane, event);
  plane.addEventListener('pointerdown', follow);
  plane.addEventListener('pointermove', follow);
}

/** The row itself, to compare with. @param {string} source @param {string} name */
function beside(source, name) {
  const alt = `${name} itself`;
  const image = element('img', '', { src: source, alt });
  return element('figure', 'ca-steer-given', {}, image, element('figcaption', '', {}, alt));
}

/** The choice of the component along an axis of the panel. @param {Steer} steer @param {0 | 1} which */
function axis(steer, which) {
  const select = element('select', 'ca-choice');
  steer.data.parts.forEach((part, k) =>
    select.append(new Option(named(part), String(k), false, k === steer.pair[which])),
  );
  select.addEventListener('change', () => {
    steer.pair[which] = Number(select.value);
    draw(steer);
  });
  return element('label', '', {}, which ? 'Up: ' : 'Across: ', select);
}

/** @param {Steer} steer @param {number} k */
function slider(steer, k) {
  const part = steer.data.parts[k];
  const line = element('div', 'ca-steer-line');
  if (part.picture) line.append(element('img', '', { src: part.picture, alt: '' }));
  const input = element('input', '');
  Object.assign(input, { type: 'range', min: -reach(steer, k), max: reach(steer, k), step: 'any' });
  input.setAttribute('aria-label', named(part));
  input.addEventListener('input', () => {
    const value = input.valueAsNumber;
    set(steer, steer.z.with(k, Math.abs(value) < NEAR * reach(steer, k) ? 0 : value));
  });
  line.append(
    element('span', 'ca-steer-name', {}, named(part)),
    input,
    element('span', 'ca-steer-value'),
  );
  return line;
}

/** Follow a pointer over the panel. @param {Steer} steer @param {HTMLElement} on @param {PointerEvent} event */
function drag(steer, on, event) {
  if (event.type === 'pointerdown') on.setPointerCapture(event.pointerId);
  if (!event.buttons) return;
  const box = on.getBoundingClientRect();
  const z = [...steer.z];
  const [a, b] = steer.pair;
  const up = EDGE * (1 - (2 * (event.clientY - box.top)) / box.height);
  const across = EDGE * ((2 * (event.clientX - box.left)) / box.width - 1);
  z[b] = clamp(up, -1, 1) * reach(steer, b);
  z[a] = clamp(across, -1, 1) * reach(steer, a);
  set(steer, z);
}

/** @param {Steer} steer @param {number[]} z */
function set(steer, z) {
  steer.z = [...z];
  draw(steer);
}

/** @param {Steer} steer */
function draw(steer) {
  const values = rebuilt(steer);
  if (steer.data.image) picture(steer, values, steer.data.image);
  else steer.data.columns.forEach((column, j) => bar(steer, column, j, values[j]));
  plane(steer);
  steer.root
    .querySelectorAll('.ca-steer-line')
    .forEach((line, k) => track(steer, /** @type {HTMLElement} */ (line), k));
  const used = steer.z.map((z, k) => ({ z, k })).filter(({ z }) => z !== 0);
  const terms = used.map(
    ({ z, k }) => ` ${z < 0 ? '−' : '+'} ${rounded(Math.abs(z))} × ${named(steer.data.parts[k])}`,
  );
  text(steer.root, '.ca-steer-sum', `average${terms.join('')}`);
  steer.root.dataset.z = JSON.stringify(steer.z);
}

/** The average and the patterns by their scores. @param {Steer} steer @returns {Float32Array} */
function rebuilt({ average, patterns, z }) {
  const values = Float32Array.from(average);
  z.forEach((score, k) => {
    if (score) for (let j = 0; j < values.length; j += 1) values[j] += score * patterns[k][j];
  });
  return values;
}

/** @param {Steer} steer @param {Float32Array} values @param {Picture} image */
function picture(steer, values, { width, height, channels, low, factor, ink }) {
  const canvas = /** @type {HTMLCanvasElement} */ (steer.root.querySelector('.ca-steer-image'));
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', 'the row that these scores stand for');
  const flip = ink && !isDark(steer.root);
  const drawn = new ImageData(width, height);
  for (let p = 0; p < width * height; p += 1) {
    for (let c = 0; c < 3; c += 1) {
      const level = (values[p * channels + (channels === 3 ? c : 0)] - low) * factor;
      drawn.data[4 * p + c] = flip ? 255 - level : level; // both ends are clamped by the array
    }
    drawn.data[4 * p + 3] = 255;
  }
  canvas.getContext('2d')?.putImageData(drawn, 0, 0);
}

/** One bar for each column of a table. @param {Column[]} columns */
function bars(columns) {
  const lines = columns.map(({ name }) => {
    const marks = [element('i', 'ca-steer-fill'), element('u', 'ca-steer-average')];
    const label = element('span', '', { title: name }, name);
    const value = element('span', 'ca-steer-value');
    return element('div', 'ca-steer-bar', {}, label, element('div', '', {}, ...marks), value);
  });
  return element('div', 'ca-steer-bars', {}, ...lines);
}

/** @param {Steer} steer @param {Column} column @param {number} j @param {number} value */
function bar(steer, { low, high }, j, value) {
  const line = /** @type {HTMLElement} */ (steer.root.querySelectorAll('.ca-steer-bar')[j]);
  const at = (/** @type {number} */ v) => 100 * clamp((v - low) / (high - low || 1), 0, 1);
  const [from, to] = [at(steer.average[j]), at(value)];
  const filled = /** @type {HTMLElement} */ (line.querySelector('.ca-steer-fill'));
  Object.assign(filled.style, { left: `${Math.min(from, to)}%`, width: `${Math.abs(to - from)}%` });
  filled.classList.toggle('ca-less', to < from);
  /** @type {HTMLElement} */ (line.querySelector('.ca-steer-average')).style.left = `${from}%`;
  text(line, '.ca-steer-value', rounded(value));
  line.dataset.value = String(value);
}

/** @param {Steer} steer @param {HTMLElement} line @param {number} k */
function track(steer, line, k) {
  const slide = /** @type {HTMLInputElement} */ (line.querySelector('input'));
  slide.value = String(steer.z[k]);
  slide.setAttribute('aria-valuetext', rounded(steer.z[k]));
  text(line, '.ca-steer-value', rounded(steer.z[k]));
  line.classList.toggle('ca-unused', steer.z[k] === 0);
}

/** The panel: rows that use a component of it, the axes, and the point under the hand. @param {Steer} steer */
function plane(steer) {
  const canvas = /** @type {HTMLCanvasElement} */ (steer.root.querySelector('.ca-steer-plane'));
  const ratio = window.devicePixelRatio || 1;
  const side = Math.round(PAD * ratio);
  if (canvas.width !== side || canvas.height !== side)
    Object.assign(canvas, { width: side, height: side });
  const pen = canvas.getContext('2d');
  if (!pen) return;
  const theme = themeOf(steer);
  const [a, b] = steer.pair;
  const x = (/** @type {number} */ z) => PAD * (0.5 + z / reach(steer, a) / EDGE / 2);
  const y = (/** @type {number} */ z) => PAD * (0.5 - z / reach(steer, b) / EDGE / 2);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, PAD, PAD);
  pen.strokeStyle = theme.axis;
  pen.beginPath();
  pen.moveTo(x(0), 0);
  pen.lineTo(x(0), PAD);
  pen.moveTo(0, y(0));
  pen.lineTo(PAD, y(0));
  pen.stroke();
  scales(steer, pen, x, y);
  cloud(steer, pen, x, y);
  pen.beginPath();
  pen.arc(x(steer.z[a]), y(steer.z[b]), 8, 0, 7);
  pen.fillStyle = theme.primary;
  pen.fill();
  pen.lineWidth = 2.5;
  pen.strokeStyle = theme.panel;
  pen.stroke();
  pen.lineWidth = 1;
}

/** Numbers along both axes and where they lead, as in Explore. @param {Steer} steer @param {CanvasRenderingContext2D} pen @param {(z: number) => number} x @param {(z: number) => number} y */
function scales(steer, pen, x, y) {
  steer.pair.forEach((k, up) => {
    const { values, digits } = ticks(-reach(steer, k), reach(steer, k), 6);
    for (const value of values) {
      if (!value || Math.abs(value) >= 0.85 * reach(steer, k)) continue;
      const at = up ? [4, y(value) - 6] : [x(value), PAD - 16];
      const colour = themeOf(steer).faint;
      const align = up ? 'left' : 'center';
      write(pen, signed(value, digits), at[0], at[1], { style: font(11.5), colour, align });
    }
    const { number } = steer.data.parts[k];
    const bold = { style: font(12.5, 600), colour: getComputedStyle(steer.root).color };
    if (up) write(pen, `↑ ${number}`, 8, 6, bold);
    else write(pen, `${number} →`, PAD - 8, PAD - 18, { ...bold, align: 'right' });
  });
}

/** @param {Steer} steer @param {CanvasRenderingContext2D} pen @param {(z: number) => number} x @param {(z: number) => number} y */
function cloud(steer, pen, x, y) {
  const [a, b] = steer.pair;
  const K = steer.data.parts.length;
  pen.globalAlpha = 0.5;
  for (let n = 0; n < steer.data.cloud.count; n += 1) {
    const [p, q] = [steer.scores[n * K + a], steer.scores[n * K + b]];
    if (!p || !q) continue;
    pen.fillStyle = steer.data.cloud.colours[steer.codes[n]] ?? '#888888';
    pen.fillRect(x(p) - 1.5, y(q) - 1.5, 3, 3);
  }
  pen.globalAlpha = 1;
}

/** Colours of the canvas. @param {Steer} steer */
const themeOf = ({ root }) => (isDark(root) ? THEMES.dark : THEMES.light);
/** @param {Steer} steer @param {number} k */
const reach = (steer, k) => steer.data.parts[k].reach || 1;
/** @param {Part} part */
const named = (part) => (part.name ? `${part.number} · ${part.name}` : `component ${part.number}`);
/** Three digits, with the sign that print uses. @param {number} value */
const rounded = (value) => String(Number(value.toPrecision(3))).replace('-', '−');
/** @param {string} text base64 of little-endian float32 */
const floats = (text) => new Float32Array(ofBase64(text).buffer);

/** @param {HTMLElement} root @param {string} where @param {string} words */
function text(root, where, words) {
  const part = root.querySelector(where);
  if (part && part.textContent !== words) part.textContent = words;
}
