/** Pointer and keyboard input: wheel, drag, pinch, double click, lasso, box and hover; keys reach every panel. */

import { clamp, holds, mix, pointToPage, scaleOf, within, zoomed } from '../layout/geometry.js';
import { isCompact } from '../layout/view.js';
import { element } from '../parts/dom.js';
import { fullest } from '../scene/layouts.js';
import { grouped, rowNumber } from '../scene/names.js';
import { HIDDEN } from '../scene/rows.js';

const REACH = 9; // px from the pointer to a point

/** @typedef {{side: number, starts: Uint32Array, list: Uint32Array}} Grid points of a panel by cell of its range */

/** Return the panel at a place; the last drawn has priority. @param {Stage} stage @param {number} x @param {number} y */
export function panelAt(stage, x, y) {
  return stage.placed.findLast(
    ({ card, view, strength }) => strength > 0.5 && holds(card, x, y) && holds(view.rect, x, y),
  );
}

/** @type {WeakMap<Panel, {key: string, grid: Grid}>} */ const grids = new WeakMap();

/** Sort a panel's points into cells of its extent, by counting. @param {Layout} layout @param {Panel} panel @returns {Grid} */
function gridOf(layout, panel) {
  const { start, count } = panel;
  const { xy } = layout;
  const key = `${layout.name} ${layout.revision} ${layout.rows.length}`;
  const cached = grids.get(panel);
  if (cached?.key === key) return cached.grid;
  const side = clamp(Math.ceil(Math.sqrt(count / 3)), 1, 512);
  const cells = new Uint32Array(count);
  const starts = new Uint32Array(side * side + 1);
  for (let j = 0; j < count; j += 1) {
    const at = 2 * (start + j);
    cells[j] = cellOf(panel, side, 0, xy[at]) + side * cellOf(panel, side, 1, xy[at + 1]);
    starts[cells[j] + 1] += 1;
  }
  for (let c = 0; c < side * side; c += 1) starts[c + 1] += starts[c];
  const next = starts.slice();
  const list = new Uint32Array(count);
  for (let j = 0; j < count; j += 1) list[next[cells[j]]++] = start + j;
  const grid = { side, starts, list };
  grids.set(panel, { key, grid });
  return grid;
}

/** @param {Panel} panel @param {number} side cells @param {number} axis @param {number} value */
function cellOf({ extent }, side, axis, value) {
  const [low, high] = [extent[2 * axis], extent[2 * axis + 1]];
  return clamp(Math.floor(((value - low) / (high - low)) * side), 0, side - 1);
}

/** Return the row nearest to a place of the page; an image counts if the pointer is over it. @param {Stage} stage @param {number} x @param {number} y @returns {Found | null} */
export function pick(stage, x, y) {
  const spot = panelAt(stage, x, y);
  if (!spot || stage.morph || stage.tour) return null;
  /** @type {Found | null} */ let best = null;
  for (const { wanted, px } of stage.images)
    for (const { key, row, raw } of wanted) {
      if (key !== spot.key) continue;
      const [ix, iy] = pointToPage(spot, raw[0], raw[1]);
      if (Math.max(Math.abs(ix - x), Math.abs(iy - y)) < px / 2)
        best = { row, x: ix, y: iy, spot, index: -1 };
    }
  if (best) return best;
  const { layout } = spot.part;
  const { side, starts, list } = gridOf(layout, spot.panel);
  const { left, bottom, kx, ky } = scaleOf(spot);
  const [u, v] = [(x - left) / kx, (bottom - y) / ky];
  const cell = (/** @type {number} */ axis, /** @type {number} */ value) =>
    cellOf(spot.panel, side, axis, value);
  let least = REACH ** 2;
  for (let b = cell(1, v - REACH / ky); b <= cell(1, v + REACH / ky); b += 1)
    for (let a = cell(0, u - REACH / kx); a <= cell(0, u + REACH / kx); a += 1)
      for (const index of list.subarray(starts[a + side * b], starts[a + side * b + 1])) {
        const row = layout.rows[index];
        const [dx, dy] = [(layout.xy[2 * index] - u) * kx, (layout.xy[2 * index + 1] - v) * ky];
        if (dx * dx + dy * dy >= least || stage.rows.flags[row] & HIDDEN) continue;
        least = dx * dx + dy * dy;
        best = { row, x: x + dx, y: y - dy, spot, index };
      }
  return best;
}

