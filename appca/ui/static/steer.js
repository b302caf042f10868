// @ts-check
/**
 * Steering: scores that the user adjusts, and the row rebuilt from them in the browser.
 * @typedef {{number: number, name: string, picture: string | null, reach: number}} Part a component
 * @typedef {{name: string, low: number, high: number}} Column
 * @typedef {{width: number, height: number, channels: number, low: number, factor: number, ink: boolean}} Picture
 * @typedef {object} Message
 * @property {string} id of the fit and the initial scores
 * @property {Part[]} parts @property {string} average float32 @property {string} patterns float32, K x m
 * @property {Picture | null} image @property {Column[]} columns
 * @property {number[]} start @property {string} from name of the initial row @property {string | null} given picture of the original row @property {[number, number]} pair
 * @property {{scores: string, colours: string[], codes: string, count: number}} cloud
 * @typedef {{z: number[], pair: [number, number]}} Hand scores, and the components of the panel
 */

import { clamp } from '../../canvas/js/layout/geometry.js';
import { button, element, font, ofBase64, paint, trace, write } from '../../canvas/js/parts/dom.js';
import { signed, ticks } from '../../canvas/js/scene/names.js';
import { THEMES, isDark } from '../../canvas/js/theme.js';

/** @type {WeakMap<Element, {id: string, dark: boolean, hand: Hand}>} */ const shown =
  new WeakMap();
const PAD = 300; // side of the panel in CSS pixels
const EDGE = 1.06; // extent of the panel relative to the reach, so that no point is clipped
const NEAR = 0.005; // distance from zero, relative to the reach, at which a slider snaps to zero

/** @param {{data: Message, parentElement: HTMLElement}} call */
export default function show({ data, parentElement }) {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector('.ca-steer'));
  const before = shown.get(root);
  const dark = isDark(root);
  if (before?.id === data.id && before.dark === dark) return;
  const fresh = { z: [...data.start], pair: /** @type {[number, number]} */ ([...data.pair]) };
  const hand = before?.id === data.id ? before.hand : fresh;
  shown.set(root, { id: data.id, dark, hand });
  build(root, data, hand, dark);
}

/** @param {Part} part */
const named = (part) => (part.name ? `${part.number} · ${part.name}` : `component ${part.number}`);
/** Format a number with three digits and a typographic minus. @param {number} value */
const rounded = (value) => String(Number(value.toPrecision(3))).replace('-', '−');
/** @param {string} text base64 of little-endian float32 */
const floats = (text) => new Float32Array(ofBase64(text).buffer);

