import { typeOver } from '../../canvas/js/parts/bar.js';

// @ts-check
/**
 * Buttons within HTML that Streamlit has drawn: an element with `data-act` sends it, and its `data-value`, when pressed.
 * One with `data-name` becomes a field for another name first. A list sends the place of what was chosen.
 * @typedef {{act: string, value: string, text: string}} Act
 */

/** @type {WeakMap<Element, () => void>} */ const listening = new WeakMap();
const LONGEST = 40; // letters of a name

/** @param {{data: {of: string}, parentElement: Element, setTriggerValue: (name: string, act: Act) => void}} call */
export default function follow({ data, parentElement, setTriggerValue }) {
  listening.get(parentElement)?.();
  const pressed = (/** @type {Event} */ event) => {
    const place =
      event.target instanceof Element
        ? event.target.closest(`.st-key-${data.of} [data-act]`)
        : null;
    const isList = place instanceof HTMLSelectElement;
    if (!(place instanceof HTMLElement) || isList !== (event.type === 'change')) return;
    const send = (text = '') => {
      keepFocus(place, data.of);
      setTriggerValue('act', {
        act: place.dataset.act ?? '',
        value: place.dataset.value ?? '',
        text,
      });
    };
    if (isList) send(place.value);
    else if (place.dataset.name === undefined) send();
    else typeOver(place, place.dataset.name, LONGEST, send);
  };
  const kinds = ['click', 'change'];
  kinds.forEach((kind) => document.addEventListener(kind, pressed));
  const stop = () => kinds.forEach((kind) => document.removeEventListener(kind, pressed));
  listening.set(parentElement, stop);
  return stop;
}

/** Give the focus to what takes the place of a button, once the page has drawn it. @param {HTMLElement} place @param {string} of */
function keepFocus(place, of) {
  const { act, value } = place.dataset;
  let looks = 0;
  const timer = setInterval(() => {
    if ((looks += 1) > 200) clearInterval(timer);
    if (place.isConnected || document.activeElement !== document.body) return;
    const same = document.querySelectorAll(`.st-key-${of} [data-act="${act}"]`);
    const next = [...same].find(
      (each) => each instanceof HTMLElement && each.dataset.value === value,
    );
    if (!(next instanceof HTMLElement)) return;
    next.focus();
    clearInterval(timer);
  }, 50);
}
