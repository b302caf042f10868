/** Rectangles, the camera over the world, and where each panel stands on the page now. */

/** @param {number} value @param {number} low @param {number} high */
export const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

/** Whether a place lies in a rectangle. @param {Rect} rect @param {number} px @param {number} py @param {number} [by] how far outside it may lie */
export const holds = ({ x, y, w, h }, px, py, by = 0) =>
  px >= x - by && px <= x + w + by && py >= y - by && py <= y + h + by;

/** Whether all of one rectangle lies in another. @param {Rect} a @param {Rect} b @param {number} [by] how far inside it must lie */
export const within = (a, b, by = 0) =>
  holds(b, a.x, a.y, -by) && holds(b, a.x + a.w, a.y + a.h, -by);

/** Whether two rectangles share some of the page. @param {Rect} a @param {Rect} b @param {number} [by] how much farther apart they must be not to */
export const touches = (a, b, by = 0) =>
  a.x < b.x + b.w + by && a.x + a.w + by > b.x && a.y < b.y + b.h + by && a.y + a.h + by > b.y;

/** The smallest rectangle around others. @param {Rect[]} rects @returns {Rect} */
export function around(rects) {
  const x = Math.min(...rects.map((rect) => rect.x));
  const y = Math.min(...rects.map((rect) => rect.y));
  return {
    x,
    y,
    w: Math.max(...rects.map((rect) => rect.x + rect.w)) - x,
    h: Math.max(...rects.map((rect) => rect.y + rect.h)) - y,
  };
}

/** @param {Camera} cam @param {Rect} view @param {Rect} world @returns {Rect} */
export function toPage(cam, view, world) {
  return {
    x: (world.x - cam.x) * cam.k + view.x + view.w / 2,
    y: (world.y - cam.y) * cam.k + view.y + view.h / 2,
    w: world.w * cam.k,
    h: world.h * cam.k,
  };
}

/** @param {Camera} cam @param {Rect} view @param {number} x @param {number} y @returns {[number, number]} */
export function toWorld(cam, view, x, y) {
  return [(x - view.x - view.w / 2) / cam.k + cam.x, (y - view.y - view.h / 2) / cam.k + cam.y];
}

/** The camera that shows a part of the world with some air. @param {Rect} world @param {Rect} view @param {number} [air] @returns {Camera} */
export function fitting(world, view, air = 0.03) {
  const k = (1 - air) * Math.min(view.w / world.w, view.h / world.h);
  return { x: world.x + world.w / 2, y: world.y + world.h / 2, k };
}

/** Zoom by a factor about a point of the page that stays where it is. @param {Camera} cam @param {Rect} view @param {number} x @param {number} y @param {number} factor @param {number} least @param {number} most */
export function zoomed(cam, view, x, y, factor, least, most) {
  const [wx, wy] = toWorld(cam, view, x, y);
  const k = clamp(cam.k * factor, least, most);
  return { x: wx - (x - view.x - view.w / 2) / k, y: wy - (y - view.y - view.h / 2) / k, k };
}

/** On the way between two cameras: sizes change evenly, and what is aimed at does not swing out. @param {Camera} a @param {Camera} b @param {number} t @returns {Camera} */
export function between(a, b, t) {
  const rate = Math.log(b.k / a.k);
  const k = a.k * Math.exp(rate * t);
  const share = Math.abs(rate) < 1e-6 ? t : (1 - Math.exp(-rate * t)) / (1 - Math.exp(-rate));
  return { x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share, k };
}

/** How a picture drawn from camera `a` lies in the view of camera `b`. @param {Camera} a @param {Camera} b @param {Rect} view @returns {Rect} */
export function carried(a, b, view) {
  const scale = b.k / a.k;
  const [cx, cy] = [
    view.x + view.w / 2 + (a.x - b.x) * b.k,
    view.y + view.h / 2 + (a.y - b.y) * b.k,
  ];
  return {
    x: cx - (view.w / 2) * scale,
    y: cy - (view.h / 2) * scale,
    w: view.w * scale,
    h: view.h * scale,
  };
}

/** The strip above a panel's plot that holds its name and count. @param {number} height of the card */
export const header = (height) => clamp(0.165 * height, 11, 28);

/** @param {View} view @returns {Placed[]} panels that touch the view */
export function placeView(view) {
  /** @type {Placed[]} */ const placed = [];
  for (const part of view.parts) {
    for (const panel of part.layout.panels) {
      const key = part.base + panel.index;
      const target = view.opened ? openTarget(view, part, panel) : cameraTarget(view, part, panel);
      const from = view.from?.get(key);
      const now = view.shift < 1 ? onTheWay(from, target, view.shift) : target;
      if (!now || now.strength <= 0 || !touches(now.card, view.rect)) continue;
      placed.push({ key, view, part, panel, ...now, plot: plotOf(now.card, now.open, part.inset) });
    }
  }
  return placed;
}

