/** What can be done with the picture, whoever asks: select, hold, open, turn, zoom, fly and filter. */

import { between, clamp, fitting, holds, toPage, pointToPage } from '../layout/geometry.js';
import { makeView, share } from '../layout/view.js';
import { ease, Morph, placesOf, sine, Tour } from '../motion.js';
import { setAxes } from '../scene/layouts.js';
import { grouped } from '../scene/names.js';
import { panelAt, pick, zoomView } from './gestures.js';

/** @typedef {{x: number, y: number, w: number, h: number, mask: Uint8Array}} Mask */

const FINE = 2; // mask cells a pixel
const SHIFT = 16; // bits of a cell's parts: whole numbers are fast before a loop is compiled, as in the first lasso

/** Fill a polygon, even-odd. @param {[number, number][]} path @returns {Mask} */
export function maskOf(path) {
  const xs = path.map(([x]) => x * FINE);
  const ys = path.map(([, y]) => y * FINE);
  const [x, y] = [Math.floor(Math.min(...xs)), Math.floor(Math.min(...ys))];
  const [w, h] = [Math.ceil(Math.max(...xs)) - x + 1, Math.ceil(Math.max(...ys)) - y + 1];
  /** @type {number[][]} where the path crosses the middle of each line */
  const crossings = Array.from({ length: h }, () => []);
  for (let i = 0, j = path.length - 1; i < path.length; j = i, i += 1) {
    const slope = (xs[j] - xs[i]) / (ys[j] - ys[i]);
    const last = Math.ceil(Math.max(ys[i], ys[j]) - y - 0.5);
    for (let line = Math.ceil(Math.min(ys[i], ys[j]) - y - 0.5); line < last; line += 1)
      crossings[line].push(Math.round(xs[i] + (y + line + 0.5 - ys[i]) * slope - x));
  }
  const mask = new Uint8Array(w * h);
  crossings.forEach((at, line) => {
    if (at.length > 2) at.sort((a, b) => a - b);
    else if (at[0] > at[1]) at.reverse();
    for (let k = 0; k + 1 < at.length; k += 2) mask.fill(1, line * w + at[k], line * w + at[k + 1]);
  });
  return { x, y, w, h, mask };
}

/** Mark the rows whose points lie under the mask. @param {Mask} mask @param {Placed[]} placed @param {Uint8Array} hits one byte a row */
export function markUnder(mask, placed, hits) {
  const [cx, cy] = [(mask.x + mask.w / 2) / FINE, (mask.y + mask.h / 2) / FINE];
  const away = (/** @type {Placed} */ { plot }) =>
    Math.hypot(plot.x + plot.w / 2 - cx, plot.y + plot.h / 2 - cy);
  const shown = placed.filter(({ strength }) => strength >= 0.5).sort((a, b) => away(a) - away(b)); // the loop meets hits and misses before it is compiled, so that it is compiled once
  for (const spot of shown) markIn(mask, spot, hits);
}

/** @param {Mask} mask @param {Placed} placed @param {Uint8Array} hits */
function markIn({ x, y, w, h, mask }, { part, panel, plot, range }, hits) {
  const { xy, rows } = part.layout;
  const { start, count } = panel;
  const [left, top, right, bottom] = [plot.x, plot.y, plot.x + plot.w, plot.y + plot.h].map(
    (at, i) => at * FINE - (i % 2 ? y : x),
  );
  const [x0, y0, x1, y1] = [
    Math.max(0, left),
    Math.max(0, top),
    Math.min(w - 1, right),
    Math.min(h - 1, bottom),
  ]; // beyond the plot nothing is drawn
  if (x0 > x1 || y0 > y1) return;
  const [kx, ky] = [(right - left) / (range[1] - range[0]), (bottom - top) / (range[3] - range[2])];
  const [ox, oy] = [left - range[0] * kx, bottom + range[2] * ky];
  const [low, high, under, over] = [
    Math.ceil((x0 - ox) / kx),
    Math.floor((x1 - ox) / kx),
    Math.ceil((oy - y1) / ky),
    Math.floor((oy - y0) / ky),
  ];
  const [kx1, ky1, ox1, oy1] = [kx, ky, ox, oy].map((value) => Math.round(value * 2 ** SHIFT));
  for (let at = 2 * start, end = at + 2 * count; at < end; at += 2) {
    const px = xy[at];
    if (px < low || px > high) continue;
    const py = xy[at + 1];
    if (
      py >= under &&
      py <= over &&
      mask[((oy1 - py * ky1) >> SHIFT) * w + ((ox1 + px * kx1) >> SHIFT)]
    )
      hits[rows[at >> 1]] = 1;
  }
}

