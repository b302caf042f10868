/** Movement of points to another layout, turns to a neighbouring panel, and the tour of the largest panels. */

import { vertices } from './gl/gpu.js';
import { drawImages, drawPoints, imageSize, pointsIn } from './gl/points.js';
import { clamp, density, mix, placeView, scaleOf, texels } from './layout/geometry.js';
import { neighbours } from './layout/view.js';
import { fullest } from './scene/layouts.js';

/** Approximate the easing cubic-bezier(.3, 0, .1, 1). @param {number} t */
export const ease = (t) => 1 - (1 - t) ** 3 * (1 - 0.6 * t * (1 - t));

/** @param {number} t */
export const sine = (t) => (1 - Math.cos(Math.PI * t)) / 2;

export class Tweens {
  /** @type {Map<string, {start: number, ms: number, step: (t: number) => void, done?: () => void}>} */
  running = new Map();
  reduced = matchMedia('(prefers-reduced-motion: reduce)'); // movements end at once

  /** @param {string} name @param {number} ms @param {(t: number) => void} step from 0 to 1 @param {() => void} [done] */
  start(name, ms, step, done) {
    this.running.set(name, { start: performance.now(), ms, step, done });
    if (this.reduced.matches) return this.tick(Infinity, name);
    step(0);
  }

  get moving() {
    return this.running.size > 0;
  }

  /** @param {number} now @param {string} [only] name of a single movement */
  tick(now, only) {
    for (const [name, { start, ms, step, done }] of [...this.running]) {
      if (only && name !== only) continue;
      const t = clamp((now - start) / Math.max(1, ms), 0, 1);
      if (t >= 1) this.running.delete(name);
      step(t);
      if (t >= 1) done?.();
    }
  }
}

/** @typedef {{rows: Uint32Array, xy: Float32Array}} Places rows and where they are on the page */

const MOST_TRAVELLING = 70000; // maximum number of points that move

/** Return the first points of panels: rows, places on the page and, if they move, raw scores and panels. @param {Placed[]} placed @param {number} share of each panel's points */
function pointsOf(placed, share, travelling = true) {
  const many = placed.map(({ panel: { count } }) => Math.ceil(count * share));
  const total = many.reduce((sum, count) => sum + count, 0);
  const [rows, xy] = [new Uint32Array(total), new Float32Array(2 * total)];
  const moved = travelling ? total : 0;
  const [panels, raw] = [new Uint16Array(moved), new Int16Array(2 * moved)];
  let at = 0;
  placed.forEach((spot, p) => {
    const { layout } = spot.part;
    const { left, bottom, kx, ky } = scaleOf(spot);
    const from = spot.panel.start;
    const end = from + many[p];
    rows.set(layout.rows.subarray(from, end), at);
    if (travelling) raw.set(layout.xy.subarray(2 * from, 2 * end), 2 * at);
    if (travelling) panels.fill(spot.key, at, at + many[p]);
    for (let i = from, to = 2 * at; i < end; i += 1, to += 2) {
      xy[to] = left + layout.xy[2 * i] * kx;
      xy[to + 1] = bottom - layout.xy[2 * i + 1] * ky;
    }
    at += many[p];
  });
  return { rows, raw, panels, xy };
}

/** Return the current places of a view's points, also during a morph. @param {Stage} stage @param {View} view @returns {Places} */
export function placesOf({ morph }, view) {
  const placed = placeView(view).filter(({ part }) => !part.inset);
  return morph?.view === view ? morph.now() : pointsOf(placed, 1, false);
}