/** @param {HTMLElement} root @param {Message} data @param {Hand} hand @param {boolean} dark */
function build(root, data, hand, dark) {
  const { parts, image, columns, cloud } = data;
  const [average, patterns] = [floats(data.average), floats(data.patterns)];
  const [scores, codes] = [floats(cloud.scores), ofBase64(cloud.codes)];
  const theme = dark ? THEMES.dark : THEMES.light;
  const reach = parts.map((part) => part.reach || 1);
  const set = (/** @type {number[]} */ z) => {
    hand.z = [...z];
    draw();
  };

  const axes = ['Across: ', 'Up: '].map((word, which) => {
    const change = () => {
      hand.pair[which] = select.selectedIndex;
      draw();
    };
    const options = parts.map((part, k) => new Option(named(part), `${k}`));
    const select = element('select', 'ca-choice', { change }, ...options);
    select.selectedIndex = hand.pair[which];
    return element('label', '', {}, word, select);
  });
  const drag = (/** @type {PointerEvent} */ event) => {
    if (event.type === 'pointerdown') plane.setPointerCapture(event.pointerId);
    if (!event.buttons) return;
    const box = plane.getBoundingClientRect();
    const z = [...hand.z];
    const [a, b] = hand.pair;
    const up = EDGE * (1 - (2 * (event.clientY - box.top)) / box.height);
    const across = EDGE * ((2 * (event.clientX - box.left)) / box.width - 1);
    z[b] = clamp(up, -1, 1) * reach[b];
    z[a] = clamp(across, -1, 1) * reach[a];
    set(z);
  };
  const held = { 'aria-hidden': 'true', pointerdown: drag, pointermove: drag }; // the sliders are the accessible alternative
  const plane = element('canvas', 'ca-steer-plane', held);
  const about = { role: 'img', 'aria-label': 'the row rebuilt from these scores' };
  const picture = image && element('canvas', 'ca-steer-image', about);
  const bars = columns.map(({ name }) => {
    const [filled, mark] = [element('i', 'ca-steer-fill'), element('u', 'ca-steer-average')];
    const value = element('span', 'ca-steer-value');
    const box = element('div', '', {}, filled, mark);
    const label = element('span', '', { title: name }, name);
    return { line: element('div', 'ca-steer-bar', {}, label, box, value), filled, mark, value };
  });
  const sum = element('div', 'ca-steer-sum');
  const itself = `${data.from} itself`;
  const sliders = parts.map((part, k) => {
    const slide = () => {
      const value = input.valueAsNumber;
      set(hand.z.with(k, Math.abs(value) < NEAR * reach[k] ? 0 : value));
    };
    const limits = { type: 'range', min: -reach[k], max: reach[k], step: 'any' };
    const input = element('input', '', { ...limits, 'aria-label': named(part), input: slide });
    const value = element('span', 'ca-steer-value');
    const look = part.picture ? [element('img', '', { src: part.picture, alt: '' })] : [];
    const name = element('span', 'ca-steer-name', {}, named(part));
    return { line: element('div', 'ca-steer-line', {}, ...look, name, input, value), input, value };
  });
  const given = data.given && [
    element('img', '', { src: data.given, alt: itself }),
    element('figcaption', '', {}, itself),
  ];
  const seen = [
    picture ?? element('div', 'ca-steer-bars', {}, ...bars.map(({ line }) => line)),
    sum,
    ...(given ? [element('figure', 'ca-steer-given', {}, ...given)] : []),
    button('ca-steer-reset', {}, () => set(data.start), `Back to ${data.from}`),
  ];
  const hint = element('div', 'ca-steer-hint', {}, 'Drag anywhere in the panel.');
  root.replaceChildren(
    element('div', 'ca-steer-pad', {}, element('div', 'ca-steer-axes', {}, ...axes), plane, hint),
    element('div', 'ca-steer-seen', {}, ...seen),
    element('div', 'ca-steer-list', {}, ...sliders.map(({ line }) => line)),
  );

  function draw() {
    const values = Float32Array.from(average);
    hand.z.forEach((score, k) => {
      for (let j = 0; score && j < values.length; j += 1)
        values[j] += score * patterns[k * values.length + j];
    });
    if (image && picture) {
      const { width: w, height: h, channels, low, factor, ink } = image;
      const level = (/** @type {unknown} */ _, /** @type {number} */ at) =>
        (values[(at >> 2) * channels + (at % 4)] - low) * factor; // of a colour; `paint` sets the others
      const bytes = Uint8ClampedArray.from({ length: 4 * w * h }, level);
      paint(picture, bytes, { tile: [h, w, channels], style: ink ? 'ink' : 'photo' }, dark);
    }
    bars.forEach(({ line, filled, mark, value }, j) => {
      const { low, high } = columns[j];
      const at = (/** @type {number} */ v) => 100 * clamp((v - low) / (high - low || 1), 0, 1);
      const [from, to] = [at(average[j]), at(values[j])];
      filled.style.left = `${Math.min(from, to)}%`;
      filled.style.width = `${Math.abs(to - from)}%`;
      filled.classList.toggle('ca-less', to < from);
      mark.style.left = `${from}%`;
      value.textContent = rounded(values[j]);
      line.dataset.value = String(values[j]);
    });
    drawPlane();
    let said = 'average';
    sliders.forEach(({ line, input, value }, k) => {
      const z = hand.z[k];
      input.value = String(z);
      value.textContent = rounded(z);
      input.setAttribute('aria-valuetext', rounded(z));
      line.classList.toggle('ca-unused', z === 0);
      if (z) said += ` ${z < 0 ? '−' : '+'} ${rounded(Math.abs(z))} × ${named(parts[k])}`;
    });
    sum.textContent = said;
    root.dataset.z = JSON.stringify(hand.z);
  }

  /** Draw the panel: axes with numbers, the rows that use both components, and the adjustable point. */
  function drawPlane() {
    const ratio = window.devicePixelRatio || 1;
    plane.width = plane.height = Math.round(PAD * ratio); // also clears the canvas
    const pen = plane.getContext('2d');
    if (!pen) return;
    const [a, b] = hand.pair;
    const x = (/** @type {number} */ z) => PAD * (0.5 + z / reach[a] / EDGE / 2);
    const y = (/** @type {number} */ z) => PAD * (0.5 - z / reach[b] / EDGE / 2);
    pen.scale(ratio, ratio);
    trace(pen, { colour: theme.axis }, () => {
      pen.moveTo(x(0), 0);
      pen.lineTo(x(0), PAD);
      pen.moveTo(0, y(0));
      pen.lineTo(PAD, y(0));
    });
    hand.pair.forEach((k, up) => {
      const { values, digits } = ticks(-reach[k], reach[k], 6);
      const style = { style: font(11.5), colour: theme.faint };
      for (const value of values) {
        if (!value || Math.abs(value) >= 0.85 * reach[k]) continue;
        const [left, top] = up ? [4, y(value) - 6] : [x(value), PAD - 16];
        write(pen, signed(value, digits), left, top, { ...style, align: up ? 'left' : 'center' });
      }
      const bold = { style: font(12.5, 600), colour: getComputedStyle(root).color };
      if (up) write(pen, `↑ ${parts[k].number}`, 8, 6, bold);
      else write(pen, `${parts[k].number} →`, PAD - 8, PAD - 18, { ...bold, align: 'right' });
    });
    pen.globalAlpha = 0.5;
    for (let n = 0; n < cloud.count; n += 1) {
      const [p, q] = [scores[n * parts.length + a], scores[n * parts.length + b]];
      if (!p || !q) continue;
      pen.fillStyle = cloud.colours[codes[n]] ?? '#888888';
      pen.fillRect(x(p) - 1.5, y(q) - 1.5, 3, 3);
    }
    pen.globalAlpha = 1;
    const look = { colour: theme.panel, width: 2.5, fill: theme.primary };
    trace(pen, look, () => pen.arc(x(hand.z[a]), y(hand.z[b]), 8, 0, 7));
  }
  draw();
}