const CLICK = 4; // px that a pointer may move during a click
const TWICE = 600; // ms within which a second click makes a double click

/** @typedef {{at: [number, number] | null, path: [number, number][]}} Hand place of the pointer, and the lasso or box that it draws */
/** @typedef {{x: number, y: number, view: View, cam: Camera, kind: 'pan' | 'lasso' | 'box', range?: Bounds, moved: boolean}} Drag */

/** @param {Stage} stage @param {Actions} actions @returns {Hand} updated at every event */
export function listenToHand(stage, actions) {
  const { hit, root, options } = stage;
  /** @type {Hand} */ const hand = { at: null, path: [] };
  /** @type {Map<number, [number, number]>} */ const pointers = new Map();
  /** @type {Drag | null} */ let drag = null;
  let before = { bits: new Uint8Array(), change: 0, held: -1, time: -TWICE }; // state before the last click
  /** @param {MouseEvent} event @returns {[number, number]} */
  const place = ({ clientX, clientY }) => {
    const { left, top } = root.getBoundingClientRect();
    return [clientX - left, clientY - top];
  };
  /** Return the middle between two fingers, and their distance. */
  const fingers = () => {
    const [[ax, ay], [bx, by]] = pointers.values();
    const apart = Math.max(1, Math.hypot(ax - bx, ay - by));
    return { x: (ax + bx) / 2, y: (ay + by) / 2, apart };
  };
  /** @type {Record<string, (event: any) => void>} */ const acts = {
    wheel: (event) => {
      const scrolls = options.scrolls ?? isCompact(options);
      if (scrolls && !event.ctrlKey && document.activeElement !== hit) return; // the page scrolls
      event.preventDefault();
      const [x, y] = place(event);
      const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0017));
      zoomView(stage, stage.viewAt(x, y), x, y, factor);
    },
    pointerdown: (event) => {
      const [x, y] = place(event);
      hit.focus({ preventScroll: true });
      hit.setPointerCapture?.(event.pointerId);
      pointers.set(event.pointerId, [x, y]);
      actions.rest(null);
      stage.tweens.running.delete('fly');
      hand.path = [];
      drag = null;
      if (pointers.size === 2) return;
      const view = stage.viewAt(x, y);
      const { tool = 'pan' } = options;
      const keys = event.shiftKey || event.ctrlKey || event.metaKey;
      const kind = event.button ? 'pan' : tool === 'pan' && keys ? 'lasso' : tool;
      drag = { x, y, view, cam: { ...view.cam }, kind, range: view.opened?.range, moved: false };
      if (kind !== 'pan') hand.path = [[x, y]];
    },
    pointermove: (event) => {
      const [x, y] = (hand.at = place(event));
      stage.active = stage.views.indexOf(stage.viewAt(x, y));
      if (pointers.size === 2 && pointers.has(event.pointerId)) {
        const last = fingers();
        pointers.set(event.pointerId, [x, y]);
        const now = fingers();
        const view = stage.viewAt(now.x, now.y);
        panView(stage, view, now.x - last.x, now.y - last.y);
        return zoomView(stage, view, now.x, now.y, now.apart / last.apart);
      }
      if (!drag) {
        const came = actions.cameAt(x, y);
        if (hit.title !== came) hit.title = came;
        return actions.rest([x, y]);
      }
      const { kind, view, cam, range, x: x0, y: y0 } = drag;
      drag.moved ||= Math.hypot(x - x0, y - y0) > CLICK;
      const every = event.getCoalescedEvents?.() ?? []; // of one frame: all corners of a quick lasso
      if (kind === 'lasso') hand.path.push(...(every.length ? every : [event]).map(place));
      if (kind === 'box')
        hand.path = [0, 1, 2, 3].map((corner) => [corner % 3 ? x : x0, corner > 1 ? y : y0]);
      if (kind !== 'pan') return stage.schedule();
      if (!drag.moved) return;
      view.cam = { ...view.cam, x: cam.x, y: cam.y };
      if (view.opened && range) view.opened.range = range;
      panView(stage, view, x - x0, y - y0);
    },
    pointerup: (event) => {
      const { shiftKey, ctrlKey, metaKey, altKey, type, timeStamp: time } = event;
      const [was, { path }] = [drag, hand];
      pointers.delete(event.pointerId);
      drag = null;
      hand.path = [];
      if (!was) return;
      const how = shiftKey ? 'add' : ctrlKey || metaKey || altKey ? 'subtract' : 'replace';
      if (!was.moved && type === 'pointerup') {
        const { packed: bits, flagsChanged: change } = stage.rows;
        if (time - before.time > TWICE) before = { bits, change, held: stage.held, time };
        actions.click(...place(event), how);
      } else if (path.length > 2 && type === 'pointerup') actions.lasso(was.view, path, how);
      stage.settleSoon();
    },
    pointercancel: (event) => acts.pointerup(event),
    pointerleave: () => {
      hand.at = null;
      actions.rest(null);
    },
    /** Open or close a panel, with the selection from before the two clicks. */
    dblclick: (event) => {
      const spot = panelAt(stage, ...place(event));
      if (!spot) return;
      if (before.change !== stage.rows.flagsChanged) {
        stage.rows.unpack(before.bits);
        actions.selected();
      }
      actions.hold(before.held);
      if (spot.open) actions.close(spot.view);
      else actions.open(spot.view, spot.panel.index, spot.part);
    },
  };
  for (const [kind, act] of Object.entries(acts))
    hit.addEventListener(kind, act, { passive: kind !== 'wheel' });
  return hand;
}

