/** Sliders of K and L that move between stored fits. */

import { element, range } from './dom.js';

/** @typedef {[k: number, l: number | null]} Size */

/** @param {Size[]} sizes of the fits @param {number} first place of the fit that is shown @param {(place: number) => void} show @returns {HTMLElement} */
export function buildSizes(sizes, first, show) {
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
