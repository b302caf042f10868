/** Text inside plots, placed at rest where it covers neither data nor other text; and marked rows: the focused row with lines to its nearest rows, ghosts, and rings of selected rows. */

import { pointsIn } from '../gl/points.js';
import { box, clamp, holds, pointToPage, scaleOf, touches, within } from '../layout/geometry.js';
import { cut, font, trace, widthOf, write } from '../parts/dom.js';
import { countOf, grouped } from '../scene/names.js';
import { codesIn, countsOf, HIDDEN, mostly, ranked, SELECTED } from '../scene/rows.js';
import { cssOf } from '../theme.js';

const [CELL, GAP] = [6, 3]; // px; between words
const SAMPLE = 80000; // maximum number of points considered

export class Occupancy {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.columns = Math.ceil(width / CELL) + 1;
    this.lines = Math.ceil(height / CELL) + 1;
    this.cells = new Uint16Array(this.columns * this.lines);
    /** @type {Rect[]} rectangles of placed text */ this.words = [];
  }

  /** @param {number} x @param {number} y */
  add(x, y) {
    const [column, line] = [Math.floor(x / CELL), Math.floor(y / CELL)];
    if (column >= 0 && line >= 0 && column < this.columns && line < this.lines)
      this.cells[line * this.columns + column] += 1;
  }

  /** @param {Rect} rect */
  cover(rect) {
    for (let y = rect.y; y <= rect.y + rect.h; y += CELL)
      for (let x = rect.x; x <= rect.x + rect.w; x += CELL) this.add(x, y);
  }

  /** Count points and images under a rectangle. @param {Rect} rect */
  under({ x, y, w, h }) {
    const [left, top] = [Math.max(0, Math.floor(x / CELL)), Math.max(0, Math.floor(y / CELL))];
    const right = Math.min(this.columns - 1, Math.floor((x + w) / CELL));
    const bottom = Math.min(this.lines - 1, Math.floor((y + h) / CELL));
    let sum = 0;
    for (let line = top; line <= bottom; line += 1)
      for (let at = line * this.columns + left; at <= line * this.columns + right; at += 1)
        sum += this.cells[at];
    return sum;
  }

  /** Reserve the first of these places that covers neither text nor data. @param {Rect[]} places @param {Rect} inside @returns {Rect | null} */
  take(places, inside) {
    const free = places.find(
      (rect) =>
        within(rect, inside) &&
        !this.words.some((word) => touches(word, rect, GAP)) &&
        this.under(rect) === 0,
    );
    if (free) this.words.push(free);
    return free ?? null;
  }
}

/** Return the area that labels and panels occupy now. @param {Stage} stage @param {Placed[]} [placed] the panels to use */
export function occupancyOf(stage, placed = stage.placed) {
  const occupancy = new Occupancy(stage.width, stage.height);
  const share = Math.min(1, SAMPLE / Math.max(1, pointsIn(placed)));
  for (const spot of placed) {
    const { start, count } = spot.panel;
    const { xy } = spot.part.layout;
    const { left, bottom, kx, ky } = scaleOf(spot);
    for (let i = start; i < start + Math.ceil(count * share); i += 1) {
      const [x, y] = [left + xy[2 * i] * kx, bottom - xy[2 * i + 1] * ky];
      if (holds(spot.plot, x, y, 1)) occupancy.add(x, y);
    }
  }
  const by = new Map(placed.map((spot) => [spot.key, spot]));
  for (const { wanted, px } of stage.images)
    for (const { key, raw } of wanted) {
      const spot = by.get(key);
      if (!spot) continue;
      const [x, y] = pointToPage(spot, raw[0], raw[1]);
      occupancy.cover(box(x - px / 2, y - px / 2, px, px));
    }
  for (const { ring } of ghosts(stage)) if (ring) occupancy.add(ring[0], ring[1]);
  return occupancy;
}

const SQUARE = 44; // side in px of the squares in which the points of a class are counted
const [END, LARGE] = [24, 250]; // sides in px: of an image beside text, at least of a plot with text inside

