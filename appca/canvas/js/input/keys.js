/** Without a pointer or a picture: keys reach every panel and view, and a screen reader hears what is shown. */

import { within } from '../layout/geometry.js';
import { element } from '../parts/dom.js';
import { fullest } from '../scene/layouts.js';
import { grouped } from '../scene/names.js';
import { panView } from './gestures.js';

const LISTED = 250;
const AFTER = 200; // ms until the table follows: the picture comes first

/** @param {Stage} stage @param {Actions} actions */
export function buildSpoken(stage, actions) {
  const live = element('div', 'appca-live appca-hidden', { 'aria-live': 'polite' });
  const caption = element('caption', '');
  const body = element('tbody', '');
  const head = element(
    'tr',
    '',
    {},
    ...['Panel', 'Components', 'Rows', 'Share'].map((text) =>
      element('th', '', { scope: 'col' }, text),
    ),
  );
  const table = element('table', 'appca-hidden', {}, caption, element('thead', '', {}, head), body);
  stage.root.append(live, table);
  actions.say = (text) => {
    live.textContent = text;
  };
  /** @type {Layout | null} */ let shown = null;
  let timer = 0;
  const fill = () => {
    const [{ layout }] = stage.views;
    if (stage.gone || shown === layout) return;
    shown = layout;
    const said = `${layout.title}: ${grouped(stage.rows.count)} rows in ${layout.panels.length} ${layout.panels.length === 1 ? 'panel' : 'panels'}`;
    caption.textContent = said;
    stage.hit.setAttribute(
      'aria-label',
      `${said}. Arrow keys move between panels, Enter opens one, Escape goes back, plus and minus zoom, A selects a panel's rows, slash finds anything, question mark lists all keys.`,
    );
    const listed = fullest(layout.panels).slice(0, LISTED);
    body.replaceChildren(
      ...listed.map((panel) =>
        element(
          'tr',
          '',
          {},
          ...[
            panel.name,
            panel.components
              .map((i) => stage.meta.components[i].name || stage.meta.components[i].number)
              .join(', '),
            grouped(panel.count),
            `${((100 * panel.count) / stage.rows.count).toFixed(1)}%`,
          ].map((text) => element('td', '', {}, text)),
        ),
      ),
    );
  };
  stage.settled.push(() => {
    clearTimeout(timer);
    timer = setTimeout(fill, AFTER);
  });
}

const OPEN =
  '[role="dialog"]:not([hidden]), dialog[open], [data-baseweb="popover"], textarea:focus, [contenteditable="true"]:focus';
const TYPED =
  'input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable=true]';
/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** The nearest panel in a direction. @param {View} view @param {number} from @param {[number, number]} direction */
export function neighbour(view, from, [dx, dy]) {
  const { rects } = view.parts[0];
  if (from < 0 || !rects[from]) return 0;
  const middle = (/** @type {Rect} */ { x, y, w, h }) => [x + w / 2, y + h / 2];
  const [fx, fy] = middle(rects[from]);
  let best = from;
  let least = Infinity;
  rects.forEach((rect, i) => {
    const [x, y] = middle(rect);
    const along = (x - fx) * dx + (y - fy) * dy;
    const cost = along + 3 * Math.abs((x - fx) * dy + (y - fy) * dx);
    if (i !== from && along > 0.2 && cost < least) {
      least = cost;
      best = i;
    }
  });
  return best;
}

