import { axisKey, shifted, zoomed } from './axes.js';
import { isArrow } from './cursor.js';
import { joinOf } from './rows.js';
import { selectInView, toggleHere, walk } from './walk.js';

/**
 * The keyboard: arrows go from point to point, with Shift they move the panel, plus and minus zoom,
 * 0 resets, Enter selects, Escape clears, letters change the mode. help.js tells people the same.
 */

const ZOOM = 0.8;
const SHIFT = 0.12;

const MOVES = {
  ArrowLeft: [-SHIFT, 0],
  ArrowRight: [SHIFT, 0],
  ArrowUp: [0, SHIFT],
  ArrowDown: [0, -SHIFT],
};
const FACTORS = { '+': ZOOM, '=': ZOOM, '-': 1 / ZOOM, _: 1 / ZOOM };
const MODE_KEYS = { m: 'pan', l: 'lasso', b: 'box' };

/**
 * New ranges of a panel after a key, by axis key; null when the key does not move it.
 *
 * @param {{x: number[], y: number[]}} frame
 * @param {number} number of the panel
 * @param {string} key
 */
export function rangesAfterKey(frame, number, key) {
  const ranges = (x, y) => ({ [axisKey('x', number)]: x, [axisKey('y', number)]: y });
  if (key in MOVES) {
    const [right, up] = MOVES[key];
    return ranges(shifted(frame.x, right), shifted(frame.y, up));
  }
  if (key in FACTORS) return ranges(zoomed(frame.x, FACTORS[key]), zoomed(frame.y, FACTORS[key]));
  return null;
}

/**
 * @param {Object} explorer the state
 * @param {Object} actions see actions.js
 */
export function listenToKeys(explorer, actions) {
  explorer.dom.root.addEventListener('keydown', (event) => {
    if (isOfBrowser(event) || event.target.closest('input, dialog')) return;
    const answers = [answerInToolbar, answerOnPanel, answerAnywhere];
    if (answers.some((answer) => answer(explorer, actions, event))) {
      event.preventDefault();
      event.stopPropagation(); // Streamlit has shortcuts of its own
    }
  });
}

/** Alt + Left is Back, Alt + B may be a menu; Alt is held for what takes away, and to give that up. */
function isOfBrowser(event) {
  const takesAway = plainKey(event) === 'a' || event.key === 'Escape';
  return event.ctrlKey || event.metaKey || (event.altKey && !takesAway);
}

/** Letters are the same with Shift or Caps Lock. */
function plainKey({ key }) {
  return key.length === 1 ? key.toLowerCase() : key;
}

/** Arrows go from button to button. */
function answerInToolbar({ toolbar }, _, { key, target }) {
  if (!toolbar.root.contains(target) || !isArrow(key)) return false;
  const buttons = [...toolbar.root.querySelectorAll('button:enabled')];
  const step = key === 'ArrowRight' || key === 'ArrowDown' ? 1 : -1;
  const next = (buttons.indexOf(target) + step + buttons.length) % buttons.length;
  buttons[next].focus();
  return true;
}

/** What needs a panel: points, and what lies in view. */
function answerOnPanel(explorer, actions, event) {
  if (!event.target.closest('.appca-panel')) return false;
  const key = plainKey(event);
  const onPanel = event.target.matches('.appca-panel'); // a button in it has keys of its own
  if ((key === 'Enter' || key === ' ') && onPanel) toggleHere(explorer, actions);
  else if (key === 'a') selectInView(explorer, actions, joinOf(event));
  else if ((isArrow(key) && !event.shiftKey) || key === 'n' || key === 'p') {
    walk(explorer, actions, key);
  } else return false;
  return true;
}

function answerAnywhere(explorer, actions, event) {
  const key = plainKey(event);
  const number = explorer.activePanel;
  const panel = explorer.panels[number];
  if (key === 'Escape') actions.escape();
  else if (key === '?') actions.help();
  else if (key in MODE_KEYS) actions.setMode(MODE_KEYS[key]);
  else if (key === '0') actions.resetPanel(number);
  else {
    const ranges = panel && panel.frame ? rangesAfterKey(panel.frame, number, key) : null;
    if (!ranges) return false;
    actions.setRanges(ranges);
  }
  return true;
}