/** @param {Stage} stage @returns {Label[]} */
export function placeLabels(stage) {
  const large = stage.placed.filter(
    (spot) =>
      Math.min(spot.plot.w, spot.plot.h) > LARGE && spot.strength > 0.9 && !stage.tour?.hides(spot),
  );
  const room = occupancyOf(stage, large);
  return large.flatMap((spot) => [
    ...(spot.part.layout.kind === 'map' || spot.panel.other ? [] : signCells(stage, spot, room)),
    ...clusters(stage, spot, room),
    ...beyond(stage, spot, room),
  ]);
}

/** Label each quadrant in its corner: signs such as "+2 −5", number of points, most frequent classes. @param {Stage} stage @param {Placed} spot @param {Occupancy} room @returns {Label[]} */
function signCells(stage, spot, room) {
  const { context, theme, rows, meta } = stage;
  const { plot, panel, part } = spot;
  if (panel.axes.length < 2) return [];
  const named = panel.axes.some((index) => meta.components[index].name);
  const ends = named || stage.sheets?.wide !== 1 ? [] : endsOf(spot);
  const { cells } = countsOf(part.layout, panel, rows, spot.range);
  const names = namesOf(stage);
  const [zx, zy] = pointToPage(spot, 0, 0);
  const [middle, low] = [Math.max(plot.x, zx), Math.max(plot.y, zy)];
  return cells.flatMap(({ count, classes }, cell) => {
    if (!count) return [];
    const [right, top] = [cell % 2, cell >> 1];
    const signs = panel.axes.map((index, i) => side(meta.components[index], i ? top : right));
    const style = font(12.5, 600);
    const text = cut(context, signs.join(named ? ', ' : ' '), 0.45 * plot.w, style);
    const said = mostly({ count, classes }, names);
    const many = `${countOf(meta, count)}${said ? `, ${said}` : ''}`;
    const lines = [
      { text, style, colour: theme.text },
      { text: many, style: font(11.5), colour: theme.soft },
    ];
    const shown = ends.length ? [ends[right ? 1 : 0], ends[top ? 3 : 2]] : [];
    const widths = lines.map((line) => widthOf(context, line.text, line.style));
    const [w, h] = [Math.max(widths[0] + shown.length * END, ...widths), 32];
    const places = Array.from({ length: 36 }, (_, i) => {
      const [along, down] = [10 + (i % 6) * 24, 8 + Math.floor(i / 6) * 16];
      const x = right ? plot.x + plot.w - w - along : plot.x + along;
      return box(x, top ? plot.y + down : plot.y + plot.h - h - down, w, h);
    });
    const [from, to] = right ? [middle, plot.x + plot.w] : [plot.x, zx];
    const [above, below] = top ? [plot.y, zy] : [low, plot.y + plot.h];
    const quadrant = box(from, above, to - from, below - above);
    const align = right ? 'right' : 'left';
    const more = { align: /** @type {CanvasTextAlign} */ (align), cell, ends: shown };
    return placed(spot, room, places, quadrant, lines, more);
  });
}

/** Return "more Shoe" for a named component, else "+3". @param {Component} component @param {number} high */
const side = ({ name, number }, high) =>
  name ? `${high ? 'more' : 'less'} ${name}` : `${high ? '+' : '−'}${number}`;

/** Return the rows of a panel with the lowest and highest scores on each axis. @param {Placed} spot */
function endsOf({ part: { layout }, panel: { start, count } }) {
  const ends = [start, start, start, start];
  for (let i = start; i < start + count; i += 1)
    for (const axis of [0, 1]) {
      const at = (/** @type {number} */ point) => layout.xy[2 * point + axis];
      if (at(i) < at(ends[2 * axis])) ends[2 * axis] = i;
      if (at(i) > at(ends[2 * axis + 1])) ends[2 * axis + 1] = i;
    }
  return ends.map((point) => layout.rows[point]);
}

/** Return the class names that can label a place. @param {Stage} stage */
const namesOf = ({ colouring }) =>
  colouring?.kind === 'category' && !colouring.steps ? colouring.names : [];

