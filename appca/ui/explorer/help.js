import { element } from './dom.js';

/**
 * The help: which keys and gestures there are.
 */

const MOUSE = [
  ['Drag', 'move a panel; in lasso or box mode, draw around points'],
  ['Ctrl + wheel', 'zoom; the wheel alone after a click into a panel'],
  ['Double click', 'reset a panel'],
  ['Click', 'on a point: select or unselect it; on a corner or a class: all its rows'],
  ['Shift or Alt', 'held while selecting: add to the selection, or take away from it'],
];

const KEYS = [
  ['Tab', 'from panel to panel, and to the buttons in their corners'],
  ['Arrows', 'to the nearest point in that direction; its card opens and is read out'],
  ['N and P', 'to the next and to the previous point, from left to right'],
  ['Enter or Space', 'select or unselect the point'],
  ['A', 'select all points in view of the panel; Shift + A adds them'],
  ['Shift + arrows', 'move the panel'],
  ['+ and −', 'zoom in and out'],
  ['0', 'reset the panel'],
  ['M, L, B', 'what a drag does: move, lasso or box'],
  ['Escape', 'give up a lasso while it is drawn; else clear the selection'],
  ['?', 'this help'],
];

/** The help as a dialog, closed at first. */
export function buildHelp() {
  const dialog = element('dialog', 'appca-help', null, { 'aria-label': 'Keys and gestures' });
  const close = element('button', 'appca-help-close', 'Close', { type: 'button' });
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close(); // beside what is in it
  });
  const body = element('div', 'appca-help-body');
  body.append(
    element('h2', 'appca-help-title', 'With the keyboard'),
    listOf(KEYS),
    element('h2', 'appca-help-title', 'With the mouse'),
    listOf(MOUSE),
    close,
  );
  dialog.append(body);
  return dialog;
}

function listOf(pairs) {
  const list = element('dl', 'appca-help-list');
  for (const [key, meaning] of pairs) {
    list.append(element('dt', '', key), element('dd', '', meaning));
  }
  return list;
}
