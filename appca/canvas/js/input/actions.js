/** Actions on the picture: select, focus, open, turn, zoom, fly and filter. */

import * as geometry from '../layout/geometry.js';
import { makeView, share } from '../layout/view.js';
import { ease, Morph, placesOf, sine, Tour } from '../motion.js';
import { setAxes } from '../scene/layouts.js';
import { grouped, rowNumber } from '../scene/names.js';
import { panelAt, pick, zoomView } from './gestures.js';
import { BUDGET } from '../stage.js';

/** @typedef {{x: number, y: number, w: number, h: number, mask: Uint8Array}} Mask */

const FINE = 2; // mask cells per pixel
const SHIFT = 16; // fraction bits of a cell coordinate: integers are fast even before a loop is compiled, as in the first lasso

/** Fill a polygon, even-odd. @param {[number, number][]} path @returns {Mask} */
export function maskOf(path) {
  const [xs, ys] = [0, 1].map((axis) => path.map((at) => at[axis] * FINE));
  const [x, y] = [xs, ys].map((all) => Math.floor(Math.min(...all)));
  const [w, h] = [Math.ceil(Math.max(...xs)) - x + 1, Math.ceil(Math.max(...ys)) - y + 1];
  /** @type {number[][]} crossings of the path with the middle of each line */
  const crossings = Array.from({ length: h }, () => []);
  for (let i = 0, j = path.length - 1; i < path.length; j = i, i += 1) {
    const slope = (xs[j] - xs[i]) / (ys[j] - ys[i]);
    const last = Math.ceil(Math.max(ys[i], ys[j]) - y - 0.5);
    for (let line = Math.ceil(Math.min(ys[i], ys[j]) - y - 0.5); line < last; line += 1)
      crossings[line].push(Math.round(xs[i] + (y + line + 0.5 - ys[i]) * slope - x));
  }
  const mask = new Uint8Array(w * h);
  crossings.forEach((at, line) => {
    at.sort((a, b) => a - b);
    for (let k = 0; k + 1 < at.length; k += 2) mask.fill(1, line * w + at[k], line * w + at[k + 1]);
  });
  return { x, y, w, h, mask };
}

/** Mark the rows whose points are under the mask. @param {Mask} mask @param {Placed[]} placed @param {Uint8Array} hits one byte per row */
export function markUnder(mask, placed, hits) {
  const [cx, cy] = [(mask.x + mask.w / 2) / FINE, (mask.y + mask.h / 2) / FINE];
  const away = (/** @type {Placed} */ { plot }) =>
    Math.hypot(plot.x + plot.w / 2 - cx, plot.y + plot.h / 2 - cy);
  const shown = placed.filter(({ strength }) => strength >= 0.5).sort((a, b) => away(a) - away(b)); // central panels first: the loop then meets hits and misses before it is compiled, and is compiled only once
  for (const spot of shown) markIn(mask, spot, hits);
}

/** @param {Mask} mask @param {Placed} placed @param {Uint8Array} hits */
function markIn({ x, y, w, h, mask }, { part, panel: { start, count }, plot, range }, hits) {
  const { xy, rows } = part.layout;
  const inMask = geometry.box(plot.x * FINE - x, plot.y * FINE - y, plot.w * FINE, plot.h * FINE);
  const { left, bottom, kx, ky } = geometry.scaleOf({ plot: inMask, range });
  const [x0, x1] = [Math.max(0, inMask.x), Math.min(w - 1, inMask.x + inMask.w)]; // nothing is drawn outside the plot
  const [y0, y1] = [Math.max(0, inMask.y), Math.min(h - 1, inMask.y + inMask.h)];
  if (x0 > x1 || y0 > y1) return;
  const [low, high] = [Math.ceil((x0 - left) / kx), Math.floor((x1 - left) / kx)];
  const [under, over] = [Math.ceil((bottom - y1) / ky), Math.floor((bottom - y0) / ky)];
  const [kx1, ky1, ox1, oy1] = [kx, ky, left, bottom].map((px) => Math.round(px * 2 ** SHIFT));
  for (let at = 2 * start, end = at + 2 * count; at < end; at += 2) {
    const px = xy[at];
    if (px < low || px > high) continue;
    const py = xy[at + 1];
    if (py < under || py > over) continue;
    if (mask[((oy1 - py * ky1) >> SHIFT) * w + ((ox1 + px * kx1) >> SHIFT)])
      hits[rows[at >> 1]] = 1;
  }
}

