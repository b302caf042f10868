/** Points that travel to another layout, turns to a neighbouring panel, and the tour of the fullest ones. */

import { vertices } from './gl/gpu.js';
import { drawImages, imageSize, drawPoints, groundOf } from './gl/points.js';
import { clamp, density, placeView, texels } from './layout/geometry.js';
import { neighbours } from './layout/view.js';
import { fullest } from './scene/layouts.js';

/** The easing cubic-bezier(.3, 0, .1, 1), nearly. @param {number} t */
export const ease = (t) => 1 - (1 - t) ** 3 * (1 - 0.6 * t * (1 - t));

/** @param {number} t */
export const sine = (t) => (1 - Math.cos(Math.PI * t)) / 2;

export class Tweens {
  constructor() {
    /** @type {Map<string, {start: number, ms: number, step: (t: number) => void, done?: () => void}>} */
    this.running = new Map();
    this.motion = matchMedia('(prefers-reduced-motion: reduce)');
  }

  /** @param {string} name @param {number} ms @param {(t: number) => void} step from 0 to 1 @param {() => void} [done] */
  start(name, ms, step, done) {
    if (this.reduced) {
      this.running.delete(name);
      step(1);
      done?.();
      return;
    }
    this.running.set(name, { start: performance.now(), ms, step, done });
    step(0);
  }

  /** @param {string} name */
  stop(name) {
    this.running.delete(name);
  }

  /** Whether what would move stands at once where it ends. */
  get reduced() {
    return this.motion.matches;
  }

  get moving() {
    return this.running.size > 0;
  }

  /** @param {number} now */
  tick(now) {
    for (const [name, motion] of [...this.running]) {
      const t = clamp((now - motion.start) / Math.max(1, motion.ms), 0, 1);
      if (t >= 1) this.running.delete(name);
      motion.step(t);
      if (t >= 1) motion.done?.();
    }
  }
}

/** @typedef {{rows: Uint32Array, xy: Float32Array, grounds: import('./gl/points.js').Ground[]}} Places rows and where they are on the page */

const MOST_TRAVELLING = 70000; // points that move

/** Where the points of a view are now, also in the middle of another morph. @param {Stage} stage @param {View} view @returns {Places} */
export function placesOf(stage, view) {
  const placed = placeView(view).filter(({ part }) => !part.inset);
  const grounds = placed.map(groundOf);
  if (stage.morph?.view === view) return { ...stage.morph.now(), grounds };
  const total = placed.reduce((sum, { panel }) => sum + panel.count, 0);
  const rows = new Uint32Array(total);
  const xy = new Float32Array(2 * total);
  let at = 0;
  for (const spot of placed) {
    rows.set(
      spot.part.layout.rows.subarray(spot.panel.start, spot.panel.start + spot.panel.count),
      at,
    );
    pagePlaces(spot, spot.panel.count, xy, at);
    at += spot.panel.count;
  }
  return { rows, xy, grounds };
}

/** Write where the first points of a panel are on the page. @param {Placed} spot @param {number} count @param {Float32Array} into @param {number} at */
function pagePlaces({ part, panel, plot, range }, count, into, at) {
  const { xy } = part.layout;
  const { start } = panel;
  const [kx, ky] = [plot.w / (range[1] - range[0]), plot.h / (range[3] - range[2])];
  const [left, bottom] = [plot.x - range[0] * kx, plot.y + plot.h + range[2] * ky];
  for (let i = start, to = 2 * at; i < start + count; i += 1, to += 2) {
    into[to] = left + xy[2 * i] * kx;
    into[to + 1] = bottom - xy[2 * i + 1] * ky;
  }
}

/** For each new place the nearest old place of its row; [x, y, known] a point. @param {Uint32Array} rows of the new places @param {Float32Array} to @param {Pick<Places, 'rows' | 'xy'>} old @param {number} count of rows in the data */
export function origins(rows, to, old, count) {
  const first = new Int32Array(count).fill(-1);
  const next = new Int32Array(rows.length);
  for (let i = 0; i < rows.length; i += 1) {
    next[i] = first[rows[i]];
    first[rows[i]] = i;
  }
  const from = new Float32Array(3 * rows.length);
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
  for (let i = 0; i < rows.length; i += 1) {
    if (from[3 * i + 2]) continue;
    from[3 * i] = to[2 * i];
    from[3 * i + 1] = to[2 * i + 1];
  }
  return from;
}