/** Zoom about a point; in an opened panel, change its range instead. @param {Stage} stage @param {View} view @param {number} x @param {number} y @param {number} factor */
export function zoomView(stage, view, x, y, factor) {
  const { opened, home } = view;
  const spot = opened && stage.placed.find((placed) => placed.view === view && placed.open);
  if (opened && spot && !stage.tour) {
    const { extent } = spot.panel;
    const whole = extent[1] - extent[0];
    const wide = opened.range[1] - opened.range[0];
    const by = clamp(wide / factor, whole / 4000, 3 * whole) / wide;
    const { left, bottom, kx, ky } = scaleOf({ plot: spot.plot, range: opened.range });
    const [u, v] = [(x - left) / kx, (bottom - y) / ky];
    const range = opened.range.map((at, i) => mix(i < 2 ? u : v, at, by));
    opened.range = /** @type {Bounds} */ (range);
  } else if (!opened)
    view.cam = zoomed(view.cam, view.rect, x, y, factor, home.k * 0.5, home.k * 4000);
  stage.moved();
}

/** @param {Stage} stage @param {View} view @param {number} dx @param {number} dy */
function panView(stage, view, dx, dy) {
  const { opened, cam, arrangement, parts } = view;
  const spot = opened && stage.placed.find((placed) => placed.view === view && placed.open);
  if (opened && spot) {
    const { kx, ky } = scaleOf({ plot: spot.plot, range: opened.range });
    const range = opened.range.map((at, i) => at + (i < 2 ? -dx / kx : dy / ky));
    opened.range = /** @type {Bounds} */ (range);
  } else {
    const { x, y, w, h } = arrangement.world;
    const below = arrangement.kind === 'columns' ? parts[0].rects : []; // may extend below the view of "all panels"
    const bottom = Math.max(y + h, ...below.map((rect) => rect.y + rect.h));
    const to = { x: clamp(cam.x - dx / cam.k, x, x + w), y: clamp(cam.y - dy / cam.k, y, bottom) };
    view.cam = { ...to, k: cam.k };
  }
  stage.moved();
}

