/** Selected rows in panels they are not part of: marks on the edge of the axis they share, rings where the host knows their projection. */

import { SELECTED } from '../scene/rows.js';
import { cssOf } from '../theme.js';
import { pointToPage } from '../layout/place.js';
import { holds } from '../layout/rect.js';

const FEW = 12; // selected rows that get a ring each, for a point alone is lost among thousands
const MOST = 1500; // rows that leave ghosts
const AREA = 110; // pixels of a panel for each of them, so that they do not hide it

/** @type {WeakMap<import('../stage.js').Stage, {key: number, rows: number[], scores: Float32Array | null}>} */
const cache = new WeakMap();

/** @param {import('../stage.js').Stage} stage */
function ghostsOf(stage) {
  const cached = cache.get(stage);
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
  cache.set(stage, made);
  stage.callbacks.project?.(rows).then(
    (scores) => {
      made.scores = scores;
      stage.settleSoon();
    },
    () => {},
  ); // marks alone then
  return made;
}

/** Where ghosts stand: a row's place on the axes that it shares with a panel, and that of its projection. @param {import('../stage.js').Stage} stage */
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

/** @param {import('../stage.js').Stage} stage */
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

/** Rings around the selected rows where they are few. @param {import('../stage.js').Stage} stage */
export function ringedRows(stage) {
  const { rows, placed } = stage;
  /** @type {{key: number, x: number, y: number}[]} */
  const rings = [];
  if (!rows.selected || rows.selected > FEW) return rings;
  for (const { key, part, panel } of placed) {
    const { layout } = part;
    for (let i = panel.start; i < panel.start + panel.count; i += 1)
      if (rows.flags[layout.rows[i]] & SELECTED)
        rings.push({ key, x: layout.xy[2 * i], y: layout.xy[2 * i + 1] });
  }
  return rings;
}

/** @param {import('../stage.js').Stage} stage @param {ReturnType<typeof ringedRows>} ringed */
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