/** @param {Stage} stage @param {Actions} actions @param {Target} target */
export async function fly(stage, actions, target) {
  let [view] = stage.views;
  if (target.layout && target.layout !== view.layout.name) {
    await actions.morph(view, target.layout);
    [view] = stage.views;
  }
  if (target.sought) {
    stage.options.sought = [`${target.sought}`, ...(stage.options.sought ?? [])].slice(0, 12);
    await actions.reopen();
    [view] = stage.views;
    const panel = view.layout.panels.findIndex(
      ({ components }) => `${components}` === `${target.sought}`,
    );
    if (panel >= 0) actions.open(view, panel);
    return;
  }
  if (target.component !== undefined) {
    const { first = view.layout.name } = stage.meta;
    if (view.layout.kind === 'map') await actions.morph(view, first);
    actions.filter({ ...stage.options.filter, components: [target.component] });
    return;
  }
  if (target.code !== undefined) {
    const { codes } = stage.rows;
    actions.select([...codes.keys()].filter((row) => codes[row] === target.code));
    return;
  }
  if (target.panel !== undefined) return actions.open(view, target.panel);
  if (target.row === undefined) return;
  const { layout } = view;
  const point = layout.rows.indexOf(target.row);
  const panel = layout.panels.find(({ start, count }) => point >= start && point < start + count);
  if (!panel) return;
  const seen = view.opened ? undefined : seenFrom(stage, view, panel, point);
  if (seen) actions.flyTo(view, seen.cam);
  else actions.open(view, panel.index);
  if (stage.callbacks.onPoint)
    actions.hold(target.row, seen?.place, seen?.cam); // as a click does
  else actions.select([target.row]);
}

/** Where the camera sees a point of a panel from, and where the point is then. @param {Stage} stage @param {View} view @param {View['layout']['panels'][number]} panel @param {number} point @returns {{cam: Camera, place?: [number, number]}} */
function seenFrom(stage, view, panel, point) {
  const { layout, rect, home, cam: kept } = view;
  const isMap = layout.kind === 'map';
  view.shift = 1;
  stage.tweens.stop('shift');
  const cam = isMap
    ? { ...home, k: home.k * 8 }
    : fitting(view.parts[0].rects[panel.index], rect, 0.3);
  view.cam = cam; // where the row is seen from there
  stage.draw();
  view.cam = kept;
  const spot = stage.placed.find((placed) => placed.view === view && placed.panel === panel);
  if (!spot) return { cam };
  const place = pointToPage(spot, layout.xy[2 * point], layout.xy[2 * point + 1]);
  if (!isMap) return { cam, place };
  const middle = /** @type {[number, number]} */ ([rect.x + rect.w / 2, rect.y + rect.h / 2]);
  cam.x += (place[0] - middle[0]) / cam.k;
  cam.y += (place[1] - middle[1]) / cam.k;
  return { cam, place: middle };
}

const OPEN = 320; // ms
const MORPH = 420;
const TURN = 1400;

class Moves {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {(text: string) => void} tell what happened, for screen readers */
    this.say = () => {};
    /** @type {(() => void)[]} after the views changed */ this.changed = [];
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

  /** Panels move from where they are to where the change puts them. @param {View} view @param {() => void} change */
  shift(view, change) {
    const { stage } = this;
    this.endTour();
    stage.tweens.stop('shift');
    view.hold();
    change();
    stage.tweens.start(
      'shift',
      OPEN,
      (t) => {
        view.shift = ease(t);
      },
      () => {
        view.from = null;
      },
    );
    this.after();
  }

  /** Turn from the opened panel to another; without `t` it plays to the end. @param {View} view @param {number} to @param {number} [t] */
  tour(view, to, t) {
    const { stage } = this;
    if (!view.opened || view.opened.panel === to) return;
    if (stage.tour?.view !== view || stage.tour.b.index !== to) {
      view.opened.range = view.layout.panels[view.opened.panel].extent;
      stage.tour = new Tour(stage, view, view.opened.panel, to);
    }
    const { tour } = stage;
    stage.frame = '';
    stage.tweens.stop('tour');
    const from = tour.t;
    if (t !== undefined) {
      tour.t = clamp(t, 0, 1);
      stage.moved();
    } else {
      stage.tweens.start(
        'tour',
        TURN * (1 - from),
        (share) => {
          tour.t = from + (1 - from) * sine(share);
        },
        () => this.arrive(view, to),
      );
      stage.moved();
      this.say(`${tour.a.name} turns into ${tour.b.name}`);
    }
  }