/** Return the nearest old place of each new place's row, as [x, y, known] per point. @param {Uint32Array} rows of the new places @param {Float32Array} to @param {Places} old @param {number} count of rows in the data */
export function origins(rows, to, old, count) {
  const first = new Int32Array(count).fill(-1);
  const next = new Int32Array(rows.length);
  const from = new Float32Array(3 * rows.length);
  for (let i = 0; i < rows.length; i += 1) {
    next[i] = first[rows[i]];
    first[rows[i]] = i;
    from[3 * i] = to[2 * i]; // until an old place is found
    from[3 * i + 1] = to[2 * i + 1];
  }
  const best = new Float32Array(rows.length).fill(Infinity);
  for (let o = 0; o < old.rows.length; o += 1) {
    const [x, y] = [old.xy[2 * o], old.xy[2 * o + 1]];
    for (let i = first[old.rows[o]] ?? -1; i >= 0; i = next[i]) {
      const far = (x - to[2 * i]) ** 2 + (y - to[2 * i + 1]) ** 2;
      if (far >= best[i]) continue;
      best[i] = far;
      from[3 * i] = x;
      from[3 * i + 1] = y;
      from[3 * i + 2] = 1;
    }
  }
  return from;
}

export class Morph {
  /** @param {Stage} stage @param {View} view already with its new layout @param {Places} old */
  constructor(stage, view, old) {
    this.view = view;
    this.t = 0;
    const placed = placeView(view);
    const share = Math.min(1, MOST_TRAVELLING / Math.max(1, pointsIn(placed)));
    const { rows, raw, panels, xy } = pointsOf(placed, share);
    this.rows = rows;
    this.to = xy;
    this.from = origins(rows, xy, old, stage.rows.count);
    const { gl } = stage.gpu;
    this.made = vertices(gl, { 0: [raw, 2], 1: [rows, 1], 2: [panels, 1], 3: [this.from, 3] });
  }

  /** @returns {Places} */
  now() {
    const xy = this.to.map((value, i) => mix(this.from[3 * (i >> 1) + (i & 1)], value, this.t));
    return { rows: this.rows, xy };
  }

  /** @param {Stage} stage @param {Look} look */
  draw(stage, look) {
    const counts = [this.rows.length];
    drawPoints(stage.gpu, look, { ...this.made, base: 0, mode: 1, t: this.t, firsts: [0], counts });
  }
}

/** @typedef {{basis: number[], x: number[], y: number[]}} Frame axes over at most four components */

/** @param {number[]} from components of x and y @param {number[]} to @param {number} t 0 to 1 @returns {Frame} */
export function frameAt(from, to, t) {
  const basis = [...new Set([...from, ...to])];
  const unit = (/** @type {number} */ component) =>
    [0, 1, 2, 3].map((i) => (basis[i] === component ? 1 : 0));
  const turned = (/** @type {number} */ axis, /** @type {number} */ share) => {
    const [p, q] = [unit(from[axis]), unit(to[axis])];
    const angle = (clamp(share, 0, 1) * Math.PI) / 2;
    if (angle === 0 || from[axis] === to[axis]) return p;
    return share >= 1 ? q : p.map((value, i) => Math.cos(angle) * value + Math.sin(angle) * q[i]);
  };
  const crossed = from[0] === to[1] ? -1 : from[1] === to[0] ? 1 : 0;
  if (crossed && basis.length === 3 && t > 0 && t < 1) {
    const [x, y] = from.map((axis) => around(unit(axis), crossed * t));
    return { basis, x, y };
  }
  const apart = basis.length === 4; // one after the other
  return { basis, x: turned(0, apart ? 2 * t : t), y: turned(1, apart ? 2 * t - 1 : t) };
}

/** Rotate by 120 degrees about the diagonal of all three axes: the shared component changes its axis. @param {number[]} axis @param {number} share */
function around([a, b, d], share) {
  const angle = (share * 2 * Math.PI) / 3;
  const [c, s] = [Math.cos(angle), Math.sin(angle) / Math.sqrt(3)];
  const along = ((a + b + d) * (1 - c)) / 3;
  return [a * c + (d - b) * s + along, b * c + (a - d) * s + along, d * c + (b - a) * s + along, 0];
}

/** Describe a transition: components that change, and those that stay. @param {Meta} meta @param {number[]} from @param {number[]} to @param {number} t */
export function said(meta, from, to, t) {
  const number = (/** @type {number} */ index) => meta.components[index].number;
  const stays = from.find((axis) => to.includes(axis));
  if (stays === undefined) {
    const step = t < 0.5 ? 0 : 1;
    return `component ${number(from[step])} turns into ${number(to[step])} (turn ${step + 1} of 2)`;
  }
  const [turns] = from.filter((axis) => axis !== stays);
  const [into] = to.filter((axis) => axis !== stays);
  return `component ${number(turns)} turns into ${number(into)}, ${number(stays)} stays`;
}