const LISTED = 250;
const AFTER = 200; // ms from the picture to the update of the table

/** Create texts for screen readers: events, and a table of the panels. @param {Stage} stage @param {Actions} actions */
export function buildSpoken(stage, actions) {
  const live = element('div', 'appca-live', { 'aria-live': 'polite' });
  const caption = element('caption', '');
  const body = element('tbody', '');
  const line = (/** @type {'td' | 'th'} */ tag, /** @type {string[]} */ texts) => {
    const look = tag === 'th' ? { scope: 'col' } : undefined;
    return element('tr', '', {}, ...texts.map((text) => element(tag, '', look, text)));
  };
  const head = element('thead', '', {}, line('th', ['Panel', 'Components', 'Rows', 'Share']));
  const table = element('table', '', {}, caption, head, body);
  stage.root.append(element('div', 'appca-hidden', {}, live, table)); // a table does not clip its caption
  actions.say = (text) => (live.textContent = text);
  /** @type {Layout | null} */ let shown = null;
  let timer = 0;
  const fill = () => {
    const [{ layout }] = stage.views;
    const { components } = stage.meta;
    if (stage.gone || shown === layout) return;
    shown = layout;
    const { title, panels } = layout;
    const many = `${panels.length} ${panels.length === 1 ? 'panel' : 'panels'}`;
    caption.textContent = `${title}: ${grouped(stage.rows.count)} rows in ${many}`;
    const help = `Arrow keys move between panels, Enter opens one, Escape goes back, plus and minus zoom, A selects a panel's rows, slash finds anything, question mark lists all keys.`;
    stage.hit.setAttribute('aria-label', `${caption.textContent}. ${help}`);
    const lines = fullest(panels)
      .slice(0, LISTED)
      .map((panel) => {
        const names = panel.components.map((i) => components[i].name || components[i].number);
        const share = `${((100 * panel.count) / stage.rows.count).toFixed(1)}%`;
        return line('td', [panel.name, names.join(', '), grouped(panel.count), share]);
      });
    body.replaceChildren(...lines);
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

/** Return the nearest panel in a direction. @param {View} view @param {number} from @param {[number, number]} direction */
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
    if (i !== from && along > 0.2 && cost < least) [best, least] = [i, cost];
  });
  return best;
}

/** @typedef {{choose: (tool: 'pan' | 'lasso' | 'box') => void, tour: () => void, search: () => void, keys: () => void, halt: () => void, go: (target: Target) => void}} Does */