/** @param {Stage} stage @param {Actions} actions @param {{choose: (tool: 'pan' | 'lasso' | 'box') => void, tour: () => void, search: () => void, keys: () => void, halt: () => void, go: (target: Target) => void}} parts */
export function listenToKeys(stage, actions, parts) {
  const { hit } = stage;
  hit.tabIndex = 0;
  hit.setAttribute('role', 'application');
  for (const kind of ['focus', 'blur'])
    hit.addEventListener(kind, () =>
      stage.views.forEach((view) => {
        view.focusShown = kind === 'focus' && hit.matches(':focus-visible');
        stage.schedule();
      }),
    );
  /** @type {Record<string, (view: View) => void>} */ const plain = {
    '+': (view) => actions.zoom(view, 1.4),
    '=': (view) => actions.zoom(view, 1.4),
    '-': (view) => actions.zoom(view, 1 / 1.4),
    0: (view) => actions.home(view),
    m: () => parts.choose('pan'),
    l: () => parts.choose('lasso'),
    b: () => parts.choose('box'),
    t: () => parts.tour(),
    '/': () => parts.search(),
    '?': () => parts.keys(),
    Enter: (view) => {
      if (view.focus >= 0) actions.open(view, view.focus);
    },
    Escape: (view) => escape(stage, actions, view),
    x: (view) => actions.turnAxis(view, 0),
    y: (view) => actions.turnAxis(view, 1),
    a: ({ layout: { panels, rows }, focus }) => {
      const { start, count } = panels[focus] ?? { start: 0, count: 0 };
      if (count) actions.select(rows.subarray(start, start + count));
    },
  };
  listenAnywhere(stage, actions, parts);
  hit.addEventListener('keydown', (event) => {
    if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== 'a')) return;
    const view = stage.views[0];
    const arrow = ARROWS[event.key];
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const run = plain[key];
    const heard = !event.shiftKey && listenWhileHeld(stage, actions, parts.go, key);
    if (!heard && !arrow && !run) return;
    event.preventDefault();
    if (heard) return;
    if (arrow && event.shiftKey) panView(stage, view, -60 * arrow[0], -60 * arrow[1]);
    else if (arrow) step(stage, actions, view, arrow);
    else run(view);
  });
}

/** While a row is held, left and right choose one of its nearest rows, Enter goes there, N selects all of them. @param {Stage} stage @param {Actions} actions @param {(target: Target) => void} go @param {string} key @returns {boolean} whether the key is used up */
function listenWhileHeld(stage, actions, go, key) {
  const near = Array.from(stage.held < 0 ? [] : stage.near);
  const [at, step] = [near.indexOf(stage.chosen), ARROWS[key]?.[0] ?? 0];
  if (step && near.length) {
    const next = at < 0 && step < 0 ? near.length - 1 : (at + step + near.length) % near.length;
    stage.chosen = near[next];
    actions.say(`Row ${grouped(stage.chosen)}, ${next + 1} of the ${near.length} nearest`);
    stage.schedule();
  } else if (key === 'Enter' && at >= 0) go({ row: stage.chosen });
  else if (key === 'n' && near.length) actions.select([stage.held, ...near]);
  else return false;
  return true;
}

/** Escape ends a tour or a large panel wherever the focus is, unless something that is open or written in takes it; "/" and Ctrl+K search and "?" lists the keys from anywhere on a page, in its first picture. @param {Stage} stage @param {Actions} actions @param {{search: () => void, keys: () => void, halt: () => void}} parts */
function listenAnywhere(stage, actions, { search, keys, halt }) {
  const listen = (/** @type {KeyboardEvent} */ event) => {
    const view = stage.views.find((candidate) => candidate.opened);
    if (stage.gone) document.removeEventListener('keydown', listen, true);
    else if (event.key === 'Escape' && (stage.tour || view || stage.held >= 0)) {
      if (document.querySelector(OPEN)) return;
      event.stopPropagation();
      halt();
      escape(stage, actions, view ?? stage.views[0]);
    } else if (document.querySelector('.appca-explorer') === stage.root) {
      const asked = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k';
      const typing =
        document.activeElement?.matches(TYPED) || document.querySelector('dialog[open]');
      if (!asked && (typing || !['/', '?'].includes(event.key))) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === '?') keys();
      else search();
    }
  };
  document.addEventListener('keydown', listen, true); // what is open is still open then
}

/** @param {Stage} stage @param {Actions} actions @param {View} view @param {[number, number]} direction */
function step(stage, actions, view, direction) {
  const next = neighbour(view, view.opened?.panel ?? view.focus, direction);
  view.focusShown = true;
  view.focus = next;
  if (view.opened) actions.open(view, next);
  else {
    const { name, count } = view.layout.panels[next];
    actions.say(`${name}, ${grouped(count)} rows`);
    const placed = stage.placed.find(
      (spot) => spot.view === view && !spot.part.inset && spot.panel.index === next,
    );
    if (!placed || !within(placed.card, view.rect)) {
      const rect = view.parts[0].rects[next];
      actions.flyTo(view, { ...view.cam, x: rect.x + rect.w / 2, y: rect.y + rect.h / 2 });
    }
    stage.schedule();
  }
}

/** @param {Stage} stage @param {Actions} actions @param {View} view */
function escape(stage, actions, view) {
  if (stage.tour) {
    actions.endTour();
    actions.after();
  } else if (stage.held >= 0) actions.hold(-1);
  else if (view.opened) actions.close(view);
  else if (!view.atFit) actions.home(view);
  else if (stage.rows.selected) actions.select([]);
}