/** @param {Stage} stage @param {Actions} actions @param {Target} target */
export async function fly(stage, actions, { layout: name, sought, component, code, panel, row }) {
  const { rows, options, callbacks, meta } = stage;
  const shown = stage.views.findIndex(({ layout }) => layout.name === name);
  const at = Math.max(0, shown);
  if (name && shown < 0) await actions.morph(stage.views[0], name);
  if (sought) {
    options.sought = [`${sought}`, ...(options.sought ?? [])].slice(0, 12);
    await actions.reopen();
    const { panels } = stage.views[at].layout;
    panel = panels.find(({ components }) => `${components}` === `${sought}`)?.index;
  }
  const view = stage.views[at];
  const { layout } = view;
  if (component !== undefined) {
    if (layout.kind === 'map') await actions.morph(view, meta.first ?? layout.name);
    actions.filter({ ...options.filter, components: [component] });
  } else if (code !== undefined)
    actions.select([...rows.codes.keys()].filter((one) => rows.codes[one] === code));
  else if (panel !== undefined) actions.open(view, panel);
  else if (row !== undefined) {
    const point = layout.rows.indexOf(row);
    const home = layout.panels.find(({ start, count }) => point >= start && point < start + count);
    if (!home) return;
    const seen = view.opened ? undefined : seenFrom(stage, view, home, point);
    if (seen) actions.flyTo(view, seen.cam);
    else actions.open(view, home.index);
    if (callbacks.onPoint)
      actions.hold(row, seen?.place, seen?.cam); // as a click does
    else actions.select([row]);
  }
}

/** Return the camera that shows a point of a panel, and the point's place in its view. @param {Stage} stage @param {View} view @param {Panel} panel @param {number} point @returns {{cam: Camera, place?: [number, number]}} */
function seenFrom(stage, view, panel, point) {
  const { layout, rect, home, cam: kept, parts } = view;
  const isMap = layout.kind === 'map';
  view.shift = 1;
  stage.tweens.running.delete('shift');
  const cam = isMap
    ? { ...home, k: home.k * 8 }
    : geometry.fitting(parts[0].rects[panel.index], rect, 0.3);
  view.cam = cam; // computes the row's place in that view
  const spot = geometry.placeView(view).find((placed) => placed.panel === panel);
  view.cam = kept;
  if (!spot) return { cam };
  const place = geometry.pointToPage(spot, layout.xy[2 * point], layout.xy[2 * point + 1]);
  if (!isMap) return { cam, place };
  const [x, y] = [rect.x + rect.w / 2, rect.y + rect.h / 2];
  cam.x += (place[0] - x) / cam.k;
  cam.y += (place[1] - y) / cam.k;
  return { cam, place: [x, y] };
}

const [OPEN, MORPH, TURN] = [320, 300, 1400]; // ms
const TELL = 250; // ms from a click until the host receives it, because a double click opens a panel
const ANSWER = 5000; // ms
const STEP = 8; // px between the places tried

