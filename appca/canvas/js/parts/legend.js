/** Classes with their colours and counts; a class under the hand is shown alone. */

import { codesIn } from '../scene/counts.js';
import { componentName, grouped, signed } from '../scene/names.js';
import { HIDDEN } from '../scene/rows.js';
import { cssOf } from '../theme.js';
import { font, widthOf, write } from '../text/write.js';
import { element } from './dom.js';
import { typeOver } from './typing.js';

const SHOWN = 40; // classes at most
const LONGEST = 60; // letters of a class's name
const [BESIDE, GAP] = [24, 6]; // px beside a class's name: dot, gap and padding; and before its count

/** Rows of each class without those that have one of these flags. @param {import('../stage.js').Stage} stage */
export function classCounts(stage, without = HIDDEN) {
  const { codes, flags } = stage.rows;
  const counts = new Uint32Array(codesIn(codes));
  for (let row = 0; row < codes.length; row += 1)
    if (!(flags[row] & without)) counts[codes[row]] += 1;
  return counts;
}

/** An end of a scale: a large one without decimals. @param {number} value */
const end = (value) =>
  Math.abs(value) < 1000 ? signed(value, 2) : grouped(Math.round(value)).replace('-', '−');

/** A square of two components' colours, with their pictures where they are largest. @param {import('../stage.js').Stage} stage @param {import('../types.js').Colouring} colouring @param {boolean} small for a bar */
function planeKey(stage, { axes = [0, 0], table }, small) {
  const [x, y] = axes.map((axis) => componentName(stage.meta, axis));
  const canvas = element('canvas', `appca-plane ${small ? 'appca-small' : 'appca-large'}`, {
    role: 'img',
    'aria-label': `Colours of components ${x} and ${y}`,
  });
  const [key, side, left] = small ? [34, 26, 0] : [84, 26, 53];
  const [wide, high] = small ? [key + 132, key] : [left + key + side + 8, key + 18];
  [canvas.width, canvas.height] = [wide * 2, high * 2];
  canvas.style.cssText = `width:${wide}px;height:${high}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.scale(2, 2);
  const steps = Math.round(Math.sqrt(table.length));
  const step = key / steps;
  table.forEach((colour, code) => {
    context.fillStyle = colour;
    context.fillRect(
      left + (code % steps) * step,
      key - (Math.floor(code / steps) + 1) * step,
      step + 0.5,
      step + 0.5,
    );
  });
  const look = { style: font(11.5), colour: stage.theme.soft };
  const places = small
    ? [
        { x: key + 8, y: 4 },
        { x: key + 72, y: 4 },
      ]
    : [
        { x: left + key + 5, y: key - side },
        { x: 0, y: 0 },
      ];
  axes.forEach((axis, i) => stage.pictures.draw(axis, { ...places[i], w: side, h: side }, context));
  if (small) {
    axes.forEach((axis, i) =>
      write(
        context,
        `${stage.meta.components[axis].number} ${i ? '↑' : '→'}`,
        places[i].x + side + 4,
        11,
        look,
      ),
    );
    return canvas;
  }
  const [across, up] = axes.map((axis) => stage.meta.components[axis].number);
  write(context, `−${across}`, left, key + 4, look);
  write(context, `+${across}`, left + key, key + 4, { ...look, align: 'right' });
  write(context, `+${up}`, left - 5, 1, { ...look, align: 'right' });
  write(context, `−${up}`, left - 5, key - 13, { ...look, align: 'right' });
  return canvas;
}

/** Fill an element with the legend of the present colouring. @param {import('../stage.js').Stage} stage @param {HTMLElement} into @param {(label: string, before: string, now: string) => void} rename a class */
export function fillLegend(stage, into, rename) {
  const { colouring, palette } = stage;
  into.replaceChildren();
  into.style.cssText = '';
  into.dataset.classes = '0';
  if (!colouring) return;
  if (colouring.kind === 'quantity') {
    const stops = Array.from({ length: 9 }, (_, i) => cssOf(palette, Math.round((i * 253) / 8)));
    const [low, high] = colouring.limits ?? [0, 1];
    const bar = element('span', 'appca-ramp');
    bar.style.background = `linear-gradient(to right, ${stops})`;
    into.append(
      element('span', 'appca-count', {}, end(low)),
      bar,
      element('span', 'appca-count', {}, end(high)),
    );
    return;
  }
  if (colouring.kind === 'plane') {
    into.append(planeKey(stage, colouring, false), planeKey(stage, colouring, true));
    return;
  }
  const counts = classCounts(stage);
  let pinned = -1;
  const alone = (/** @type {number} */ code) => {
    stage.only = code;
    stage.frame = '';
    stage.settleSoon();
  };
  const codes = colouring.names
    .map((_, code) => code)
    .filter((code) => counts[code])
    .slice(0, SHOWN);
  for (const code of codes) {
    const dot = element('i', 'appca-dot');
    dot.style.background = cssOf(palette, code);
    dot.dataset.shape = colouring.shapes?.[code] ?? 'circle';
    const item = element(
      'button',
      'appca-class',
      { type: 'button', 'aria-pressed': 'false', title: `Show ${colouring.names[code]} alone` },
      dot,
      element('b', '', {}, colouring.names[code]),
      element('span', 'appca-count', {}, grouped(counts[code])),
    );
    item.addEventListener('pointerenter', () => alone(code));
    item.addEventListener('pointerleave', () => alone(pinned));
    item.addEventListener('focus', () => alone(code));
    item.addEventListener('blur', () => alone(pinned));
    item.addEventListener('click', () => {
      pinned = pinned === code ? -1 : code;
      for (const button of into.querySelectorAll('button'))
        button.setAttribute('aria-pressed', String(pinned >= 0 && button === item));
      alone(pinned);
    });
    const [, label] = stage.colouringName.match(/^label:(.*)$/s) ?? [];
    if (label !== undefined && stage.options.offers) {
      item.title += '. Double-click or F2 renames it.';
      const type = () =>
        typeOver(item, colouring.names[code], LONGEST, (text) =>
          rename(label, colouring.names[code], text),
        );
      item.addEventListener('dblclick', type);
      item.addEventListener('keydown', ({ key }) => key === 'F2' && type());
    }
    into.append(item);
  }
  const widest = (/** @type {string[]} */ texts, /** @type {string} */ style) =>
    Math.max(0, ...texts.map((text) => widthOf(stage.context, text, style)));
  const names = codes.map((code) => colouring.names[code]);
  const numbers = codes.map((code) => grouped(counts[code]));
  const name = widest(names, font(13.5, 600)) + BESIDE;
  const count = widest(numbers, font(12.5)) + GAP;
  into.style.setProperty('--name', `${Math.ceil(name)}px`);
  into.style.setProperty('--class', `${Math.ceil(name + count)}px`);
  into.dataset.classes = String(colouring.names.filter((_, code) => counts[code]).length);
}
