// @ts-check
import { typeOver } from '../../canvas/js/parts/bar.js';

/** Buttons within HTML drawn by Streamlit: a pressed element with `data-act` sends its `data-act` and `data-value`. An element with `data-name` first becomes a field for a new name. A list sends the index of the chosen option. */
/** @typedef {{act: string, value: string, text: string}} Act */

/** @type {WeakMap<Element, () => void>} */ const listening = new WeakMap();
/** @type {WeakSet<Element>} */ const sent = new WeakSet();
const LONGEST = 40; // maximum number of letters of a name

/** @param {{data: {of: string}, parentElement: Element, setTriggerValue: (name: string, act: Act) => void}} call */
export default function follow({ data, parentElement, setTriggerValue }) {
  listening.get(parentElement)?.();
  const all = `.st-key-${data.of} [data-act]`;
  const send = (/** @type {HTMLElement} */ place, text = '') => {
    keepFocus(place, data.of);
    sent.add(place);
    const { act = '', value = '' } = place.dataset;
    setTriggerValue('act', { act, value, text });
  };
  const pressed = (/** @type {Event} */ event) => {
    const place = event.target instanceof Element ? event.target.closest(all) : null;
    const isList = place instanceof HTMLSelectElement;
    if (!(place instanceof HTMLElement) || isList !== (event.type === 'change')) return;
    if (isList) send(place, place.value);
    else if (place.dataset.name === undefined) send(place);
    else typeOver(place, place.dataset.name, LONGEST, (text) => send(place, text));
  };
  // A list may have changed before this script was loaded.
  for (const place of document.querySelectorAll(all))
    if (place instanceof HTMLSelectElement && !sent.has(place))
      if (place.selectedOptions[0]?.defaultSelected === false) send(place, place.value);
  const kinds = ['click', 'change'];
  kinds.forEach((kind) => document.addEventListener(kind, pressed));
  const stop = () => kinds.forEach((kind) => document.removeEventListener(kind, pressed));
  listening.set(parentElement, stop);
  return stop;
}

/** Focus the element that replaces a button, once the page has drawn it. @param {HTMLElement} place @param {string} of */
function keepFocus(place, of) {
  const { act, value } = place.dataset;
  let looks = 0;
  const timer = setInterval(() => {
    if ((looks += 1) > 200) clearInterval(timer);
    if (place.isConnected || document.activeElement !== document.body) return;
    const same = `[data-act="${act}"][data-value="${CSS.escape(value ?? '')}"]`;
    const next = document.querySelector(`.st-key-${of} ${same}`);
    if (!(next instanceof HTMLElement)) return;
    next.focus();
    clearInterval(timer);
  }, 50);
}