const MOST_TURNING = 90000; // maximum number of rows that move
const IMAGES = 120;

export class Tour {
  /** @param {Stage} stage @param {View} view with panel `a` opened @param {number} a @param {number} b */
  constructor(stage, view, a, b) {
    this.view = view;
    this.t = 0;
    const { panels, rows } = view.layout;
    this.a = panels[a];
    this.b = panels[b];
    const share = Math.min(1, MOST_TURNING / (this.a.count + this.b.count));
    /** @type {Map<number, number>} 1 in a, 2 in b, 3 in both */ const members = new Map();
    [this.a, this.b].forEach(({ start, count }, i) => {
      for (const row of rows.subarray(start, start + Math.ceil(count * share)))
        members.set(row, (members.get(row) ?? 0) | (i + 1));
    });
    this.rows = Uint32Array.from(members.keys());
    this.members = Uint8Array.from(members.values());
    const { basis } = frameAt(this.a.axes, this.b.axes, 0);
    this.raw = new Int16Array(4 * this.rows.length);
    this.rows.forEach((row, i) =>
      basis.forEach((component, k) => (this.raw[4 * i + k] = stage.scene.score(row, component))),
    );
    /** @type {Placed | null} */ this.stagePanel = null;
    this.restore(stage);
    this.images = this.chooseImages(stage);
  }

  /** @param {Stage} stage */
  restore(stage) {
    const marks = new Float32Array(3 * this.rows.length);
    this.members.forEach((bits, i) => marks.set([bits & 1, bits >> 1], 3 * i));
    const panels = new Uint16Array(this.rows.length);
    const attributes = { 0: [this.raw, 4], 1: [this.rows, 1], 2: [panels, 1], 3: [marks, 3] };
    this.made = vertices(stage.gpu.gl, /** @type {any} */ (attributes));
  }

  /** Return the bounds at a moment: each panel's own at the ends, wide enough for both in between. @param {number} t @returns {Bounds} */
  rangeAt(t) {
    const wide = Math.min(1, Math.min(t, 1 - t) * 6);
    const bounds = this.a.extent.map((value, i) => {
      const other = this.b.extent[i];
      const both = i % 2 ? Math.max(value, other) : Math.min(value, other);
      return mix(mix(value, other, sine(t)), both, wide);
    });
    return /** @type {Bounds} */ (bounds);
  }

  /** Whether the tour draws this panel. @param {Placed} spot */
  hides(spot) {
    return spot.view === this.view && spot.open;
  }

  /** Return the current content of the opened panel. @param {Placed} spot @returns {Placed} */
  shown(spot) {
    return { ...spot, range: this.rangeAt(this.t) };
  }

  /** @param {Meta} meta */
  title(meta) {
    const about = said(meta, this.a.axes, this.b.axes, this.t);
    return { name: `${this.a.name} → ${this.b.name}`, about };
  }

  /** Write the stage's line of the panel table. @param {Stage} stage @param {Float32Array} table */
  place(stage, table) {
    const spot = stage.placed.find((placed) => this.hides(placed)) ?? null;
    this.stagePanel = spot;
    if (!spot) return;
    const look = density(this.rows.length, spot.plot.w * spot.plot.h);
    table.set(texels(this.shown(spot), look.size, look.alpha * spot.strength), table.length - 12);
  }

  /** @param {Stage} stage @param {Look} look */
  draw(stage, look) {
    if (!this.stagePanel || !this.made) return;
    const { gpu, sheets, theme } = stage;
    const { array } = this.made;
    const { t } = this;
    const { x, y } = frameAt(this.a.axes, this.b.axes, t);
    const fade = [1 - Math.max(0, t - 0.6) / 0.4, Math.min(1, t / 0.4)]; // opacity of each panel's rows
    const source = { x, y, mode: 2, fade };
    const [base, counts] = [stage.panels - 1, [this.rows.length]];
    drawPoints(gpu, look, { ...source, array, base, firsts: [0], counts });
    const { plot } = this.stagePanel;
    const px = imageSize(Math.min(plot.w, plot.h), 300) * (sheets?.wide ?? 1);
    const images = this.images.map((image) => ({ ...image, key: base }));
    if (sheets)
      stage.stats.images += drawImages(gpu, sheets, images, look, px, theme.panel, source);
  }

