/** Rectangles, the camera, and the current place of each panel on the page. */

/** @param {number} from @param {number} to @param {number} t */
export const mix = (from, to, t) => from + (to - from) * t;

/** @param {number} value @param {number} low @param {number} high */
export const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

/** @param {number} x @param {number} y @param {number} w @param {number} h @returns {Rect} */
export const box = (x, y, w, h) => ({ x, y, w, h });

/** Whether a place is in a rectangle. @param {Rect} rect @param {number} px @param {number} py @param {number} [by] permitted distance outside */
export const holds = ({ x, y, w, h }, px, py, by = 0) =>
  px >= x - by && px <= x + w + by && py >= y - by && py <= y + h + by;

/** Whether a rectangle is inside another. @param {Rect} a @param {Rect} b @param {number} [by] required distance from the edge */
export const within = (a, b, by = 0) =>
  holds(b, a.x, a.y, -by) && holds(b, a.x + a.w, a.y + a.h, -by);

/** Whether two rectangles overlap. @param {Rect} a @param {Rect} b @param {number} [by] required gap between them */
export const touches = (a, b, by = 0) =>
  a.x < b.x + b.w + by && a.x + a.w + by > b.x && a.y < b.y + b.h + by && a.y + a.h + by > b.y;

/** The smallest rectangle around others. @param {Rect[]} rects @returns {Rect} */
export function around(rects) {
  const x = Math.min(...rects.map((rect) => rect.x));
  const y = Math.min(...rects.map((rect) => rect.y));
  const right = Math.max(...rects.map((rect) => rect.x + rect.w));
  return box(x, y, right - x, Math.max(...rects.map((rect) => rect.y + rect.h)) - y);
}

/** @param {Camera} cam @param {Rect} view @param {Rect} world @returns {Rect} */
export function toPage({ x, y, k }, view, world) {
  const [left, top] = [view.x + view.w / 2, view.y + view.h / 2];
  return box((world.x - x) * k + left, (world.y - y) * k + top, world.w * k, world.h * k);
}

/** @param {Camera} cam @param {Rect} view @param {number} x @param {number} y @returns {[number, number]} */
export function toWorld(cam, view, x, y) {
  return [(x - view.x - view.w / 2) / cam.k + cam.x, (y - view.y - view.h / 2) / cam.k + cam.y];
}

/** Return the camera that shows a part of the world with a margin. @param {Rect} world @param {Rect} view @param {number} [air] @returns {Camera} */
export function fitting(world, view, air = 0.03) {
  const k = (1 - air) * Math.min(view.w / world.w, view.h / world.h);
  return { x: world.x + world.w / 2, y: world.y + world.h / 2, k };
}

/** Zoom by a factor about a point of the page, which does not move. @param {Camera} cam @param {Rect} view @param {number} x @param {number} y @param {number} factor @param {number} least @param {number} most */
export function zoomed(cam, view, x, y, factor, least, most) {
  const [wx, wy] = toWorld(cam, view, x, y);
  const k = clamp(cam.k * factor, least, most);
  return { x: wx - (x - view.x - view.w / 2) / k, y: wy - (y - view.y - view.h / 2) / k, k };
}

/** Interpolate between two cameras: the scale changes at a constant rate, and the target stays in view. @param {Camera} a @param {Camera} b @param {number} t @returns {Camera} */
export function between(a, b, t) {
  const rate = Math.log(b.k / a.k);
  const k = a.k * Math.exp(rate * t);
  const share = Math.abs(rate) < 1e-6 ? t : (1 - Math.exp(-rate * t)) / (1 - Math.exp(-rate));
  return { x: mix(a.x, b.x, share), y: mix(a.y, b.y, share), k };
}

/** Return where a picture drawn from camera `a` is in the view of camera `b`. @param {Camera} a @param {Camera} b @param {Rect} view @returns {Rect} */
export function carried(a, b, view) {
  const [w, h] = [(view.w * b.k) / a.k, (view.h * b.k) / a.k];
  const x = view.x + (view.w - w) / 2 + (a.x - b.x) * b.k;
  return box(x, view.y + (view.h - h) / 2 + (a.y - b.y) * b.k, w, h);
}

/** Return the height of the strip above a panel's plot for its name and count. @param {number} height of the card */
export const header = (height) => clamp(0.165 * height, 11, 28);

/** @typedef {{card: Rect, range: Bounds, strength: number, open: boolean}} Goal target position of a panel */

/** @param {View} view @returns {Placed[]} panels that touch the view */
export function placeView(view) {
  /** @type {Placed[]} */ const placed = [];
  for (const part of view.parts)
    for (const panel of part.layout.panels) {
      const key = part.base + panel.index;
      const goal = goalOf(view, part, panel);
      const now = view.shift < 1 ? onTheWay(view.from?.get(key), goal, view.shift) : goal;
      if (!now || now.strength <= 0 || !touches(now.card, view.rect)) continue;
      placed.push({ key, view, part, panel, ...now, plot: plotOf(now.card, now.open, part) });
    }
  return placed;
}

