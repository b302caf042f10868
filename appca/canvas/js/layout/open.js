/** An opened panel: large, with the panels that share an axis with it in a strip below. */

import { fullest } from '../scene/layouts.js';

/** @typedef {import('../types.js').Rect} Rect @typedef {import('../scene/layouts.js').Layout} Layout */
/** @typedef {{turns: number, stays: number, panels: number[], x: number}} Group neighbours for which one component turns and the other stays */

/** Panels that share one shown component, the fullest first, in a group for each that stays. @param {Layout} layout @param {number} index @returns {Group[]} */
export function neighbours(layout, index) {
  if (layout.kind === 'map') return [];
  const openAxes = layout.panels[index].axes;
  const groups = openAxes.map((stays, i) => ({
    turns: openAxes[1 - i],
    stays,
    panels: /** @type {number[]} */ ([]),
    x: 0,
  }));
  for (const panel of fullest(layout.panels)) {
    if (panel.index === index || !panel.count) continue;
    const shared = openAxes.filter((axis) => panel.axes.includes(axis));
    if (shared.length === 1)
      groups.find(({ stays }) => stays === shared[0])?.panels.push(panel.index);
  }
  return groups.filter(({ panels }) => panels.length).reverse();
}

export const STRIP = 148; // height of the strip with its line of words
const TOUR = 148; // width of the player beside the neighbour it turns to

/** Large panel and strip, as many neighbours as fit. @param {Group[]} groups @param {number} index @param {Rect} view @returns {Map<number, Rect>} */
export function openRects(groups, index, view) {
  const top = 48;
  const roomy = view.h > 420 && groups.length > 0;
  /** @type {Map<number, Rect>} */
  const rects = new Map();
  rects.set(index, {
    x: view.x + 16,
    y: view.y + top,
    w: view.w - 32,
    h: view.h - top - (roomy ? STRIP + 8 : 16),
  });
  if (!roomy) return rects;
  const side = STRIP - 44;
  const gap = 12;
  const room = Math.max(1, Math.floor((view.w - 32 - TOUR - 24) / (side + gap)));
  let x = view.x + 16;
  groups.forEach((group, i) => {
    const most = Math.max(1, Math.floor(room / groups.length));
    group.panels = group.panels.slice(0, i ? room - Math.min(most, groups[0].panels.length) : most);
    group.x = x;
    for (const panel of group.panels) {
      rects.set(panel, { x, y: view.y + view.h - side - 14, w: side, h: side });
      x += side + gap;
    }
    x += 20;
  });
  return rects;
}