/** Label the typical place of each class with its name. @param {Stage} stage @param {Placed} spot @param {Occupancy} room @returns {Label[]} */
function clusters(stage, spot, room) {
  const { context, rows, palette } = stage;
  const names = namesOf(stage);
  const { classes } = countsOf(spot.part.layout, spot.panel, rows, spot.range);
  const many = ranked(classes)
    .filter(([code, count]) => code < names.length && count > 0.04 * spot.panel.count)
    .slice(0, 14)
    .map(([code]) => code);
  const middles = typicalPlaces(stage, spot, many);
  return many.flatMap((code, i) => {
    const middle = middles[i];
    if (!middle) return [];
    const [x, y] = middle;
    const line = { text: names[code], style: font(13, 650), colour: cssOf(palette, code) };
    const w = widthOf(context, line.text, line.style);
    const places = Array.from({ length: 6 * 16 }, (_, at) => {
      const far = 10 + 9 * (at >> 4);
      const angle = ((at % 16) / 8 - 0.5) * Math.PI;
      return box(x + Math.cos(angle) * far - w / 2, y + Math.sin(angle) * far - 8, w, 15);
    });
    return placed(spot, room, places, spot.plot, [line]);
  });
}

/** Return the typical place of each class: the middle of its points in the grid square with most of them, times their share there. @param {Stage} stage @param {Placed} spot @param {number[]} wanted codes of classes @returns {([number, number] | null)[]} null if no two points of a class are close */
function typicalPlaces({ rows: { codes, flags } }, spot, wanted) {
  const { panel, plot, part, view } = spot;
  const { rows, xy } = part.layout;
  const { rect } = view;
  const [x0, y0] = [Math.max(plot.x, rect.x), Math.max(plot.y, rect.y)]; // corner of the visible part
  const x1 = Math.min(plot.x + plot.w, rect.x + rect.w);
  const y1 = Math.min(plot.y + plot.h, rect.y + rect.h);
  const columns = Math.max(0, Math.ceil((x1 - x0) / SQUARE));
  const lines = Math.max(0, Math.ceil((y1 - y0) / SQUARE));
  const squares = columns * lines;
  const place = new Int32Array(codesIn(codes)).fill(-1);
  wanted.forEach((code, i) => (place[code] = i * squares));
  const counts = new Uint32Array(wanted.length * squares);
  const sums = new Float64Array(2 * counts.length);
  const step = Math.max(1, Math.floor(panel.count / 20000));
  const { left, bottom, kx, ky } = scaleOf(spot);
  for (let i = panel.start; i < panel.start + panel.count; i += step) {
    const start = place[codes[rows[i]]];
    if (start < 0 || flags[rows[i]] & HIDDEN) continue;
    const [x, y] = [left + xy[2 * i] * kx, bottom - xy[2 * i + 1] * ky];
    const [column, line] = [Math.floor((x - x0) / SQUARE), Math.floor((y - y0) / SQUARE)];
    if (column < 0 || line < 0 || column >= columns || line >= lines) continue;
    const at = start + line * columns + column;
    counts[at] += 1;
    sums[2 * at] += x;
    sums[2 * at + 1] += y;
  }
  const every = (/** @type {number} */ square) =>
    wanted.reduce((sum, _, i) => sum + counts[i * squares + square], 0);
  return wanted.map((_, i) => {
    const own = [...counts.subarray(i * squares, (i + 1) * squares)];
    const typical = own.map((count, square) => count && (count * count) / every(square));
    const at = i * squares + typical.indexOf(Math.max(...typical));
    return counts[at] > 1 ? [sums[2 * at] / counts[at], sums[2 * at + 1] / counts[at]] : null;
  });
}

/** Label edges with the number of points beyond them. @param {Stage} stage @param {Placed} spot @param {Occupancy} room @returns {Label[]} */
function beyond(stage, spot, room) {
  const { beyond: counts } = countsOf(spot.part.layout, spot.panel, stage.rows, spot.range);
  const { x, y, w: wide, h } = spot.plot;
  const style = font(11.5);
  return counts.flatMap((count, edge) => {
    if (!count) return [];
    const more = `${grouped(count)} more`;
    const text = [`← ${more}`, `${more} →`, `↓ ${more}`, `↑ ${more}`][edge];
    const w = widthOf(stage.context, text, style);
    const [left, top] = [edge ? x + wide - w - 4 : x + 4, edge === 2 ? y + h - 18 : y + 3];
    const places = Array.from({ length: 24 }, (_, i) => {
      const share = 0.5 + (i % 2 ? -0.04 : 0.04) * (i >> 1);
      return edge < 2 ? box(left, y + share * h, w, 14) : box(x + share * wide, top, w, 14);
    });
    return placed(spot, room, places, spot.plot, [{ text, style, colour: stage.theme.faint }]);
  });
}