export class Morph {
  /** @param {Stage} stage @param {View} view already with its new layout @param {Places} old */
  constructor(stage, view, old) {
    this.view = view;
    this.t = 0;
    this.old = old;
    const placed = placeView(view);
    const total = placed.reduce((sum, { panel }) => sum + panel.count, 0);
    const share = Math.min(1, MOST_TRAVELLING / Math.max(1, total));
    const layers = placed.map((spot) => ({ ...spot, count: Math.ceil(spot.panel.count * share) }));
    const count = layers.reduce((sum, layer) => sum + layer.count, 0);
    this.rows = new Uint32Array(count);
    this.to = new Float32Array(2 * count);
    const raw = new Int16Array(2 * count);
    const panels = new Uint16Array(count);
    let at = 0;
    for (const layer of layers) {
      const { layout, base } = layer.part;
      const { start, index } = layer.panel;
      this.rows.set(layout.rows.subarray(start, start + layer.count), at);
      raw.set(layout.xy.subarray(2 * start, 2 * (start + layer.count)), 2 * at);
      panels.fill(base + index, at, at + layer.count);
      pagePlaces(layer, layer.count, this.to, at);
      at += layer.count;
    }
    this.from = origins(this.rows, this.to, old, stage.rows.count);
    this.made = vertices(stage.gpu.gl, {
      0: [raw, 2],
      1: [this.rows, 1],
      2: [panels, 1],
      3: [this.from, 3],
    });
  }

  free() {
    this.made.free();
  }

  /** The cards of the old layout, fading. @param {View} view */
  fading(view) {
    return view === this.view
      ? this.old.grounds.map((ground) => ({ ...ground, strength: ground.strength * (1 - this.t) }))
      : [];
  }

  /** @returns {Pick<Places, 'rows' | 'xy'>} */
  now() {
    const xy = this.to.map((value, i) => {
      const from = this.from[3 * (i >> 1) + (i & 1)];
      return from + (value - from) * this.t;
    });
    return { rows: this.rows, xy };
  }

  /** @param {Stage} stage @param {Look} look */
  draw(stage, look) {
    drawPoints(
      stage.gpu,
      look,
      { array: this.made.array, mode: 1, t: this.t },
      0,
      [0],
      [this.rows.length],
    );
  }
}

/** @typedef {{basis: number[], x: number[], y: number[]}} Frame axes over at most four components */

/** @param {number[]} from components of x and y @param {number[]} to @param {number} t 0 to 1 @returns {Frame} */
export function frameAt(from, to, t) {
  const basis = [...new Set([...from, ...to])];
  const unit = (/** @type {number} */ component) =>
    [0, 1, 2, 3].map((i) => (basis[i] === component ? 1 : 0));
  const turned = (
    /** @type {number} */ a,
    /** @type {number} */ b,
    /** @type {number} */ share,
  ) => {
    if (a === b || share <= 0) return unit(a);
    if (share >= 1) return unit(b);
    const angle = (share * Math.PI) / 2;
    const [p, q] = [unit(a), unit(b)];
    return p.map((value, i) => Math.cos(angle) * value + Math.sin(angle) * q[i]);
  };
  const crossed = from[0] === to[1] ? -1 : from[1] === to[0] ? 1 : 0;
  if (crossed && basis.length === 3 && t > 0 && t < 1)
    return { basis, ...around(unit(from[0]), unit(from[1]), crossed * t) };
  if (basis.length === 4)
    return { basis, x: turned(from[0], to[0], 2 * t), y: turned(from[1], to[1], 2 * t - 1) };
  return { basis, x: turned(from[0], to[0], t), y: turned(from[1], to[1], t) };
}

/** The shared component changes its axis: a turn of 120 degrees about the diagonal of all three. @param {number[]} x @param {number[]} y @param {number} share */
function around(x, y, share) {
  const angle = (share * 2 * Math.PI) / 3;
  const [c, s, n] = [Math.cos(angle), Math.sin(angle), 1 / Math.sqrt(3)];
  const turn = (/** @type {number[]} */ [a, b, d]) => {
    const along = (a + b + d) * n * n * (1 - c);
    return [
      a * c + (d - b) * n * s + along,
      b * c + (a - d) * n * s + along,
      d * c + (b - a) * n * s + along,
      0,
    ];
  };
  return { x: turn(x), y: turn(y) };
}

