// @ts-check
/**
 * Buttons within HTML that Streamlit has drawn: an element with `data-act` sends it, and its `data-value`, when pressed.
 * One with `data-name` becomes a field for another name first.
 *
 * @typedef {{act: string, value: string, text: string}} Act
 */

/** @type {WeakMap<Element, () => void>} */
const listening = new WeakMap();
const LONGEST = 40; // letters of a name

/** @param {{data: {of: string}, parentElement: Element, setTriggerValue: (name: string, act: Act) => void}} call */
export default function follow({ data, parentElement, setTriggerValue }) {
  listening.get(parentElement)?.();
  const pressed = (/** @type {Event} */ event) => {
    const place =
      event.target instanceof Element
        ? event.target.closest(`.st-key-${data.of} [data-act]`)
        : null;
    if (!(place instanceof HTMLElement)) return;
    const send = (text = '') =>
      setTriggerValue('act', {
        act: place.dataset.act ?? '',
        value: place.dataset.value ?? '',
        text,
      });
    if (place.dataset.name === undefined) send();
    else rename(place, send);
  };
  document.addEventListener('click', pressed);
  const stop = () => document.removeEventListener('click', pressed);
  listening.set(parentElement, stop);
  return stop;
}

/** @param {HTMLElement} place @param {(text: string) => void} send */
function rename(place, send) {
  const field = document.createElement('input');
  Object.assign(field, { value: place.dataset.name, maxLength: LONGEST, className: 'ca-field' });
  field.setAttribute('aria-label', place.getAttribute('aria-label') ?? 'name');
  let over = false;
  const close = (/** @type {boolean} */ kept) => {
    if (over) return;
    over = true;
    field.replaceWith(place);
    place.focus();
    if (kept && field.value.trim() !== place.dataset.name) send(field.value);
  };
  field.addEventListener('blur', () => close(true));
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' || event.key === 'Escape') close(event.key === 'Enter');
  });
  place.replaceWith(field);
  field.select();
}
