/** The row that a click holds, ringed with its picture, and thin lines to its nearest rows. */

import { pointToPage } from '../layout/place.js';
import { clamp, holds } from '../layout/rect.js';
import { cssOf } from '../theme.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../layout/place.js').Placed} Placed */
/** @typedef {{row: number, x: number, y: number, px: number, py: number}} Mark where a row stands, and where its picture is drawn */

const [HELD, NEAR] = [56, 34]; // px of pictures
const LARGE = 300; // px of a plot in which they have room
const HALO = 6; // px around a picture
const STEP = 6; // px by which a picture slides outward
const STEPS = 40;

/** @typedef {{held: number, near: ArrayLike<number>}} Subject a row, and those nearest to it */
/** @type {WeakMap<Stage, {key: string, marks: Map<number, [number, number, number][]>}>} */
const cache = new WeakMap();

/** Rows and scores of a row and those near it, by panel. @param {Stage} stage @param {Subject} subject */
function marksOf(stage, { held, near }) {
  const { views } = stage;
  const layouts = views.flatMap(({ parts }) => parts.map(({ layout }) => layout));
  const key = `${held} ${near} ${layouts.map(({ name, revision }) => `${name} ${revision}`)} ${stage.panels}`;
  const before = cache.get(stage);
  if (before?.key === key) return before.marks;
  const wanted = new Set([held, ...Array.from(near)]);
  /** @type {Map<number, [number, number, number][]>} */
  const marks = new Map();
  for (const { layout, base } of views.flatMap(({ parts }) => parts))
    for (const panel of layout.panels) {
      const here = [];
      for (let i = panel.start; i < panel.start + panel.count; i += 1)
        if (wanted.has(layout.rows[i]))
          here.push(
            /** @type {[number, number, number]} */ ([
              layout.rows[i],
              layout.xy[2 * i],
              layout.xy[2 * i + 1],
            ]),
          );
      if (here.length) marks.set(base + panel.index, here);
    }
  cache.set(stage, { key, marks });
  return marks;
}

/** Rows whose pictures are drawn large. @param {Stage} stage */
export const heldRows = ({ held, near }) => (held < 0 ? [] : [held, ...near]);

/** @param {Stage} stage @param {Subject} [subject] the row under the hand; else the one that is held */
export function drawHeld(stage, subject = stage) {
  if (subject.held < 0 || stage.morph || stage.tour) return;
  const { context } = stage;
  const marks = marksOf(stage, subject);
  for (const spot of stage.placed) {
    const here = marks.get(spot.key);
    if (!here || spot.strength < 0.5) continue;
    const { plot } = spot;
    const placed = here
      .map(([row, u, v]) => {
        const [x, y] = pointToPage(spot, u, v);
        return { row, x, y, px: x, py: y };
      })
      .filter(({ x, y }) => holds(plot, x, y));
    const held = placed.find(({ row }) => row === subject.held);
    const large = subject === stage && Math.min(plot.w, plot.h) >= LARGE && stage.sheets !== null;
    const near = placed.filter((mark) => mark !== held);
    if (large) slide(near, held, plot);
    context.save();
    if (held) for (const mark of near) line(stage, held, mark);
    for (const mark of near)
      draw(stage, mark, large ? NEAR : 0, mark.row === stage.chosen ? 2.5 : 1.25);
    if (held) draw(stage, held, large ? HELD : 0, 2.5);
    context.restore();
  }
}

/** Move pictures of near rows outward until none covers another. @param {Mark[]} near @param {Mark | undefined} held @param {import('../types.js').Rect} plot */
function slide(near, held, plot) {
  /** @type {[Mark, number][]} */
  const taken = held ? [[held, HELD]] : [];
  for (const mark of near) {
    const angle = held ? Math.atan2(mark.y - held.y, mark.x - held.x) : 0;
    const free = () =>
      taken.every(
        ([other, side]) =>
          Math.max(Math.abs(other.px - mark.px), Math.abs(other.py - mark.py)) >=
          (side + NEAR) / 2 + 2 * HALO + 2,
      );
    for (let k = 0; k < STEPS && !free(); k += 1) {
      const turn = angle + (k % 2 ? 0.35 : 0); // two ways out, so that pictures in line part
      const [x, y] = [mark.px + STEP * Math.cos(turn), mark.py + STEP * Math.sin(turn)];
      mark.px = clamp(x, plot.x + NEAR / 2, plot.x + plot.w - NEAR / 2);
      mark.py = clamp(y, plot.y + NEAR / 2, plot.y + plot.h - NEAR / 2);
    }
    taken.push([mark, NEAR]);
  }
}

/** @param {Stage} stage @param {Mark} a @param {Mark} b */
function line({ context, theme }, a, b) {
  context.beginPath();
  context.moveTo(a.x, a.y);
  context.lineTo(b.x, b.y);
  stroke(context, theme, 1.25);
}

/** Draw the path on a halo of the ground. @param {CanvasRenderingContext2D} context @param {import('../theme.js').Theme} theme @param {number} width */
function stroke(context, theme, width) {
  [context.strokeStyle, context.lineWidth] = [theme.panel, width + 2.75];
  context.stroke();
  [context.strokeStyle, context.lineWidth] = [theme.primary, width];
  context.stroke();
}

/** @param {Stage} stage @param {Mark} mark @param {number} side px of the picture, 0 for a ring @param {number} width of the ring */
function draw(stage, { row, x, y, px, py }, side, width) {
  const { context, theme, palette, rows, scene, dark } = stage;
  const picture = side ? stage.sheets?.picture(scene.tile[row], dark) : null;
  const ring = (/** @type {number} */ radius, /** @type {number} */ thick) => {
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    stroke(context, theme, thick);
  };
  if (!picture) {
    ring(row === stage.held ? 8 : 5.5, width);
    return;
  }
  if (Math.hypot(px - x, py - y) > side / 2) {
    context.setLineDash([2, 3]);
    [context.strokeStyle, context.lineWidth] = [theme.primary, 1.25];
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(px, py);
    context.stroke();
    context.setLineDash([]);
    ring(4.5, 1.25);
  }
  const box = (/** @type {number} */ grow) => {
    context.beginPath();
    context.roundRect(
      px - side / 2 - grow,
      py - side / 2 - grow,
      side + 2 * grow,
      side + 2 * grow,
      6,
    );
  };
  box(HALO);
  context.fillStyle = theme.panel;
  context.fill();
  [context.strokeStyle, context.lineWidth] = [theme.primary, width];
  context.stroke();
  context.save();
  box(0);
  context.clip();
  context.drawImage(picture, px - side / 2, py - side / 2, side, side);
  context.restore();
  box(1);
  [context.strokeStyle, context.lineWidth] = [cssOf(palette, rows.codes[row]), 1.5];
  context.stroke();
}
