/** All panels in a corner while the view shows only some of them; a press there goes there. */

import { toWorld } from '../layout/camera.js';
import { around, clamp } from '../layout/rect.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../types.js').Rect} Rect @typedef {import('../layout/view.js').View} View */

const SIDE = 104;

/** Where the map stands and which part of the world it shows; null while all panels are in view. @param {Stage} stage @param {View} view */
export function miniOf(stage, view) {
  if (
    view.opened ||
    view.arrangement.kind === 'map' ||
    view.cam.k < view.home.k * 1.35 ||
    stage.morph?.view === view
  )
    return null;
  const world = around(view.parts.filter(({ inset }) => !inset).flatMap(({ rects }) => rects));
  const k = (SIDE - 12) / Math.max(world.w, world.h);
  const box = { x: view.rect.x + 12, y: view.rect.y + view.rect.h - SIDE - 12, w: SIDE, h: SIDE };
  return {
    world,
    k,
    box,
    x: box.x + (SIDE - world.w * k) / 2,
    y: box.y + (SIDE - world.h * k) / 2,
  };
}

/** @param {Stage} stage @param {(box: Rect) => number} fade */
export function drawMini(stage, fade) {
  const { context, theme } = stage;
  for (const view of stage.views) {
    const mini = miniOf(stage, view);
    if (!mini) continue;
    const { box, k, world } = mini;
    context.globalAlpha = fade(box);
    context.beginPath();
    context.roundRect(box.x, box.y, box.w, box.h, 6);
    context.fillStyle = theme.panel;
    context.fill();
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    context.stroke();
    const [part] = view.parts;
    const most = Math.max(1, ...part.layout.panels.map(({ count }) => count));
    const base = context.globalAlpha;
    context.fillStyle = theme.primary;
    for (const panel of part.layout.panels) {
      const rect = part.rects[panel.index];
      context.globalAlpha = base * (0.15 + 0.65 * Math.sqrt(panel.count / most));
      context.fillRect(
        mini.x + (rect.x - world.x) * k,
        mini.y + (rect.y - world.y) * k,
        Math.max(1, rect.w * k),
        Math.max(1, rect.h * k),
      );
    }
    context.globalAlpha = base;
    const { x, y, w, h } = view.rect;
    const [[left, top], [right, bottom]] = [
      toWorld(view.cam, view.rect, x, y),
      toWorld(view.cam, view.rect, x + w, y + h),
    ].map(([wx, wy]) => [
      clamp(mini.x + (wx - world.x) * k, box.x + 1, box.x + SIDE - 1),
      clamp(mini.y + (wy - world.y) * k, box.y + 1, box.y + SIDE - 1),
    ]);
    context.strokeStyle = theme.text;
    context.lineWidth = 1.5;
    context.strokeRect(left, top, Math.max(3, right - left), Math.max(3, bottom - top));
    context.globalAlpha = 1;
  }
}
