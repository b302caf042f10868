import { axisKey, shifted, zoomed } from './axes.js';

/**
 * The keyboard: arrows move, plus and minus zoom, 0 resets, Escape clears, letters change the mode.
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
 * @param {Object} actions {setRanges, resetPanel, clear, setMode}
 */
export function listenToKeys(explorer, actions) {
  explorer.dom.root.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.target.matches('input')) return;
    if (answerKey(explorer, actions, event.key)) {
      event.preventDefault();
      event.stopPropagation(); // Streamlit has shortcuts of its own
    }
  });
}

function answerKey(explorer, actions, key) {
  const number = explorer.activePanel;
  const panel = explorer.panels[number];
  if (key === 'Escape') actions.clear();
  else if (key in MODE_KEYS) actions.setMode(MODE_KEYS[key]);
  else if (key === '0') actions.resetPanel(number);
  else {
    const ranges = panel && panel.frame ? rangesAfterKey(panel.frame, number, key) : null;
    if (!ranges) return false;
    actions.setRanges(ranges);
  }
  return true;
}