/** Return a label at the first free place, if any. @param {Placed} spot @param {Occupancy} room @param {Rect[]} places @param {Rect} inside @param {Label['lines']} lines @param {Partial<Label>} [more] @returns {Label[]} */
function placed({ key, plot, part: { layout } }, room, places, inside, lines, more) {
  const at = room.take(places, inside);
  if (!at) return [];
  const [u, v] = [(at.x - plot.x) / plot.w, (at.y - plot.y) / plot.h];
  const { revision } = layout;
  return [{ key, layout, revision, u, v, lines, align: 'left', width: at.w, ...more }];
}

/** Return the place of a label. @param {Label} label @param {Placed} spot @param {number} [h] px */
export const placeOf = ({ u, v, width }, { plot }, h = 32) =>
  box(plot.x + u * plot.w, plot.y + v * plot.h, width, h);

/** @param {Stage} stage @param {Label[]} labels */
export function drawLabels(stage, labels) {
  const { context, theme, dark } = stage;
  if (stage.morph) return;
  const by = new Map(stage.placed.map((spot) => [spot.key, spot]));
  for (const label of labels) {
    const { layout, lines, align, width, ends = [] } = label;
    const spot = by.get(label.key);
    if (spot?.part.layout !== layout || layout.revision !== label.revision) continue; // label of a removed panel
    if (spot.strength < 0.9 || stage.tour?.hides(spot)) continue;
    const { x, y } = placeOf(label, spot);
    const right = align === 'right';
    lines.forEach((line, i) => {
      const look = { ...line, halo: theme.panel, align };
      write(context, line.text, right ? x + width : x, y + i * 17, look);
    });
    const beside = widthOf(context, lines[0].text, lines[0].style) + 5;
    ends.forEach((row, i) => {
      const image = stage.sheets?.picture(stage.scene.tile[row], dark);
      const left = right ? width - beside - (ends.length - i) * END + 4 : beside + i * END;
      if (image) context.drawImage(image, x + left, y - 5, 20, 20);
    });
  }
}

/** @typedef {{row: number, x: number, y: number, px: number, py: number}} Mark place (x, y) of a row, and place (px, py) of its picture */
/** @typedef {{held: number, near: ArrayLike<number>}} Subject a row, and the rows nearest to it */
/** @typedef {[row: number, u: number, v: number]} Point */

const [HELD, NEAR] = [56, 34]; // sides in px of pictures
const ROOMY = 300; // minimum side in px of a plot with pictures of this size
const [HALO, STEP, STEPS] = [6, 6, 40]; // px around a picture, and by which it slides outward

/** @type {WeakMap<Stage, Map<string, Map<number, Point[]>>>} */ const caches = new WeakMap();

/** Return the points of some rows by panel key. @param {Stage} stage @param {ArrayLike<number>} rows @returns {Map<number, Point[]>} */
function pointsOf(stage, rows) {
  const parts = stage.views.flatMap((view) => view.parts);
  const shown = parts.map(({ layout: { name, revision } }) => `${name} ${revision}`);
  const key = `${rows}|${shown}|${stage.panels}`;
  const cache = caches.get(stage) ?? new Map();
  const before = cache.get(key);
  if (before) return before;
  const wanted = new Set(Array.from(rows));
  /** @type {Map<number, Point[]>} */ const points = new Map();
  for (const { layout, base } of parts)
    for (const { index, start, count } of layout.panels) {
      /** @type {Point[]} */ const here = [];
      for (let i = start; i < start + count; i += 1)
        if (wanted.has(layout.rows[i]))
          here.push([layout.rows[i], layout.xy[2 * i], layout.xy[2 * i + 1]]);
      if (here.length) points.set(base + index, here);
    }
  if (cache.size > 4) cache.clear(); // enough for focused, hovered and ringed rows
  caches.set(stage, cache.set(key, points));
  return points;
}