/** What happens in words: what turns into what, and what stays. @param {Meta} meta @param {number[]} from @param {number[]} to @param {number} t */
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

const MOST_TURNING = 90000; // rows that move
const IMAGES = 120;

export class Tour {
  /** @param {Stage} stage @param {View} view that has panel `a` opened @param {number} a @param {number} b */
  constructor(stage, view, a, b) {
    this.view = view;
    this.t = 0;
    const { panels } = view.layout;
    this.a = panels[a];
    this.b = panels[b];
    const share = Math.min(1, MOST_TURNING / (this.a.count + this.b.count));
    const bits = new Uint8Array(stage.rows.count); // 1 in a, 2 in b, 3 in both
    const points = [];
    for (const panel of [this.a, this.b]) {
      for (let i = panel.start; i < panel.start + Math.ceil(panel.count * share); i += 1) {
        const row = view.layout.rows[i];
        if (!bits[row]) points.push(row);
        bits[row] |= panel === this.a ? 1 : 2;
      }
    }
    this.rows = Uint32Array.from(points);
    this.members = Uint8Array.from(points, (row) => bits[row]);
    this.basis = frameAt(this.a.axes, this.b.axes, 0).basis;
    this.raw = new Int16Array(4 * this.rows.length);
    this.rows.forEach((row, i) =>
      this.basis.forEach(
        (component, k) => (this.raw[4 * i + k] = stage.scene.score(row, component)),
      ),
    );
    /** @type {Placed | null} */ this.stagePanel = null;
    this.restore(stage);
    this.images = this.chooseImages(stage);
  }

  /** @param {Stage} stage */
  restore(stage) {
    const marks = new Float32Array(3 * this.rows.length);
    this.members.forEach((bits, i) => marks.set([bits & 1, bits >> 1], 3 * i));
    this.made = vertices(stage.gpu.gl, {
      0: [this.raw, 4],
      1: [this.rows, 1],
      2: [new Uint16Array(this.rows.length), 1],
      3: [marks, 3],
    });
  }

  /** Bounds at this moment: each panel's own at the ends, wide enough for both between. @returns {Bounds} */
  get range() {
    return this.rangeAt(this.t);
  }

  /** @param {number} t @returns {Bounds} */
  rangeAt(t) {
    const e = sine(t);
    const wide = Math.min(1, Math.min(t, 1 - t) * 6);
    return /** @type {Bounds} */ (
      this.a.extent.map((value, i) => {
        const other = this.b.extent[i];
        const plain = value + (other - value) * e;
        const both = i % 2 ? Math.max(value, other) : Math.min(value, other);
        return plain + (both - plain) * wide;
      })
    );
  }

  get frame() {
    return frameAt(this.a.axes, this.b.axes, this.t);
  }
  /** @returns {[number, number]} strength of rows of each panel */
  get fade() {
    return [1 - Math.max(0, this.t - 0.6) / 0.4, Math.min(1, this.t / 0.4)];
  }

  /** The opened panel is drawn by the tour. @param {Placed} spot */
  hides(spot) {
    return spot.view === this.view && spot.open;
  }

  /** What the opened panel shows now. @param {Placed} spot @returns {Placed} */
  shown(spot) {
    return { ...spot, range: this.range };
  }

  /** @param {Meta} meta */
  title(meta) {
    return {
      name: `${this.a.name} → ${this.b.name}`,
      about: said(meta, this.a.axes, this.b.axes, this.t),
    };
  }

  /** Write the stage's line of the panel table. @param {Stage} stage @param {Float32Array} table */
  place(stage, table) {
    const spot = stage.placed.find((placed) => this.hides(placed));
    this.stagePanel = spot ?? null;
    if (!spot) return;
    const look = density(this.rows.length, spot.plot.w * spot.plot.h);
    const panel = { plot: spot.plot, range: this.range };
    table.set(texels(panel, look.size, look.alpha * spot.strength), table.length - 12);
  }

  /** @param {Stage} stage @param {Look} look */
  draw(stage, look) {
    if (!this.stagePanel || !this.made) return;
    const { x, y } = this.frame;
    const source = { array: this.made.array, x, y, mode: 2, fade: this.fade };
    drawPoints(stage.gpu, look, source, stage.panels - 1, [0], [this.rows.length]);
    const { plot } = this.stagePanel;
    const px = imageSize(Math.min(plot.w, plot.h), 300);
    if (stage.sheets && this.images)
      stage.stats.images += drawImages(
        stage.gpu,
        stage.sheets,
        { ...this.images, panel: this.images.row.map(() => stage.panels - 1) },
        look,
        px,
        stage.theme.panel,
        source,
      );
  }

