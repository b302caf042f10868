/** Movements: values that go to their ends, and points that travel from one layout to another. */

import { vertices } from '../gl/gpu.js';
import { drawPoints, groundOf } from '../gl/points.js';
import { clamp } from '../layout/geometry.js';
import { placeView } from '../layout/place.js';

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

/** @typedef {{rows: Uint32Array, xy: Float32Array, grounds: import('../gl/points.js').Ground[]}} Places rows and where they are on the page */

const MOST = 70000; // points that move

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
    const share = Math.min(1, MOST / Math.max(1, total));
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
