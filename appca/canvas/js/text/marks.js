/** Rows that are marked: the one that a click holds with thin lines to its nearest, and ghosts and rings of the selection. */

import { clamp, holds, pointToPage } from '../layout/geometry.js';
import { SELECTED } from '../scene/rows.js';
import { cssOf } from '../theme.js';

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
  /** @type {Map<number, [number, number, number][]>} */ const marks = new Map();
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

/** Move pictures of near rows outward until none covers another. @param {Mark[]} near @param {Mark | undefined} held @param {Rect} plot */
function slide(near, held, plot) {
  /** @type {[Mark, number][]} */ const taken = held ? [[held, HELD]] : [];
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

/** Draw the path on a halo of the ground. @param {CanvasRenderingContext2D} context @param {Theme} theme @param {number} width */
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
  if (!picture) return ring(row === stage.held ? 8 : 5.5, width);
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

const FEW = 12; // selected rows that get a ring each, for a point alone is lost among thousands
const MOST = 1500; // rows that leave ghosts
const AREA = 110; // pixels of a panel for each of them, so that they do not hide it

/** @type {WeakMap<Stage, {key: number, rows: number[], scores: Float32Array | null}>} */
const ringed = new WeakMap();

/** @param {Stage} stage */
function ghostsOf(stage) {
  const cached = ringed.get(stage);
  if (cached?.key === stage.rows.flagsChanged) return cached;
  const rows = [];
  const step = Math.max(1, Math.ceil(stage.rows.selected / MOST));
  for (let row = 0, k = 0; row < stage.rows.count; row += 1)
    if (stage.rows.flags[row] & SELECTED && k++ % step === 0) rows.push(row);
  const made = {
    key: stage.rows.flagsChanged,
    rows,
    scores: /** @type {Float32Array | null} */ (null),
  };
  ringed.set(stage, made);
  stage.callbacks.project?.(rows).then(
    (scores) => {
      made.scores = scores;
      stage.settleSoon();
    },
    () => {},
  ); // marks alone then
  return made;
}

/** Where ghosts stand: a row's place on the axes that it shares with a panel, and that of its projection. @param {Stage} stage */
export function ghosts(stage) {
  const { rows, scene, placed, meta } = stage;
  if (!stage.options.ghosts || !rows.selected || stage.moving || stage.morph || stage.tour)
    return [];
  const dots = [];
  const { rows: list, scores } = ghostsOf(stage);
  const { components, active } = scene;
  for (const spot of placed) {
    const { panel, plot, part, range } = spot;
    const [x, y] = panel.axes;
    if (part.layout.kind === 'map' || plot.w < 40) continue;
    const step = Math.ceil(list.length / Math.max(12, (plot.w * plot.h) / AREA));
    for (let i = 0; i < list.length; i += step) {
      const row = list[i];
      const used = components.subarray(row * active, (row + 1) * active);
      if (
        part.layout.kind === 'triangle'
          ? used.includes(x) && used.includes(y)
          : panel.components.every((c) => used.includes(c))
      )
        continue;
      const [onX, onY] = [used.includes(x), used.includes(y)];
      if (!onX && !onY && !scores) continue;
      const [px, py] = pointToPage(
        spot,
        onX ? scene.score(row, x) : range[0],
        onY ? scene.score(row, y) : range[2],
      );
      const at = i * meta.components.length;
      const ring = scores
        ? pointToPage(spot, scores[at + x] / meta.score_unit, scores[at + y] / meta.score_unit)
        : null;
      dots.push({
        plot,
        row,
        shared: onX || onY,
        x: onX && px > plot.x && px < plot.x + plot.w ? px : null,
        y: onY && py > plot.y && py < plot.y + plot.h ? py : null,
        ring: ring && holds(plot, ...ring) ? ring : null,
      });
    }
  }
  return dots;
}

/** @param {Stage} stage */
export function drawGhosts(stage) {
  const { context, rows, palette } = stage;
  context.lineWidth = 1;
  for (const { plot, row, shared, x, y, ring } of ghosts(stage)) {
    const radius = Math.min(2.5, 0.8 + plot.w / 160);
    context.strokeStyle = cssOf(palette, rows.codes[row]);
    context.globalAlpha = shared ? 0.75 : 0.4;
    context.beginPath();
    if (x !== null) {
      context.moveTo(x, plot.y + plot.h);
      context.lineTo(x, plot.y + plot.h - 5);
    }
    if (y !== null) {
      context.moveTo(plot.x, y);
      context.lineTo(plot.x + 5, y);
    }
    if (ring) {
      context.moveTo(ring[0] + radius, ring[1]);
      context.arc(ring[0], ring[1], radius, 0, 7);
    }
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Rings around the selected rows where they are few. @param {Stage} stage */
export function ringedRows(stage) {
  const { rows, placed } = stage;
  /** @type {{key: number, x: number, y: number}[]} */ const rings = [];
  if (!rows.selected || rows.selected > FEW) return rings;
  for (const { key, part, panel } of placed) {
    const { layout } = part;
    for (let i = panel.start; i < panel.start + panel.count; i += 1)
      if (rows.flags[layout.rows[i]] & SELECTED)
        rings.push({ key, x: layout.xy[2 * i], y: layout.xy[2 * i + 1] });
  }
  return rings;
}

/** @param {Stage} stage @param {ReturnType<typeof ringedRows>} ringed */
export function drawRings(stage, ringed) {
  const { context, placed, theme } = stage;
  if (!ringed.length || stage.morph || stage.tour) return;
  const by = new Map(placed.map((spot) => [spot.key, spot]));
  [context.strokeStyle, context.lineWidth, context.globalAlpha] = [theme.primary, 2, 1];
  for (const { key, x, y } of ringed) {
    const spot = by.get(key);
    if (!spot) continue;
    const [px, py] = pointToPage(spot, x, y);
    const { plot } = spot;
    if (!holds(plot, px, py)) continue;
    context.beginPath();
    context.arc(px, py, Math.min(9, 3 + plot.w / 40), 0, 7);
    context.stroke();
  }
}