  /** Images of both panels that keep apart at both ends and half way. @private @param {Stage} stage */
  chooseImages(stage) {
    /** @type {import('./gl/points.js').Wanted & {from: number[]}} */
    const wanted = { raw: [], row: [], panel: [], tile: [], from: [] };
    /** @type {number[][]} */ const taken = [];
    const stops = [0, 0.5, 1].map((t) => ({
      extent: this.rangeAt(t),
      frame: frameAt(this.a.axes, this.b.axes, t),
    }));
    const dot = (/** @type {number[]} */ axis, /** @type {number} */ i) =>
      axis.reduce((sum, value, k) => sum + value * this.raw[4 * i + k], 0);
    const second = this.members.indexOf(2); // rows of a come first, each panel in its room order
    const order = Array.from({ length: Math.min(3000, this.rows.length) }, (_, i) =>
      i % 2 && second > 0 ? second + (i >> 1) : i >> 1,
    );
    for (const i of order.filter((point) => point < this.rows.length)) {
      const at = stops.flatMap(({ extent, frame }) => [
        (dot(frame.x, i) - extent[0]) / (extent[1] - extent[0]),
        (dot(frame.y, i) - extent[2]) / (extent[3] - extent[2]),
      ]);
      const clear = taken.every((other) =>
        [0, 2, 4].every(
          (k) => Math.abs(other[k] - at[k]) > 0.05 || Math.abs(other[k + 1] - at[k + 1]) > 0.075,
        ),
      );
      if (!clear || taken.length >= IMAGES) continue;
      taken.push(at);
      const bits = this.members[i];
      wanted.raw.push(...this.raw.subarray(4 * i, 4 * i + 4));
      wanted.row.push(this.rows[i]);
      wanted.tile.push(stage.scene.tile[this.rows[i]]);
      wanted.from.push(bits & 1, bits >> 1, 0);
    }
    return wanted;
  }
}

const REST = 900; // ms on each panel

export class Journey {
  /** @param {Stage} stage @param {Actions} actions @param {(on: boolean) => void} told */
  constructor(stage, actions, told) {
    this.stage = stage;
    this.actions = actions;
    this.told = told;
    this.on = false;
    /** @type {Set<number>} */ this.seen = new Set();
    this.timer = 0;
    this.at = -1; // the panel it has reached
    for (const kind of ['pointerdown', 'wheel', 'keydown'])
      stage.hit.addEventListener(kind, () => this.stop(), { passive: true });
    stage.settled.push(() => this.go());
  }

  /** Begin, or stop where it is. */
  async toggle() {
    if (this.on) return this.stop();
    const { stage, actions } = this;
    const grid = Object.entries(stage.meta.layouts).find(([, { kind }]) => kind !== 'map');
    if (!grid) return;
    if (stage.views[0].layout.kind === 'map') await actions.morph(stage.views[0], grid[0]);
    const [view] = stage.views;
    this.on = true;
    this.told(true);
    this.seen.clear();
    this.at =
      view.opened?.panel ??
      fullest(view.layout.panels).find(({ axes }) => axes.length > 1)?.index ??
      0;
    if (view.opened) stage.settleSoon();
    else actions.open(view, this.at);
  }

  stop() {
    if (!this.on) return;
    this.on = false;
    clearTimeout(this.timer);
    this.actions.pauseTour();
    this.told(false);
  }

  /** The picture stands: go on from there. @private */
  go() {
    clearTimeout(this.timer);
    const [view] = this.stage.views;
    if (!this.on || this.stage.morph) return;
    if (view.opened?.panel !== this.at) return this.stop();
    this.seen.add(this.at);
    const beside = neighbours(view.layout, this.at).flatMap(({ panels }) => panels);
    const panels = beside.map((index) => view.layout.panels[index]);
    const next = fullest(panels).find(({ index }) => !this.seen.has(index));
    if (!next) return this.stop();
    this.timer = setTimeout(() => {
      this.at = next.index;
      this.actions.tour(view, next.index);
    }, REST);
  }
}
