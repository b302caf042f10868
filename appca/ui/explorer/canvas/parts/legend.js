/** Classes with their colours and counts; a class under the hand is shown alone. */

import { grouped, signed } from '../scene/names.js';
import { HIDDEN } from '../scene/rows.js';
import { cssOf } from '../theme.js';
import { element } from './dom.js';

const SHOWN = 40; // classes at most

/** @param {import('../stage.js').Stage} stage */
export function classCounts(stage) {
  const { rows } = stage;
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (let row = 0; row < rows.count; row += 1) if (!(rows.flags[row] & HIDDEN)) counts.set(rows.codes[row], (counts.get(rows.codes[row]) ?? 0) + 1);
  return counts;
}

/** Fill an element with the legend of the present colouring. @param {import('../stage.js').Stage} stage @param {HTMLElement} into @param {(code: number) => void} [pick] a class was pressed */
export function fillLegend(stage, into, pick = () => {}) {
  const { colouring, palette } = stage;
  into.replaceChildren();
  if (!colouring) return;
  if (colouring.kind === 'quantity') {
    const stops = Array.from({ length: 9 }, (_, i) => cssOf(palette, Math.round((i * 254) / 8)));
    const [low, high] = colouring.limits ?? [0, 1];
    const bar = element('span', 'appca-ramp');
    bar.style.background = `linear-gradient(to right, ${stops})`;
    into.append(element('span', 'appca-count', {}, signed(low, 2)), bar, element('span', 'appca-count', {}, signed(high, 2)));
    return;
  }
  const counts = classCounts(stage);
  let pinned = -1;
  const alone = (/** @type {number} */ code) => { stage.only = code; stage.frame = ''; stage.settleSoon(); };
  const codes = colouring.names.map((_, code) => code).filter((code) => counts.get(code)).slice(0, SHOWN);
  for (const code of codes) {
    const dot = element('i', 'appca-dot');
    dot.style.background = cssOf(palette, code);
    dot.dataset.shape = colouring.shapes?.[code] ?? 'circle';
    const item = element('button', 'appca-class', { type: 'button', 'aria-pressed': 'false', title: `Show ${colouring.names[code]} alone` }, dot, element('b', '', {}, colouring.names[code]), element('span', 'appca-count', {}, grouped(counts.get(code) ?? 0)));
    item.addEventListener('pointerenter', () => alone(code));
    item.addEventListener('pointerleave', () => alone(pinned));
    item.addEventListener('focus', () => alone(code));
    item.addEventListener('blur', () => alone(pinned));
    item.addEventListener('click', () => {
      pinned = pinned === code ? -1 : code;
      for (const one of into.querySelectorAll('button')) one.setAttribute('aria-pressed', String(pinned >= 0 && one === item));
      alone(pinned);
      pick(pinned);
    });
    into.append(item);
  }
  const rest = colouring.names.filter((_, code) => counts.get(code)).length - codes.length;
  if (rest > 0) into.append(element('span', 'appca-count', {}, `and ${rest} more`));
}