  /** Choose images of both panels that overlap neither at the ends nor half way. @private @param {Stage} stage */
  chooseImages({ scene }) {
    /** @type {import('./gl/points.js').Picture[]} */ const wanted = [];
    /** @type {number[][]} */ const taken = [];
    const stops = [0, 0.5, 1].flatMap((t) => {
      const [x0, x1, y0, y1] = this.rangeAt(t);
      const { x, y } = frameAt(this.a.axes, this.b.axes, t);
      return [
        { axis: x, low: x0, wide: x1 - x0 },
        { axis: y, low: y0, wide: y1 - y0 },
      ];
    });
    const second = this.members.indexOf(2); // rows of a come first; each panel's rows are in placement order
    for (let n = 0; n < Math.min(3000, this.rows.length) && taken.length < IMAGES; n += 1) {
      const i = n % 2 && second > 0 ? second + (n >> 1) : n >> 1;
      if (i >= this.rows.length) continue;
      const raw = [...this.raw.subarray(4 * i, 4 * i + 4)];
      const at = stops.map(
        ({ axis, low, wide }) => axis.reduce((sum, c, k) => sum + c * raw[k], -low) / wide,
      );
      const clashes = (/** @type {number[]} */ other) =>
        [0, 2, 4].some(
          (k) => Math.abs(other[k] - at[k]) <= 0.05 && Math.abs(other[k + 1] - at[k + 1]) <= 0.075,
        );
      if (taken.some(clashes)) continue;
      taken.push(at);
      const [row, bits] = [this.rows[i], this.members[i]];
      wanted.push({ raw, row, key: 0, tile: scene.tile[row], from: [bits & 1, bits >> 1, 0] });
    }
    return wanted;
  }
}

const REST = 900; // ms on each panel

/** Start the tour of the largest panels, or stop it. @param {Stage} stage @param {Actions} actions @param {(on: boolean) => void} told */
export function buildJourney(stage, actions, told) {
  /** @type {Set<number> | null} visited panels; null without a tour */ let seen = null;
  let [at, timer] = [-1, 0]; // the panel that the tour has reached
  const stop = () => {
    if (!seen) return;
    seen = null;
    clearTimeout(timer);
    actions.pauseTour();
    told(false);
  };
  const toggle = async () => {
    if (seen) return stop();
    const grid = Object.entries(stage.meta.layouts).find(([, { kind }]) => kind !== 'map');
    if (!grid) return;
    if (stage.views[0].layout.kind === 'map') await actions.morph(stage.views[0], grid[0]);
    const [view] = stage.views;
    seen = new Set();
    told(true);
    const first = fullest(view.layout.panels).find(({ axes }) => axes.length > 1);
    at = view.opened?.panel ?? first?.index ?? 0;
    if (view.opened) stage.settleSoon();
    else actions.open(view, at);
  };
  /** Continue once the picture is complete. */
  const go = () => {
    clearTimeout(timer);
    const [view] = stage.views;
    if (!seen || stage.morph) return;
    if (view.opened?.panel !== at) return stop();
    seen.add(at);
    const { layout } = view;
    const beside = neighbours(layout, at).flatMap(({ panels }) => panels);
    const left = beside.filter((index) => !seen?.has(index));
    const [next] = fullest(left.map((index) => layout.panels[index]));
    if (!next) return stop();
    timer = setTimeout(() => {
      at = next.index;
      actions.tour(view, at);
    }, REST);
  };
  for (const kind of ['pointerdown', 'wheel', 'keydown'])
    stage.hit.addEventListener(kind, stop, { passive: true });
  stage.settled.push(go);
  return { toggle, stop };
}
