// @ts-check
/**
 * Buttons within HTML that Streamlit has drawn: an element with `data-act` sends it, and its `data-value`, when pressed.
 * One with `data-name` becomes a field for another name first. A list sends the place of what was chosen.
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
    else rename(place, send);
  };
  const kinds = ['click', 'change'];
  kinds.forEach((kind) => document.addEventListener(kind, pressed));
  const stop = () => kinds.forEach((kind) => document.removeEventListener(kind, pressed));
  listening.set(parentElement, stop);
  return stop;
}

/**
 * Give the focus to what takes the place of a button, once the page has drawn it.
 *
 * @param {HTMLElement} place @param {string} of
 */
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