/** @typedef {{card: Rect, range: Bounds, strength: number, open: boolean}} Goal */

/** @param {View} view @param {Part} part @param {Panel} panel @returns {Goal | null} */
function cameraTarget(view, part, panel) {
  const card = toPage(view.cam, view.rect, part.rects[panel.index]);
  const shown = view.shows(panel, part);
  const range =
    part.layout.kind === 'map'
      ? squared(panel.range, plotOf(card, false, part.inset))
      : panel.range;
  return { card, range, strength: shown ? 1 : 0.06, open: false };
}

/** @param {View} view @param {Part} part @param {Panel} panel @returns {Goal | null} */
function openTarget(view, part, panel) {
  const opened = /** @type {import('./view.js').Opened} */ (view.opened);
  const card = part.inset ? undefined : opened.rects.get(panel.index);
  if (!card) return null;
  const large = panel.index === opened.panel;
  return { card, range: large ? opened.range : panel.range, strength: 1, open: large };
}

/** @param {Goal | undefined} a @param {Goal | null} b @param {number} t @returns {Goal | null} */
function onTheWay(a, b, t) {
  if (!a || !b) {
    const only = a ?? b;
    return only && { ...only, strength: only.strength * (a ? 1 - t : t) };
  }
  const mix = (/** @type {number} */ from, /** @type {number} */ to) => from + (to - from) * t;
  return {
    card: {
      x: mix(a.card.x, b.card.x),
      y: mix(a.card.y, b.card.y),
      w: mix(a.card.w, b.card.w),
      h: mix(a.card.h, b.card.h),
    },
    range: /** @type {Bounds} */ (a.range.map((value, i) => mix(value, b.range[i]))),
    strength: mix(a.strength, b.strength),
    open: b.open,
  };
}

/** @param {Rect} card @param {boolean} open with room for ticks @param {boolean} inset @returns {Rect} */
function plotOf(card, open, inset) {
  if (open)
    return {
      x: card.x + 44,
      y: card.y + 36,
      w: Math.max(10, card.w - 60),
      h: Math.max(10, card.h - 64),
    };
  const top = inset ? 26 : header(card.h);
  const pad = Math.min(3, card.w * 0.02);
  return { x: card.x + pad, y: card.y + top, w: card.w - 2 * pad, h: card.h - top - pad };
}

/** A range widened so that both axes have one scale. @param {Bounds} range @param {Rect} plot @returns {Bounds} */
function squared([x0, x1, y0, y1], plot) {
  const unit = Math.max((x1 - x0) / plot.w, (y1 - y0) / plot.h);
  const [cx, cy, w, h] = [(x0 + x1) / 2, (y0 + y1) / 2, (unit * plot.w) / 2, (unit * plot.h) / 2];
  return [cx - w, cx + w, cy - h, cy + h];
}

/** Size and opacity of points by how far apart they stand on average: one smooth curve for every view. @param {number} points @param {number} area pixels */
export function density(points, area) {
  const apart = Math.sqrt(area / Math.max(1, points));
  return {
    size: 1.5 + 4.3 * (1 - Math.exp(-apart / 16)),
    alpha: 0.22 + 0.56 * (1 - Math.exp(-apart / 2.1)),
  };
}

/** Three texels of a panel: place and scale, plot, size and strength of points. @param {{plot: Rect, range: Bounds}} panel @param {number} size @param {number} alpha @returns {number[]} */
export function texels({ plot, range }, size, alpha) {
  const kx = plot.w / (range[1] - range[0] || 1);
  const ky = plot.h / (range[3] - range[2] || 1);
  const { x, y, w, h } = plot;
  return [
    ...[x - range[0] * kx, y + h + range[2] * ky, kx, -ky],
    ...[x, y, x + w, y + h],
    ...[size, alpha, 0, 0],
  ];
}

/** The texels of all panels. @param {Placed[]} placed @param {number} panels in the table @param {(spot: Placed, all: number) => number} drawn points of a panel */
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

/** Scores to the page. @param {Placed} spot @param {number} x @param {number} y @returns {[number, number]} */
export function pointToPage({ plot, range }, x, y) {
  return [
    plot.x + ((x - range[0]) / (range[1] - range[0])) * plot.w,
    plot.y + plot.h - ((y - range[2]) / (range[3] - range[2])) * plot.h,
  ];
}
