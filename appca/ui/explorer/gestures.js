import { holds, toData } from './axes.js';
import { placesInside, rectangle } from './lasso.js';
import { nearestPlace, plateAt } from './pick.js';
import { joinOf } from './rows.js';

/**
 * The pointer: hover, click, lasso and box. Moving and zooming by the mouse is Plotly's.
 */

const STEP = 3; // pixels between two corners of a lasso
const CLICK_SLACK = 4; // pixels a click may wander

/**
 * @param {Object} explorer the state
 * @param {Object} actions see actions.js
 */
export function listenToPointer(explorer, actions) {
  const { stage } = explorer.dom;
  const onStage = (name, handler) => stage.addEventListener(name, handler, true);
  onStage('pointerdown', (event) => pressed(explorer, actions, event));
  onStage('pointermove', (event) => moved(explorer, actions, event));
  onStage('dblclick', (event) => doubleClicked(explorer, actions, event));
  onStage('wheel', (event) => gateWheel(explorer, actions, event));
  stage.addEventListener('pointerleave', () => {
    explorer.wheelPanel = -1;
    actions.leave();
  });
}

/** Place of an event inside the stage. */
function at(explorer, event) {
  const box = explorer.dom.stage.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/** Number of the panel under a place, or -1. */
export function panelAt(panels, left, top) {
  return panels.findIndex((panel) => panel.frame && holds(panel.frame, left, top));
}

function isOnControl(event) {
  return event.target.closest('button') !== null;
}

function pressed(explorer, actions, event) {
  if (event.button !== 0 || isOnControl(event)) return;
  const [left, top] = at(explorer, event);
  const number = panelAt(explorer.panels, left, top);
  if (number < 0) return;
  explorer.wheelPanel = number;
  explorer.press = { number, start: [left, top] };
  awaitRelease(explorer, actions);
  if (explorer.mode === 'pan') return;
  event.preventDefault(); // Plotly does not see the drag
  event.stopPropagation();
  explorer.dom.stage.setPointerCapture(event.pointerId);
  explorer.path = [[left, top]];
  actions.activate(number); // keys, such as Escape, are for this panel now
  actions.leave();
}

/** The release may come anywhere: Plotly covers the page while the mouse drags. */
function awaitRelease(explorer, actions) {
  const listening = new AbortController();
  const options = { capture: true, signal: listening.signal };
  const after = (answer) => (event) => {
    listening.abort();
    answer(explorer, actions, event);
  };
  window.addEventListener('pointerup', after(released), options);
  window.addEventListener('pointercancel', after(abandon), options);
}

function moved(explorer, actions, event) {
  const [left, top] = at(explorer, event);
  if (explorer.path) {
    extendPath(explorer, left, top);
    actions.redraw();
  } else if (event.buttons === 0 && !isOnControl(event)) {
    const hit = hitAt(explorer, left, top);
    if (hit) actions.hover(hit, left, top);
    else actions.leave();
  } else actions.leave();
}

function extendPath(explorer, left, top) {
  const { path, mode, press } = explorer;
  if (mode === 'box') {
    explorer.path = rectangle(press.start, [left, top]);
    return;
  }
  const [lastLeft, lastTop] = path[path.length - 1];
  if (Math.hypot(left - lastLeft, top - lastTop) >= STEP) path.push([left, top]);
}

function released(explorer, actions, event) {
  const { press, path } = explorer;
  explorer.press = null;
  explorer.path = null;
  if (!press) {
    // another picture came meanwhile; said now, since drawing it may have taken seconds
    if (explorer.mode !== 'pan') actions.hint('the picture has changed; draw again');
    return;
  }
  actions.activate(press.number);
  const [left, top] = at(explorer, event);
  const wandered = Math.hypot(left - press.start[0], top - press.start[1]);
  if (path && path.length >= 4) finishPath(explorer, actions, press.number, path, event);
  else if (wandered <= CLICK_SLACK) clicked(explorer, actions, left, top, event);
  actions.redraw();
}

function finishPath(explorer, actions, number, path, event) {
  const panel = explorer.panels[number];
  const polygon = path.map(([left, top]) => toData(panel.frame, left, top));
  const places = placesInside(polygon, panel.x, panel.y);
  actions.select(
    places.map((place) => panel.rows[place]),
    joinOf(event),
  );
}

/** A click turns the point under it on or off, and leaves the rest of the selection alone. */
function clicked(explorer, actions, left, top, event) {
  const hit = hitAt(explorer, left, top);
  if (!hit) return;
  const row = explorer.panels[hit.number].rows[hit.place];
  actions.select([row], event.altKey ? 'subtract' : 'toggle');
}

/** What is under a place: {number, place} of panel and point, or null. */
export function hitAt(explorer, left, top) {
  const number = panelAt(explorer.panels, left, top);
  if (number < 0) return null;
  const panel = explorer.panels[number];
  const plate = plateAt(panel.plates, left, top);
  const place = plate
    ? plate.place
    : nearestPlace(panel.x, panel.y, panel.frame, left, top, () => true);
  return place < 0 ? null : { number, place };
}

function doubleClicked(explorer, actions, event) {
  const number = panelAt(explorer.panels, ...at(explorer, event));
  if (number < 0 || isOnControl(event)) return;
  event.stopPropagation();
  actions.resetPanel(number);
}

/**
 * The wheel scrolls the page, unless a key is held or the panel was clicked: an atlas of many
 * panels would otherwise catch the page.
 */
function gateWheel(explorer, actions, event) {
  const number = panelAt(explorer.panels, ...at(explorer, event));
  const allowed = event.ctrlKey || event.metaKey || number === explorer.wheelPanel;
  if (number >= 0 && allowed) return;
  event.stopPropagation();
  if (number >= 0) actions.hint('click a panel or hold Ctrl to zoom by scrolling');
}

function abandon(explorer, actions) {
  explorer.path = null;
  explorer.press = null;
  actions.redraw();
}
