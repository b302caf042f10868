import { element, icon } from './dom.js';

/**
 * The line above the panels: what a drag does, thumbnail size, reset and clear.
 */

const ICONS = {
  pan: 'M12 3v18M3 12h18M12 3l-3 3m3-3 3 3M12 21l-3-3m3 3 3-3M3 12l3-3m-3 3 3 3M21 12l-3-3m3 3-3 3',
  lasso: 'M12 4c-5 0-9 2.700-9 6s4 6 9 6 9-2.700 9-6-4-6-9-6M7 15.300c-1.500 1-1.500 2.700 0 3.200s1.500 1.700.500 2.500',
  box: 'M4 8V4h4M16 4h4v4M20 16v4h-4M8 20H4v-4M11 4h2M11 20h2M4 11v2M20 11v2',
  clear: 'M6 6l12 12M18 6 6 18',
  home: 'M4 11l8-7 8 7M6 10v10h12V10M10 20v-6h4v6',
  help: 'M8.500 9a3.500 3.500 0 1 1 5.600 2.800c-1.300 1-2.100 1.700-2.100 3.200M12 19v.200',
};

export const MODES = [
  ['pan', 'Move: drag to move, scroll to zoom (M)'],
  ['lasso', 'Lasso: draw around points in any panel (L)'],
  ['box', 'Box: drag a rectangle around points (B)'],
];

const LARGEST_THUMBNAIL = 64;

/**
 * @param {Object} actions {setMode, setThumbnail, clear, home, help}
 * @returns {{root: HTMLElement, note: HTMLElement, buttons: Object<string, HTMLElement>,
 *   size: HTMLInputElement}}
 */
export function buildToolbar(actions) {
  const root = element('div', 'appca-toolbar', null, { role: 'toolbar', 'aria-label': 'Explorer' });
  const note = element('span', 'appca-note', '', { role: 'status', 'aria-live': 'polite' });
  const buttons = {};
  const add = (name, label, onClick) => {
    buttons[name] = iconButton(name, label, onClick);
    root.append(buttons[name]);
  };
  const { holder, size } = sizeSlider(actions.setThumbnail);
  root.append(note, holder);
  for (const [mode, label] of MODES) add(mode, label, () => actions.setMode(mode));
  root.append(element('span', 'appca-divider'));
  add('home', 'Reset the view of all panels', actions.home);
  add('clear', 'Clear the selection (Escape)', actions.clear);
  add('help', 'Keys and gestures (?)', actions.help);
  return { root, note, buttons, size, holder };
}

function iconButton(name, label, onClick) {
  const button = element('button', 'appca-button', null, {
    type: 'button',
    title: label,
    'aria-label': label,
    'data-action': name,
  });
  button.append(icon(ICONS[name]));
  button.addEventListener('click', onClick);
  return button;
}

function sizeSlider(onInput) {
  const holder = element('label', 'appca-size');
  const value = element('span', 'appca-size-value', '');
  const size = element('input', 'appca-slider', null, {
    type: 'range',
    min: '0',
    max: String(LARGEST_THUMBNAIL),
    step: '2',
    'aria-label': 'Thumbnail size in pixels; 0 turns thumbnails off',
  });
  size.addEventListener('input', () => onInput(Number(size.value)));
  holder.append(element('span', 'appca-size-label', 'Images'), size, value);
  return { holder, size };
}

/** Show which mode is on, how large images are and how many rows are selected. */
export function refreshToolbar(toolbar, { mode, thumbnail, note, hasImages, hasSelection }) {
  for (const [name] of MODES) {
    toolbar.buttons[name].setAttribute('aria-pressed', String(mode === name));
  }
  toolbar.buttons.clear.disabled = !hasSelection;
  toolbar.holder.hidden = !hasImages;
  toolbar.size.value = String(thumbnail);
  toolbar.holder.lastChild.textContent = thumbnail === 0 ? 'off' : `${thumbnail} px`;
  if (toolbar.note.textContent !== note) toolbar.note.textContent = note;
}
