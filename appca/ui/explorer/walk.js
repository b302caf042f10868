import { holds, toPixels } from './axes.js';
import { idOf, linesOf, placeCard } from './card.js';
import { isArrow, middlePlace, nearestInDirection, neighbourInOrder, placesInView } from './cursor.js';
import { describePoint } from './describe.js';

/**
 * What the keyboard does with points: go to one, turn it on or off, take all in view.
 */

/** Go by a key; the first one goes to the point nearest to the middle of the panel. */
export function walk(explorer, actions, key) {
  const number = explorer.activePanel;
  const panel = explorer.panels[number];
  if (!panel?.frame) return;
  const place = placeAfter(panel, here(explorer), key);
  if (place < 0) {
    say(explorer, 'No further point in view in this direction.');
    return;
  }
  explorer.cursor = { number, place };
  const [left, top] = toPixels(panel.frame, panel.x[place], panel.y[place]);
  actions.hover(explorer.cursor, left, top);
  tell(explorer);
}

function placeAfter(panel, from, key) {
  if (from < 0) return middlePlace(panel);
  if (isArrow(key)) return nearestInDirection(panel, from, key);
  return neighbourInOrder(panel, from, key === 'n' ? 1 : -1);
}

/** Place of the cursor in the active panel, -1 when it is in none or out of view. */
function here({ cursor, activePanel, panels }) {
  if (!cursor || cursor.number !== activePanel) return -1;
  const { x, y, frame } = panels[activePanel];
  const inView = holds(frame, ...toPixels(frame, x[cursor.place], y[cursor.place]));
  return inView ? cursor.place : -1;
}

/** Turn the point under the cursor on or off. */
export function toggleHere(explorer, actions) {
  const place = here(explorer);
  if (place < 0) {
    say(explorer, 'No point yet: an arrow key goes to one.');
    return;
  }
  const row = explorer.panels[explorer.activePanel].rows[place];
  actions.select([row], 'toggle');
  const verb = explorer.selection?.[row] ? 'selected' : 'no longer selected';
  say(explorer, `${idOf(explorer.hover, row)} ${verb}.`);
}

/** Select what is in view of the active panel: the keyboard's lasso. */
export function selectInView(explorer, actions, how) {
  const panel = explorer.panels[explorer.activePanel];
  if (!panel?.frame) return;
  actions.select(
    placesInView(panel).map((place) => panel.rows[place]),
    how,
  );
}

/** Keep the card beside the cursor's point when the panel has moved, and hide it out of view. */
export function followCursor(explorer, actions) {
  const { cursor, hovered, panels, dom, grid } = explorer;
  if (!cursor || hovered !== cursor) return;
  if (here(explorer) < 0) {
    actions.leave();
    return;
  }
  const { x, y, frame } = panels[cursor.number];
  placeCard(dom.card, ...toPixels(frame, x[cursor.place], y[cursor.place]), grid);
}

function tell(explorer) {
  const { cursor, panels, hover, selection } = explorer;
  const panel = panels[cursor.number];
  const row = panel.rows[cursor.place];
  const lines = linesOf(explorer, panel, cursor.place);
  say(explorer, describePoint(idOf(hover, row), lines, selection?.[row] === 1));
}

/** Have a text read out. */
export function say(explorer, text) {
  explorer.dom.voice.textContent = text;
}