/** @param {Stage} stage @param {Subject} [subject] the row under the pointer, by default the focused row */
export function drawHeld(stage, subject = stage) {
  if (subject.held < 0 || stage.morph || stage.tour) return;
  const points = pointsOf(stage, [subject.held, ...Array.from(subject.near)]);
  for (const spot of stage.placed) {
    const { plot, key } = spot;
    const marks = (spot.strength < 0.5 ? [] : (points.get(key) ?? [])).map(([row, u, v]) => {
      const [x, y] = pointToPage(spot, u, v);
      return { row, x, y, px: x, py: y };
    });
    const seen = marks.filter(({ x, y }) => holds(plot, x, y));
    const held = seen.find(({ row }) => row === subject.held);
    const near = seen.filter((mark) => mark !== held);
    const large =
      subject === stage && Math.min(plot.w, plot.h) >= ROOMY && stage.sheets?.wide === 1;
    if (large) slide(near, held, plot);
    if (held) for (const mark of near) line(stage, [held.x, held.y], [mark.x, mark.y]);
    for (const mark of near)
      draw(stage, mark, large ? NEAR : 0, mark.row === stage.chosen ? 2.5 : 1.25);
    if (held) draw(stage, held, large ? HELD : 0, 2.5);
  }
}

/** Move pictures of near rows outward until they do not overlap. @param {Mark[]} near @param {Mark | undefined} held @param {Rect} plot */
function slide(near, held, plot) {
  /** @type {[Mark, number][]} */ const taken = held ? [[held, HELD]] : [];
  for (const mark of near) {
    const angle = held ? Math.atan2(mark.y - held.y, mark.x - held.x) : 0;
    const covers = (/** @type {[Mark, number]} */ [{ px, py }, side]) =>
      Math.max(Math.abs(px - mark.px), Math.abs(py - mark.py)) < (side + NEAR) / 2 + 2 * HALO + 2;
    for (let k = 0; k < STEPS && taken.some(covers); k += 1) {
      const turn = angle + (k % 2 ? 0.35 : 0); // alternate between two directions, so that pictures in a line separate
      const [x, y] = [mark.px + STEP * Math.cos(turn), mark.py + STEP * Math.sin(turn)];
      mark.px = clamp(x, plot.x + NEAR / 2, plot.x + plot.w - NEAR / 2);
      mark.py = clamp(y, plot.y + NEAR / 2, plot.y + plot.h - NEAR / 2);
    }
    taken.push([mark, NEAR]);
  }
}

/** @param {Stage} stage @param {[number, number]} from @param {[number, number]} to @param {number[]} [dash] without a halo */
function line({ context, theme }, from, to, dash) {
  const look = { colour: theme.primary, width: 1.25, dash, halo: dash ? undefined : theme.panel };
  trace(context, look, () => {
    context.moveTo(...from);
    context.lineTo(...to);
  });
}

/** @param {Stage} stage @param {Mark} mark @param {number} side px of the picture, 0 for a ring @param {number} width of the ring */
function draw(stage, { row, x, y, px, py }, side, width) {
  const { context, theme, palette, rows, scene, dark } = stage;
  const picture = side ? stage.sheets?.picture(scene.tile[row], dark) : null;
  const ring = (/** @type {number} */ radius, /** @type {number} */ thick) => {
    const look = { colour: theme.primary, width: thick, halo: theme.panel };
    trace(context, look, () => context.arc(x, y, radius, 0, 7));
  };
  if (!picture) return ring(row === stage.held ? 8 : 5.5, width);
  if (Math.hypot(px - x, py - y) > side / 2) {
    line(stage, [x, y], [px, py], [2, 3]);
    ring(4.5, 1.25);
  }
  const [left, top] = [px - side / 2, py - side / 2];
  const around = (/** @type {number} */ grow) => () =>
    context.roundRect(left - grow, top - grow, side + 2 * grow, side + 2 * grow, 6);
  trace(context, { colour: theme.primary, width, fill: theme.panel }, around(HALO));
  context.save();
  context.beginPath();
  around(0)();
  context.clip();
  context.drawImage(picture, left, top, side, side);
  context.restore();
  trace(context, { colour: cssOf(palette, rows.codes[row]), width: 1.5 }, around(1));
}

const FEW = 12; // maximum number of selected rows with rings, because a single point is lost among thousands
const [MOST, AREA] = [1500, 110]; // maximum number of rows with ghosts; px² of a panel per ghost

/** @typedef {{key: number, rows: number[], scores?: Float32Array | null}} Chosen */
/** @type {WeakMap<Stage, Chosen>} */ const chosen = new WeakMap();

