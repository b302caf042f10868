/** A name that is typed over in its place: Enter and a click elsewhere keep the new one, Escape the old one. */

import { element } from './dom.js';

/** @param {HTMLElement} place shows the name, and gives way to a field for the new one @param {string} name @param {number} longest letters @param {(text: string) => void} send */
export function typeOver(place, name, longest, send) {
  const label = place.getAttribute('aria-label') ?? (place.title || 'name');
  const field = element('input', 'appca-field', {
    'aria-label': label,
    maxlength: String(longest),
  });
  field.value = name;
  let over = false;
  const close = (/** @type {boolean} */ kept) => {
    if (over) return;
    over = true;
    field.replaceWith(place);
    place.focus();
    if (kept && field.value.trim() !== name) send(field.value);
  };
  field.addEventListener('blur', () => close(true));
  field.addEventListener('keydown', (event) => {
    event.stopPropagation(); // letters are keys of the picture
    if (event.key === 'Enter' || event.key === 'Escape') close(event.key === 'Enter');
  });
  place.replaceWith(field);
  field.select();
}