  /** The tour is over: its last frame is the other panel. @param {View} view @param {number} to */
  arrive(view, to) {
    const before = /** @type {import('../layout/view.js').Opened} */ (view.opened);
    const large = /** @type {Rect} */ (before.rects.get(before.panel));
    this.shift(view, () => view.open(to));
    view.from?.delete(before.panel);
    view.from?.set(to, {
      card: large,
      range: view.layout.panels[to].extent,
      strength: 1,
      open: true,
    });
  }

  /** Stop a turn where it is; whether there was one. */
  pauseTour() {
    const { tweens } = this.stage;
    const turns = tweens.running.has('tour');
    tweens.stop('tour');
    if (turns) this.stage.settleSoon();
    return turns;
  }

  endTour() {
    this.stage.tour = null;
    this.stage.tweens.stop('tour');
  }

  after() {
    this.stage.moved();
    this.changed.forEach((tell) => tell());
  }

  /** Show another layout in a view; the points travel. @param {View} view @param {string} name */
  async morph(view, name) {
    const { stage } = this;
    if (!stage.meta.layouts[name] || view.layout.name === name) return;
    const made = await makeView(stage, name);
    if (stage.gone || !stage.views.includes(view)) return;
    this.endTour();
    this.replace(view, made);
    this.say(`${made.layout.title}: ${made.layout.panels.length} panels`);
  }

  /** Put another view in the place of one, or the same after a change; its points travel there, if anything may move. @param {View} view @param {View} made @param {() => void} [change] */
  replace(view, made, change) {
    const { stage } = this;
    const old = stage.tweens.reduced ? null : placesOf(stage, view);
    change?.();
    stage.tweens.stop('morph');
    stage.views[stage.views.indexOf(view)] = made;
    share(stage);
    stage.gpu.prune(new Set(stage.views.flatMap(({ parts }) => parts.map(({ layout }) => layout))));
    stage.morph?.free();
    const morph = old && new Morph(stage, made, old);
    stage.morph = morph;
    stage.tweens.start(
      'morph',
      MORPH,
      (t) => {
        if (morph) morph.t = ease(t);
      },
      () => {
        stage.morph = null;
        morph?.free();
      },
    );
    this.after();
  }

  /** Fly to a camera. @param {View} view @param {Camera} cam */
  flyTo(view, cam) {
    const from = { ...view.cam };
    this.stage.tweens.start('fly', OPEN, (t) => (view.cam = between(from, cam, ease(t))));
    this.stage.moved();
  }

  /** All panels in view. @param {View} view */
  home(view) {
    if (view.opened) this.close(view);
    this.flyTo(view, view.home);
  }

  /** @param {View} view @param {number} factor about the middle */
  zoom(view, factor) {
    const { x, y, w, h } = view.rect;
    zoomView(this.stage, view, x + w / 2, y + h / 2, factor);
  }
}

const TELL = 250; // ms after a click until the host hears of it: a double click opens a panel
const ANSWER = 5000; // ms
const STEP = 8; // px in which a place that is seen is looked for

export class Actions extends Moves {
  /** @param {Stage} stage */
  constructor(stage) {
    super(stage);
    /** @type {(at: [number, number] | null) => void} the hand rests, or moved on */
    this.rest = () => {};
    this.told = -1; // the row that the host knows to be held
    this.asked = 0; // ms until which the host's answer about it is awaited
    this.telling = 0;
    /** @type {[View, Camera] | null} where the picture was before it came out from below the host */
    this.back = null;
  }

  /** Hold a row, or let go with -1; the host hears of it unless a double click takes it back. @param {number} row @param {[number, number]} [place] of the row @param {Camera} [cam] to which the picture is flying */
  hold(row, place, cam) {
    const { stage } = this;
    if (row === stage.held) return;
    const { held, near = [] } = stage.options; // what the host said last
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
    this.say(row < 0 ? 'No row held' : `Row ${grouped(row)} held`);
    stage.frame = ''; // pictures of its nearest rows may be on other sheets
    stage.settleSoon();
  }