/** Return the selected rows, or an even sample if there are many. @param {Stage} stage */
function selectedOf(stage) {
  const { flagsChanged: key, selected, flags, count } = stage.rows;
  const cached = chosen.get(stage);
  if (cached?.key === key) return cached;
  /** @type {Chosen} */ const made = { key, rows: [] };
  const step = Math.max(1, Math.ceil(selected / MOST));
  for (let row = 0, k = 0; row < count; row += 1)
    if (flags[row] & SELECTED && k++ % step === 0) made.rows.push(row);
  chosen.set(stage, made);
  return made;
}

/** Return the places of ghosts: each row by the axes that it shares with a panel, and by its projection. @param {Stage} stage */
function ghosts(stage) {
  const { scene, placed, meta } = stage;
  const shown = stage.options.ghosts && !stage.moving && !stage.morph && !stage.tour;
  if (!shown || !stage.rows.selected) return [];
  const dots = [];
  const made = selectedOf(stage);
  const { rows, scores } = made;
  const take = (/** @type {Float32Array} */ all) => {
    made.scores = all;
    stage.settleSoon();
  };
  if (scores === undefined) {
    made.scores = null; // requested
    stage.callbacks.project?.(rows).then(take, () => {}); // without an answer, only marks are drawn
  }
  const { components, active } = scene;
  for (const spot of placed) {
    const { panel, plot, part, range } = spot;
    if (part.layout.kind === 'map' || plot.w < 40) continue;
    const holders = part.layout.kind === 'triangle' ? panel.axes.slice(0, 2) : panel.components;
    const [x, y] = panel.axes;
    const step = Math.ceil(rows.length / Math.max(12, (plot.w * plot.h) / AREA));
    for (let i = 0; i < rows.length; i += step) {
      const row = rows[i];
      const used = components.subarray(row * active, (row + 1) * active);
      if (holders.every((c) => used.includes(c))) continue;
      const [onX, onY] = [used.includes(x), used.includes(y)];
      if (!onX && !onY && !scores) continue;
      const [px] = pointToPage(spot, scene.score(row, x), range[2]);
      const [, py] = pointToPage(spot, range[0], scene.score(row, y));
      const at = i * meta.components.length;
      const [u, v] = scores ? [scores[at + x], scores[at + y]] : [NaN, NaN];
      const ring = pointToPage(spot, u / meta.score_unit, v / meta.score_unit);
      dots.push({
        ...{ plot, row, shared: onX || onY, ring: holds(plot, ...ring) ? ring : null },
        x: onX && px > plot.x && px < plot.x + plot.w ? px : null,
        y: onY && py > plot.y && py < plot.y + plot.h ? py : null,
      });
    }
  }
  return dots;
}

/** @param {Stage} stage */
export function drawGhosts(stage) {
  const { context, rows, palette } = stage;
  for (const { plot, row, shared, x, y, ring } of ghosts(stage)) {
    const [radius, bottom] = [Math.min(2.5, 0.8 + plot.w / 160), plot.y + plot.h];
    context.globalAlpha = shared ? 0.75 : 0.4;
    trace(context, { colour: cssOf(palette, rows.codes[row]) }, () => {
      if (x !== null) context.moveTo(x, bottom);
      if (x !== null) context.lineTo(x, bottom - 5);
      if (y !== null) context.moveTo(plot.x, y);
      if (y !== null) context.lineTo(plot.x + 5, y);
      if (!ring) return;
      context.moveTo(ring[0] + radius, ring[1]);
      context.arc(...ring, radius, 0, 7);
    });
  }
  context.globalAlpha = 1;
}

/** Draw rings around the selected rows if there are few. @param {Stage} stage */
export function drawRings(stage) {
  const { context, theme, rows, placed } = stage;
  if (!rows.selected || rows.selected > FEW || stage.morph || stage.tour) return;
  const points = pointsOf(stage, selectedOf(stage).rows);
  for (const spot of placed)
    for (const [, u, v] of points.get(spot.key) ?? []) {
      const at = pointToPage(spot, u, v);
      const ring = () => context.arc(...at, Math.min(9, 3 + spot.plot.w / 40), 0, 7);
      if (holds(spot.plot, ...at)) trace(context, { colour: theme.primary, width: 2 }, ring);
    }
}
