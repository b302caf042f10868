/** Dialogs over the whole page, and the card of keys. */

import { button, element } from '../parts/dom.js';

/** @typedef {import('../stage.js').Stage} Stage */

const KEYS = {
  Everywhere: [
    ['Find anything', 'Ctrl', 'K'],
    ['All keys', '?'],
    ['Undo', 'Ctrl', 'Z'],
    ['Redo', 'Ctrl', 'Shift', 'Z'],
    ['Explore to Export', '1', '–', '7'],
  ],
  Picture: [
    ['Move, lasso, box', 'M', 'L', 'B'],
    ['Zoom', '+', '−'],
    ['All panels', '0'],
    ['Next panel', '←', '→'],
    ['Open a panel', 'Enter'],
    ['Back', 'Esc'],
  ],
  'Panel and point': [
    ['Select its rows', 'A'],
    ['Turn an axis', 'X', 'Y'],
    ['Turn to the next', 'T'],
    ['Next nearest row', '←', '→'],
    ['Go there', 'Enter'],
    ['Select all nearest', 'N'],
    ['Let go', 'Esc'],
  ],
};

/** @param {...string} keys */
export const caps = (...keys) =>
  element('span', 'appca-keys', {}, ...keys.map((key) => element('kbd', '', {}, key)));

/** A dialog that its button and a click beside it close. @param {Stage} stage @param {string} name @param {string} label @param {Node[]} title @param {...Node} children */
export function dialog(stage, name, label, title, ...children) {
  const close = button('', { 'aria-label': 'Close' }, () => made.close(), caps('Esc'));
  const head = element('header', '', {}, ...title, close);
  const look = { 'aria-label': label };
  const made = element('dialog', `appca-dialog ${name}`, look, head, ...children);
  made.addEventListener('click', ({ target }) => {
    if (target === made) made.close();
  });
  made.addEventListener('close', () => stage.hit.focus({ preventScroll: true }));
  for (const kind of ['keydown', 'wheel'])
    made.addEventListener(kind, (event) => event.stopPropagation()); // no keys of the page
  stage.root.append(made);
  return made;
}

/** All keys on one card. @param {Stage} stage */
export function buildKeys(stage) {
  const columns = Object.entries(KEYS).map(([title, lines]) =>
    element(
      'section',
      '',
      {},
      element('h3', '', {}, title),
      ...lines.map(([word, ...keys]) => element('p', '', {}, word, caps(...keys))),
    ),
  );
  const title = element('b', '', {}, 'Keys');
  const card = dialog(stage, 'appca-keycard', 'Keys', [title], element('div', '', {}, ...columns));
  return () => card.showModal();
}