/** @param {View} view @param {Part} part @param {Panel} panel @returns {Goal | null} */
function goalOf(view, part, panel) {
  const { opened } = view;
  const { layout, rects, inset } = part;
  const open = opened?.panel === panel.index;
  const card = opened
    ? !inset && opened.rects.get(panel.index)
    : toPage(view.cam, view.rect, rects[panel.index]);
  if (!card) return null;
  const squares = !opened && layout.kind === 'map';
  const range = squares ? squared(panel.range, plotOf(card, false, part)) : panel.range;
  const strength = opened || inset || view.shows(panel) ? 1 : 0.06;
  return { card, range: opened && open ? opened.range : range, strength, open };
}

/** @param {Goal | undefined} a @param {Goal | null} b @param {number} t @returns {Goal | null} */
function onTheWay(a, b, t) {
  const only = a && b ? null : (a ?? b);
  if (only) return { ...only, strength: only.strength * (a ? 1 - t : t) };
  if (!a || !b) return null;
  const [card, range] = [{ ...b.card }, b.range.map((value, i) => mix(a.range[i], value, t))];
  for (const side of /** @type {const} */ (['x', 'y', 'w', 'h']))
    card[side] = mix(a.card[side], b.card[side], t);
  const strength = mix(a.strength, b.strength, t);
  return { card, range: /** @type {Bounds} */ (range), strength, open: b.open };
}

/** @param {Rect} card @param {boolean} open leaves space for ticks @param {Part} part @returns {Rect} */
function plotOf({ x, y, w, h }, open, { inset, layout: { feet } }) {
  if (open) return box(x + 44, y + 36, Math.max(10, w - 60), Math.max(10, h - 64));
  const [top, pad] = [inset ? 26 : header(h), Math.min(3, w * 0.02)];
  return box(x + pad, y + top, w - 2 * pad, h - top - (feet ? header(h) : pad));
}

/** Widen a range so that both axes have the same scale. @param {Bounds} range @param {Rect} plot @returns {Bounds} */
function squared([x0, x1, y0, y1], plot) {
  const unit = Math.max((x1 - x0) / plot.w, (y1 - y0) / plot.h);
  const [cx, cy, w, h] = [(x0 + x1) / 2, (y0 + y1) / 2, (unit * plot.w) / 2, (unit * plot.h) / 2];
  return [cx - w, cx + w, cy - h, cy + h];
}

/** Return the size and opacity of points by their mean distance: one smooth curve for every view. @param {number} points @param {number} area pixels */
export function density(points, area) {
  const apart = Math.sqrt(area / Math.max(1, points));
  const size = 1.5 + 4.3 * (1 - Math.exp(-apart / 16));
  return { size, alpha: 0.22 + 0.56 * (1 - Math.exp(-apart / 2.1)) };
}

/** Return the scale from raw numbers u and v to pixels: left + u kx and bottom − v ky. @param {{plot: Rect, range: Bounds}} spot */
export function scaleOf({ plot: { x, y, w, h }, range }) {
  const [kx, ky] = [w / (range[1] - range[0] || 1), h / (range[3] - range[2] || 1)];
  return { left: x - range[0] * kx, bottom: y + h + range[2] * ky, kx, ky };
}

/** Convert scores to a place on the page. @param {{plot: Rect, range: Bounds}} spot @param {number} u @param {number} v @returns {[number, number]} */
export function pointToPage(spot, u, v) {
  const { left, bottom, kx, ky } = scaleOf(spot);
  return [left + u * kx, bottom - v * ky];
}

/** Return three texels of a panel: position and scale, plot, size and strength of points. @param {{plot: Rect, range: Bounds}} panel @param {number} size @param {number} alpha */
export function texels(panel, size, alpha) {
  const { left, bottom, kx, ky } = scaleOf(panel);
  const { x, y, w, h } = panel.plot;
  return [left, bottom, kx, -ky, x, y, x + w, y + h, size, alpha, 0, 0];
}

/** Return the texels of all panels. @param {Placed[]} placed @param {number} panels number of entries in the table @param {(spot: Placed, all: number) => number} drawn number of points to draw in a panel */
export function tableOf(placed, panels, drawn) {
  const table = new Float32Array(12 * Math.max(1, panels));
  const all = placed.reduce((sum, { panel }) => sum + panel.count, 0);
  for (const spot of placed) {
    const { part, plot, strength } = spot;
    const look = density(drawn(spot, all), plot.w * plot.h);
    const alpha = strength * look.alpha * (part.layout.kind === 'map' ? 0.85 : 1);
    table.set(texels(spot, look.size, alpha), 12 * spot.key);
  }
  return table;
}