export class Actions {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {(text: string) => void} announce an event to screen readers */
    this.say = () => {};
    /** @type {(() => void)[]} called after a change of the views */ this.changed = [];
    /** @type {(at: [number, number] | null) => void} place at which the pointer rests, or null while it moves */
    this.rest = () => {};
    this.told = -1; // last focused row sent to the host
    this.asked = 0; // time in ms until which to wait for the host's answer about this row
    this.telling = 0;
    /** @type {[View, Camera] | null} view and camera before the picture moved out from under the host's sheet */
    this.back = null;
  }

  /** @param {View} view @param {number} panel @param {Part} [part] */
  open(view, panel, part) {
    if (part?.inset) return this.morph(view, part.layout.name);
    if (view.layout.kind === 'map') return;
    this.shift(view, () => view.open(panel));
    const { name, count } = view.layout.panels[panel];
    this.say(`${name} opened, ${grouped(count)} rows`);
  }

  /** @param {View} view */
  close(view) {
    if (!view.opened) return;
    this.endTour();
    this.shift(view, () => (view.opened = null));
    this.say('All panels');
  }

  /** Move panels from their places to those after the change. @param {View} view @param {() => void} change */
  shift(view, change) {
    const { stage } = this;
    this.endTour();
    stage.tweens.running.delete('shift');
    view.hold();
    change();
    const step = (/** @type {number} */ t) => (view.shift = ease(t));
    stage.tweens.start('shift', OPEN, step, () => (view.from = null));
    this.after();
  }

  /** Turn from the opened panel to another; without `t`, play to the end. @param {View} view @param {number} to @param {number} [t] */
  tour(view, to, t) {
    const { stage } = this;
    if (!view.opened || view.opened.panel === to) return;
    if (stage.tour?.view !== view || stage.tour.b.index !== to) {
      view.opened.range = view.layout.panels[view.opened.panel].extent;
      stage.tour = new Tour(stage, view, view.opened.panel, to);
    }
    const { tour } = stage;
    const from = tour.t;
    stage.frame = '';
    stage.tweens.running.delete('tour');
    stage.moved();
    if (t !== undefined) {
      tour.t = geometry.clamp(t, 0, 1);
      return;
    }
    const step = (/** @type {number} */ share) => (tour.t = from + (1 - from) * sine(share));
    stage.tweens.start('tour', TURN * (1 - from), step, () => this.arrive(view, to));
    this.say(`${tour.a.name} turns into ${tour.b.name}`);
  }

  /** End the tour: the other panel becomes the opened one. @param {View} view @param {number} to */
  arrive(view, to) {
    const before = /** @type {import('../layout/view.js').Opened} */ (view.opened);
    const large = /** @type {Rect} */ (before.rects.get(before.panel));
    this.shift(view, () => view.open(to));
    view.from?.delete(before.panel);
    const range = view.layout.panels[to].extent;
    view.from?.set(to, { card: large, range, strength: 1, open: true });
  }

  /** Stop a turn at its position; return whether there was one. */
  pauseTour() {
    const { tweens } = this.stage;
    const turns = tweens.running.has('tour');
    tweens.running.delete('tour');
    if (turns) this.stage.settleSoon();
    return turns;
  }

  endTour() {
    this.stage.tour = null;
    this.stage.tweens.running.delete('tour');
  }

  after() {
    this.stage.moved();
    this.changed.forEach((tell) => tell());
  }

  /** Show another layout in a view; the points move there. @param {View} view @param {string} name */
  async morph(view, name) {
    const { stage } = this;
    if (!stage.meta.layouts[name] || view.layout.name === name) return;
    const made = await makeView(stage, name);
    if (stage.gone || !stage.views.includes(view)) return;
    this.endTour();
    this.replace(view, made);
    this.say(`${made.layout.title}: ${made.layout.panels.length} panels`);
  }

  /** Replace a view by another; its points move there, unless motion is reduced or the fit of a coarse picture would wait for it. @param {View} view @param {View} made */
  replace(view, made) {
    const { stage } = this;
    const jumps = stage.tweens.reduced.matches || (stage.budget < BUDGET && stage.options.coarse);
    const old = jumps ? null : placesOf(stage, view);
    stage.tweens.running.delete('morph');
    stage.views[stage.views.indexOf(view)] = made;
    share(stage);
    stage.gpu.prune(new Set(stage.views.flatMap(({ parts }) => parts.map(({ layout }) => layout))));
    stage.morph?.made.free();
    const morph = (stage.morph = old && new Morph(stage, made, old));
    const end = () => {
      stage.morph = null;
      morph?.made.free();
    };
    if (morph) stage.tweens.start('morph', MORPH, (t) => (morph.t = ease(t)), end);
    this.after();
  }

  /** Fly to a camera. @param {View} view @param {Camera} cam */
  flyTo(view, cam) {
    const from = { ...view.cam };
    this.stage.tweens.start('fly', OPEN, (t) => (view.cam = geometry.between(from, cam, ease(t))));
    this.stage.moved();
  }

  /** Show all panels. @param {View} view */
  home(view) {
    if (view.opened) this.close(view);
    this.flyTo(view, view.home);
  }

  /** @param {View} view @param {number} factor about the middle */
  zoom(view, factor) {
    const { x, y, w, h } = view.rect;
    zoomView(this.stage, view, x + w / 2, y + h / 2, factor);
  }

  /** Focus a row, or remove the focus with -1; the host is notified unless a double click follows. @param {number} row @param {[number, number]} [place] of the row @param {Camera} [cam] to which the picture is flying */
  hold(row, place, cam) {
    const { stage } = this;
    if (row === stage.held) return;
    const { held, near = [] } = stage.options; // the host's last options
    [stage.held, stage.near] = [row, row === held ? near : []];
    this.asked = performance.now() + ANSWER;
    clearTimeout(this.telling);
    const tell = () => {
      if (this.told !== row) stage.callbacks.onPoint?.(row);
      this.told = row;
      if (row >= 0 && place) this.uncover(...place, cam);
    };
    this.telling = setTimeout(tell, place ? TELL : 0);
    if (row < 0 && this.back) this.flyTo(...this.back);
    if (row < 0) this.back = null;
    this.say(row < 0 ? 'No row focused' : `Row ${rowNumber(stage.meta, row)} focused`);
    stage.frame = ''; // pictures of its nearest rows may be on other sheets
    stage.settleSoon();
  }

  /** Move a place of the picture that the host covers, such as by a sheet on a phone, into view. @param {number} x @param {number} y @param {Camera} [goal] of a flight */
  uncover(x, y, goal) {
    const { root } = this.stage;
    const { left, top } = root.getBoundingClientRect();
    const isFree = (/** @type {number} */ px, /** @type {number} */ py) =>
      root.contains(document.elementFromPoint(left + px, top + py));
    const view = this.stage.viewAt(x, y);
    if (view.opened || isFree(x, y)) return;
    let [freeX, freeY] = [x, y];
    while (freeY > 0 && !isFree(x, freeY)) freeY -= STEP;
    while (freeX > 0 && !isFree(freeX, y)) freeX -= STEP;
    const cam = { ...(goal ?? view.cam) };
    this.back ??= [view, { ...cam }];
    if (freeY > 0) cam.y += (y - freeY / 2) / cam.k;
    else if (freeX > 0) cam.x += (x - freeX / 2) / cam.k;
    this.flyTo(view, cam);
  }

  /** Adopt the host's focused row, unless the user has focused another since. @param {Options} options */
  follow({ held, near = [] }) {
    const { stage } = this;
    if (held === undefined || (held !== stage.held && performance.now() < this.asked)) return;
    this.asked = 0;
    clearTimeout(this.telling); // the host's row replaces it
    [stage.held, stage.near, this.told] = [held, near, held];
    stage.frame = '';
  }

  /** @param {View} view @param {[number, number][]} path @param {How} how */
  lasso(view, path, how) {
    const { rows, placed } = this.stage;
    const hits = rows.bytes();
    const shown = placed.filter((spot) => spot.view === view);
    markUnder(maskOf(path), shown, hits);
    rows.apply(hits, how);
    this.selected();
  }

  /** @param {number} x @param {number} y @param {How} how */
  click(x, y, how) {
    const { stage } = this;
    const [hit, spot] = [pick(stage, x, y), panelAt(stage, x, y)];
    const axis = spot && axisAt(spot, x, y);
    const picture = spot ? undefined : componentAt(stage.viewAt(x, y), x, y);
    const plain = how === 'replace';
    if (spot && axis !== undefined) this.turnAxis(spot.view, axis);
    else if (picture !== undefined) {
      const { filter } = stage.options; // show only panels with this component, or all again
      this.filter({ ...filter, components: flipped(filter?.components, picture) });
    } else if (spot && spot.view.opened && !spot.open) this.tour(spot.view, spot.panel.index);
    else if (hit && plain && stage.callbacks.onPoint)
      this.hold(hit.row === stage.held ? -1 : hit.row, [x, y]);
    else if (hit) this.select([hit.row], how);
    else if (plain && stage.held >= 0) this.hold(-1, [x, y]);
    else if (plain && stage.rows.selected) this.select([]);
  }

  /** Select rows and notify the host. @param {Iterable<number>} rows @param {How} [how] */
  select(rows, how = 'replace') {
    this.stage.rows.applyList(rows, how);
    this.selected();
  }

  /** Ask the host to leave out the class shown alone, else the selected rows. */
  leaveOut() {
    const { only, rows, colouring, callbacks } = this.stage;
    if (only >= 0) this.select([...rows.codes.keys()].filter((row) => rows.codes[row] === only));
    callbacks.onAct?.('leave_out', colouring?.names?.[only] ?? '');
  }

  /** Describe the origin of the component at a place. @param {number} x @param {number} y */
  cameAt(x, y) {
    const picture = componentAt(this.stage.viewAt(x, y), x, y);
    return (picture !== undefined && this.stage.options.came?.[picture]) || '';
  }

  /** Show the panel's next component on an axis of the opened panel. @param {View} view @param {number} axis */
  turnAxis(view, axis) {
    const { scene, meta } = this.stage;
    const panel = view.opened && view.layout.panels[view.opened.panel];
    const others = panel?.components.filter((k) => k !== panel.axes[1 - axis]) ?? [];
    if (!panel || others.length < 2) return;
    const next = others[(others.indexOf(panel.axes[axis]) + 1) % others.length];
    setAxes(scene, view.layout, panel, panel.axes.with(axis, next));
    view.open(panel.index);
    const along = axis ? 'vertical' : 'horizontal';
    this.say(`Component ${meta.components[next].number} on the ${along} axis`);
    this.after();
  }

  /** Show a selection made here, and notify the host. */
  selected() {
    const { stage } = this;
    const { selected } = stage.rows;
    stage.settleSoon();
    this.say(selected ? `${grouped(selected)} rows selected` : 'Nothing selected');
    stage.callbacks.onSelect?.(stage.rows.packed, selected);
  }

  /** Show only rows that pass a filter. @param {Filter} filter */
  filter(filter) {
    const { stage } = this;
    const others =
      String(filter.components ?? '') !== String(stage.options.filter?.components ?? '');
    stage.options.filter = filter;
    for (const view of stage.views) view.filter = filter;
    const { classes, certainty = 0 } = filter;
    const kept = classes?.length ? new Set(classes) : null;
    const { codes } = stage.rows;
    const { doubt } = stage.scene;
    const least = 255 * certainty;
    stage.rows.filter((row) => (!kept || kept.has(codes[row])) && (doubt[row] ?? 255) >= least);
    stage.frame = '';
    this.after();
    if (others) this.reopen();
  }

  /** Open panels for gathered subspaces that match the search. */
  async reopen() {
    const { stage } = this;
    for (const view of stage.views) {
      if (!view.layout.panels.some(({ other }) => other)) continue;
      const made = await makeView(stage, view.layout.name);
      if (stage.views.includes(view) && made.layout.panels.length !== view.layout.panels.length)
        this.replace(view, made);
    }
  }
}

/** Return a list with an item added, or removed if it was there. @template T @param {T[] | undefined} list @param {T} item */
export const flipped = (list = [], item) =>
  list.includes(item) ? list.filter((other) => other !== item) : [...list, item];

/** Return the axis whose name is at a place of the opened panel, if it can show other components. @param {Placed} spot @param {number} x @param {number} y */
function axisAt({ open, panel, card, plot }, x, y) {
  if (!open || panel.components.length < 3) return undefined;
  if (y < plot.y && x < card.x + 160) return 1;
  return y > plot.y + plot.h && x > card.x + card.w - 160 ? 0 : undefined;
}

/** Return the component whose picture on the diagonal is at a place. @param {View} view @param {number} x @param {number} y */
function componentAt({ opened, arrangement, cam, rect: view }, x, y) {
  const at = arrangement.diagonal.find(({ rect }) =>
    geometry.holds(geometry.toPage(cam, view, rect), x, y),
  );
  return opened ? undefined : at?.component;
}