  /** Move a place of the picture that the host covers, such as by a sheet on a phone, to where it is seen. @param {number} x @param {number} y @param {Camera} [goal] of a flight */
  uncover(x, y, goal) {
    const { root } = this.stage;
    const { left, top } = root.getBoundingClientRect();
    const isFree = (/** @type {number} */ px, /** @type {number} */ py) =>
      root.contains(document.elementFromPoint(left + px, top + py));
    const view = this.stage.viewAt(x);
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

  /** Take over from the host what is held, unless a hand has held another row since. @param {Options} options */
  follow({ held, near = [] }) {
    const { stage } = this;
    if (held === undefined || (held !== stage.held && performance.now() < this.asked)) return;
    this.asked = 0;
    clearTimeout(this.telling); // the host has just said otherwise
    [stage.held, stage.near, this.told] = [held, near, held];
    stage.frame = '';
  }

  /** @param {View} view @param {[number, number][]} path @param {How} how */
  lasso(view, path, how) {
    const { stage } = this;
    const hits = stage.rows.bytes();
    markUnder(
      maskOf(path),
      stage.placed.filter((spot) => spot.view === view),
      hits,
    );
    stage.rows.apply(hits, how);
    this.selected();
  }

  /** @param {number} x @param {number} y @param {How} how */
  click(x, y, how) {
    const { stage } = this;
    const hit = pick(stage, x, y);
    const spot = panelAt(stage, x, y);
    const axis = spot && axisAt(spot, x, y);
    const picture = spot ? undefined : componentAt(stage.viewAt(x), x, y);
    if (spot && axis !== undefined) this.turnAxis(spot.view, axis);
    else if (picture !== undefined) this.toggleComponent(picture);
    else if (spot && spot.view.opened && !spot.open) this.tour(spot.view, spot.panel.index);
    else if (hit && how === 'replace' && stage.callbacks.onPoint)
      this.hold(hit.row === stage.held ? -1 : hit.row, [x, y]);
    else if (hit) this.select([hit.row], how);
    else if (how === 'replace' && stage.held >= 0) this.hold(-1, [x, y]);
    else if (how === 'replace' && stage.rows.selected) this.select([]);
  }

  /** Select rows and tell the host. @param {Iterable<number>} rows @param {How} [how] */
  select(rows, how = 'replace') {
    this.stage.rows.applyList(rows, how);
    this.selected();
  }

  /** What the component at a place was in the picture before. @param {number} x @param {number} y */
  cameAt(x, y) {
    const picture = componentAt(this.stage.viewAt(x), x, y);
    return (picture !== undefined && this.stage.options.came?.[picture]) || '';
  }

  /** Show the panel's next component on an axis of the opened panel. @param {View} view @param {number} axis */
  turnAxis(view, axis) {
    const panel = view.opened && view.layout.panels[view.opened.panel];
    const others = panel?.components.filter((k) => k !== panel.axes[1 - axis]) ?? [];
    if (!panel || others.length < 2) return;
    const axes = [...panel.axes];
    axes[axis] = others[(others.indexOf(axes[axis]) + 1) % others.length];
    setAxes(this.stage.scene, view.layout, panel, axes);
    view.open(panel.index);
    this.say(
      `Component ${this.stage.meta.components[axes[axis]].number} on the ${axis ? 'vertical' : 'horizontal'} axis`,
    );
    this.after();
  }

  /** Show only panels with a component, or all again. @param {number} component */
  toggleComponent(component) {
    const { components = [], ...filter } = this.stage.options.filter ?? {};
    this.filter({
      ...filter,
      components: components.includes(component)
        ? components.filter((k) => k !== component)
        : [...components, component],
    });
  }

  /** The selection changed here: show it and tell the host. */
  selected() {
    const { stage } = this;
    const { selected } = stage.rows;
    stage.settleSoon();
    this.say(selected ? `${grouped(selected)} rows selected` : 'Nothing selected');
    stage.callbacks.onSelect?.(stage.rows.packed, selected);
  }

  /** Show only what a filter keeps. @param {Filter} filter */
  filter(filter) {
    const { stage } = this;
    const others =
      String(filter.components ?? '') !== String(stage.options.filter?.components ?? '');
    stage.options.filter = filter;
    for (const view of stage.views) view.filter = filter;
    const { classes, certainty } = filter;
    const kept = classes?.length ? new Set(classes) : null;
    const { codes } = stage.rows;
    const { doubt } = stage.scene;
    stage.rows.filter(
      (row) => (!kept || kept.has(codes[row])) && (doubt[row] ?? 255) >= 255 * (certainty ?? 0),
    );
    stage.frame = '';
    this.after();
    if (others) this.reopen();
  }

  /** Give panels to what is looked for among the gathered subspaces. */
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

/** The axis whose name is at a place of the opened panel, where more components could stand on it. @param {Placed} spot @param {number} x @param {number} y */
function axisAt({ open, panel, card, plot }, x, y) {
  if (!open || panel.components.length < 3) return undefined;
  return y < plot.y && x < card.x + 160
    ? 1
    : y > plot.y + plot.h && x > card.x + card.w - 160
      ? 0
      : undefined;
}

/** The component whose picture on the diagonal is at a place. @param {View} view @param {number} x @param {number} y */
function componentAt(view, x, y) {
  if (view.opened) return undefined;
  const { diagonal } = view.arrangement;
  return diagonal.find(({ rect }) => holds(toPage(view.cam, view.rect, rect), x, y))?.component;
}
