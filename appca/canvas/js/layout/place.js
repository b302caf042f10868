/** Where each panel stands on the page now, from camera, opened panel and whatever is on its way. */

import { clamp, toPage, touches } from './geometry.js';

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