/** @param {Stage} stage @param {Actions} actions @param {Does} does */
export function listenToKeys(stage, actions, does) {
  const { hit } = stage;
  hit.tabIndex = 0;
  hit.setAttribute('role', 'application');
  for (const kind of ['focus', 'blur'])
    hit.addEventListener(kind, () => {
      const focusShown = kind === 'focus' && hit.matches(':focus-visible');
      for (const view of stage.views) view.focusShown = focusShown;
      stage.schedule();
    });
  /** @type {Record<string, (view: View) => void>} */ const plain = {
    '+': (view) => actions.zoom(view, 1.4),
    '=': (view) => actions.zoom(view, 1.4),
    '-': (view) => actions.zoom(view, 1 / 1.4),
    0: (view) => actions.home(view),
    m: () => does.choose('pan'),
    l: () => does.choose('lasso'),
    b: () => does.choose('box'),
    t: () => does.tour(),
    '/': () => does.search(),
    '?': () => does.keys(),
    Enter: (view) => view.focus >= 0 && actions.open(view, view.focus),
    Escape: (view) => escape(stage, actions, view),
    x: (view) => actions.turnAxis(view, 0),
    y: (view) => actions.turnAxis(view, 1),
    a: ({ layout: { panels, rows }, focus }) => {
      const { start, count } = panels[focus] ?? { start: 0, count: 0 };
      if (count) actions.select(rows.subarray(start, start + count));
    },
  };
  hit.addEventListener('keydown', (event) => {
    if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== 'a')) return;
    const view = stage.views[stage.active] ?? stage.views[0];
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const arrow = ARROWS[key];
    const run = plain[key];
    const heard = !event.shiftKey && listenWhileHeld(stage, actions, does.go, key);
    if (!heard && !arrow && !run) return;
    event.preventDefault();
    if (heard) return;
    if (!arrow) run(view);
    else if (event.shiftKey) panView(stage, view, -60 * arrow[0], -60 * arrow[1]);
    else step(stage, actions, view, arrow);
  });
  stage.root.addEventListener('keydown', ({ key, target }) => {
    const there = target === hit || (target instanceof Element && target.matches('.appca-class'));
    if (there && key === 'Delete') actions.leaveOut();
  });
  document.addEventListener('keydown', anywhere, true); // before a menu closes

  /** Handle keys that work anywhere on the page: Escape ends a tour or closes a large panel, unless a menu or text field uses it; "/" and Ctrl+K search the first picture, and "?" lists its keys. @param {KeyboardEvent} event */
  function anywhere(event) {
    const { key, ctrlKey, metaKey } = event;
    const view = stage.views.find((candidate) => candidate.opened);
    if (stage.gone) return document.removeEventListener('keydown', anywhere, true);
    if (key === 'Escape' && (stage.tour || view || stage.held >= 0)) {
      if (document.querySelector(OPEN)) return;
      event.stopPropagation();
      does.halt();
      return escape(stage, actions, view ?? stage.views[0]);
    }
    if (document.querySelector('.appca-explorer') !== stage.root) return;
    const asked = (ctrlKey || metaKey) && key.toLowerCase() === 'k';
    const typing = document.activeElement?.matches(TYPED) || document.querySelector('dialog[open]');
    if (!asked && (typing || !['/', '?'].includes(key))) return;
    event.preventDefault();
    event.stopPropagation();
    if (key === '?') does.keys();
    else does.search();
  }
}

/** While a row is focused, left and right choose one of its nearest rows, Enter goes there, and N selects them all. @param {Stage} stage @param {Actions} actions @param {(target: Target) => void} go @param {string} key @returns {boolean} whether the key was handled */
function listenWhileHeld(stage, actions, go, key) {
  const near = Array.from(stage.held < 0 ? [] : stage.near);
  const [at, step] = [near.indexOf(stage.chosen), ARROWS[key]?.[0] ?? 0];
  if (step && near.length) {
    const next = at < 0 && step < 0 ? near.length - 1 : (at + step + near.length) % near.length;
    stage.chosen = near[next];
    const number = rowNumber(stage.meta, stage.chosen);
    actions.say(`Row ${number}, ${next + 1} of the ${near.length} nearest`);
    stage.schedule();
  } else if (key === 'Enter' && at >= 0) go({ row: stage.chosen });
  else if (key === 'n' && near.length) actions.select([stage.held, ...near]);
  else return false;
  return true;
}

/** @param {Stage} stage @param {Actions} actions @param {View} view @param {[number, number]} direction */
function step(stage, actions, view, direction) {
  const next = neighbour(view, view.opened?.panel ?? view.focus, direction);
  view.focusShown = true;
  view.focus = next;
  if (view.opened) return actions.open(view, next);
  const { name, count } = view.layout.panels[next];
  actions.say(`${name}, ${grouped(count)} rows`);
  const spot = stage.placed.find(({ key }) => key === view.parts[0].base + next);
  const { x, y, w, h } = view.parts[0].rects[next];
  if (!spot || !within(spot.card, view.rect))
    actions.flyTo(view, { ...view.cam, x: x + w / 2, y: y + h / 2 });
  stage.schedule();
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
