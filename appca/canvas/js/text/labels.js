/** Words inside plots, placed when the picture rests where neither data nor other words are: sign cells, clusters, what lies beyond. */

import { imagesShown } from '../draw.js';
import { pointsIn } from '../gl/points.js';
import { touches, within, pointToPage } from '../layout/geometry.js';
import { countOf, grouped } from '../scene/names.js';
import { codesIn, countsOf, HIDDEN, mostly, ranked } from '../scene/rows.js';
import { cssOf } from '../theme.js';
import { ghosts } from './marks.js';
import { cut, font, widthOf, write } from '../parts/dom.js';

const CELL = 6; // px
const SAMPLE = 80000; // points looked at
const GAP = 3; // px between words

export class Occupancy {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.columns = Math.ceil(width / CELL) + 1;
    this.lines = Math.ceil(height / CELL) + 1;
    this.cells = new Uint16Array(this.columns * this.lines);
    /** @type {Rect[]} words that stand */ this.words = [];
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

  /** Points and images under a rectangle. @param {Rect} rect */
  under(rect) {
    let sum = 0;
    const right = Math.min(this.columns - 1, Math.floor((rect.x + rect.w) / CELL));
    const bottom = Math.min(this.lines - 1, Math.floor((rect.y + rect.h) / CELL));
    for (let line = Math.max(0, Math.floor(rect.y / CELL)); line <= bottom; line += 1) {
      for (let column = Math.max(0, Math.floor(rect.x / CELL)); column <= right; column += 1)
        sum += this.cells[line * this.columns + column];
    }
    return sum;
  }

  /** Take the first of these places that has no other words and no data. @param {Rect[]} places @param {Rect} inside @returns {Rect | null} */
  take(places, inside) {
    const free = places.find(
      (rect) =>
        within(rect, inside) &&
        !this.words.some((box) => touches(box, rect, GAP)) &&
        this.under(rect) === 0,
    );
    if (free) this.words.push(free);
    return free ?? null;
  }
}

/** What the picture has where, now. @param {Stage} stage @param {Placed[]} [placed] the panels looked at */
export function occupancyOf(stage, placed = stage.placed) {
  const occupancy = new Occupancy(stage.width, stage.height);
  const share = Math.min(1, SAMPLE / Math.max(1, pointsIn(placed)));
  for (const {
    part: { layout },
    panel,
    plot,
    range,
  } of placed) {
    const [kx, ky] = [plot.w / (range[1] - range[0]), plot.h / (range[3] - range[2])];
    const end = panel.start + Math.ceil(panel.count * share);
    for (let i = panel.start; i < end; i += 1) {
      const [dx, dy] = [(layout.xy[2 * i] - range[0]) * kx, (layout.xy[2 * i + 1] - range[2]) * ky];
      if (dx >= -1 && dy >= -1 && dx <= plot.w + 1 && dy <= plot.h + 1)
        occupancy.add(plot.x + dx, plot.y + plot.h - dy);
    }
  }
  const by = new Map(placed.map((spot) => [spot.key, spot]));
  for (const { wanted, px } of imagesShown(stage)) {
    wanted.panel.forEach((key, i) => {
      const spot = by.get(key);
      if (!spot) return;
      const [x, y] = pointToPage(spot, wanted.raw[4 * i], wanted.raw[4 * i + 1]);
      occupancy.cover({ x: x - px / 2, y: y - px / 2, w: px, h: px });
    });
  }
  for (const { ring } of ghosts(stage)) if (ring) occupancy.add(ring[0], ring[1]);
  return occupancy;
}

const SQUARE = 44; // px, in which points of a class are counted
const END = 24; // px of an image beside words
const LARGE = 250; // px of a plot that has words in it

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

/** "+2 −5", how many, mostly which: in the corner of its quadrant. @param {Stage} stage @param {Placed} spot @param {Occupancy} room @returns {Label[]} */
function signCells(stage, spot, room) {
  const { context, theme, rows, meta } = stage;
  const { axes } = spot.panel;
  const named = axes.some((index) => meta.components[index].name);
  if (axes.length < 2) return [];
  const ends = named || !stage.sheets ? [] : endsOf(spot);
  const { cells } = countsOf(spot.part.layout, spot.panel, rows, spot.range);
  const names = namesOf(stage);
  return cells.flatMap((cell, i) => {
    if (!cell.count) return [];
    const [right, top] = [i % 2, i >> 1];
    const said = mostly(cell, names);
    const lines = [
      {
        text: cut(
          context,
          axes
            .map((index, axis) => side(meta.components[index], axis ? top : right))
            .join(named ? ', ' : ' '),
          0.45 * spot.plot.w,
          font(12.5, 600),
        ),
        style: font(12.5, 600),
        colour: theme.text,
      },
      {
        text: `${countOf(meta, cell.count)}${said ? `, ${said}` : ''}`,
        style: font(11.5),
        colour: theme.soft,
      },
    ];
    const shown = ends.length ? [ends[right ? 1 : 0], ends[top ? 3 : 2]] : [];
    return corner(context, spot, room, lines, right, top, shown.length).map((made) => ({
      ...made,
      cell: i,
      ends: shown,
    }));
  });
}

/** "more Shoe" of a component that has a name, else "+3". @param {Component} component @param {number} high */
const side = ({ name, number }, high) =>
  name ? `${high ? 'more' : 'less'} ${name}` : `${high ? '+' : '−'}${number}`;

/** The rows of a panel with the lowest and highest score across, and up. @param {Placed} spot */
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

/** @param {CanvasRenderingContext2D} context @param {Placed} spot @param {Occupancy} room @param {Label['lines']} lines @param {number} right @param {number} top @param {number} pictures beside the first line @returns {Label[]} */
function corner(context, spot, room, lines, right, top, pictures) {
  const { plot } = spot;
  const widths = lines.map(({ text, style }) => widthOf(context, text, style));
  const w = Math.max(widths[0] + pictures * END, ...widths);
  const h = 32;
  const steps = [0, 1, 2, 3, 4, 5];
  const places = steps.flatMap((down) =>
    steps.map((in_) => ({
      x: right ? plot.x + plot.w - w - 10 - in_ * 24 : plot.x + 10 + in_ * 24,
      y: top ? plot.y + 8 + down * 16 : plot.y + plot.h - h - 8 - down * 16,
      w,
      h,
    })),
  );
  const [zx, zy] = pointToPage(spot, 0, 0);
  const quadrant = {
    x: right ? Math.max(plot.x, zx) : plot.x,
    y: top ? plot.y : Math.max(plot.y, zy),
    w: right ? plot.x + plot.w - Math.max(plot.x, zx) : zx - plot.x,
    h: top ? zy - plot.y : plot.y + plot.h - zy,
  };
  return placed(spot, room, places, quadrant, lines, right ? 'right' : 'left');
}

/** Names of classes that can name a place. @param {Stage} stage */
const namesOf = ({ colouring }) =>
  colouring?.kind === 'category' && !colouring.steps ? colouring.names : [];

/** The name of a class beside the place where it is densest. @param {Stage} stage @param {Placed} spot @param {Occupancy} room @returns {Label[]} */
function clusters(stage, spot, room) {
  const { context, rows, palette } = stage;
  const names = namesOf(stage);
  const { classes } = countsOf(spot.part.layout, spot.panel, rows, spot.range);
  const many = ranked(classes)
    .filter(([code, count]) => code < names.length && count > 0.04 * spot.panel.count)
    .slice(0, 14)
    .map(([code]) => code);
  const middles = densest(stage, spot, many);
  return many.flatMap((code, i) => {
    const middle = middles[i];
    if (!middle) return [];
    const [x, y] = middle;
    const style = font(13, 650);
    const text = names[code];
    const w = widthOf(context, text, style);
    const places = [];
    for (let far = 10; far < 110; far += 9) {
      for (let turn = 0; turn < 16; turn += 1) {
        const angle = (turn / 16) * 2 * Math.PI - Math.PI / 2;
        places.push({
          x: x + Math.cos(angle) * far - w / 2,
          y: y + Math.sin(angle) * far - 8,
          w,
          h: 15,
        });
      }
    }
    return placed(spot, room, places, spot.plot, [{ text, style, colour: cssOf(palette, code) }]);
  });
}

/** Where on the page each of some classes is densest: the middle of its points in the fullest square. @param {Stage} stage @param {Placed} spot @param {number[]} wanted codes @returns {([number, number] | null)[]} null where no two are close */
function densest({ rows: { codes, flags } }, spot, wanted) {
  const { panel, plot } = spot;
  const { layout } = spot.part;
  const { rect } = spot.view;
  const [left, top] = [Math.max(plot.x, rect.x), Math.max(plot.y, rect.y)]; // of what is seen
  const columns = Math.max(
    0,
    Math.ceil((Math.min(plot.x + plot.w, rect.x + rect.w) - left) / SQUARE),
  );
  const lines = Math.max(0, Math.ceil((Math.min(plot.y + plot.h, rect.y + rect.h) - top) / SQUARE));
  const place = new Int32Array(codesIn(codes)).fill(-1);
  wanted.forEach((code, i) => (place[code] = i * columns * lines));
  const counts = new Uint32Array(wanted.length * columns * lines);
  const sums = new Float64Array(2 * counts.length);
  const step = Math.max(1, Math.floor(panel.count / 20000));
  for (let i = panel.start; i < panel.start + panel.count; i += step) {
    const row = layout.rows[i];
    const start = place[codes[row]];
    if (start < 0 || flags[row] & HIDDEN) continue;
    const [x, y] = pointToPage(spot, layout.xy[2 * i], layout.xy[2 * i + 1]);
    const [column, line] = [Math.floor((x - left) / SQUARE), Math.floor((y - top) / SQUARE)];
    if (column < 0 || line < 0 || column >= columns || line >= lines) continue;
    const at = start + line * columns + column;
    counts[at] += 1;
    sums[2 * at] += x;
    sums[2 * at + 1] += y;
  }
  return wanted.map((_, i) => {
    const squares = counts.subarray(i * columns * lines, (i + 1) * columns * lines);
    const at = i * columns * lines + squares.indexOf(Math.max(...squares));
    return counts[at] > 1 ? [sums[2 * at] / counts[at], sums[2 * at + 1] / counts[at]] : null;
  });
}

/** How many points lie beyond an edge. @param {Stage} stage @param {Placed} spot @param {Occupancy} room @returns {Label[]} */
function beyond(stage, spot, room) {
  const { beyond: counts } = countsOf(spot.part.layout, spot.panel, stage.rows, spot.range);
  const { plot } = spot;
  const style = font(11.5);
  return counts.flatMap((count, edge) => {
    if (!count) return [];
    const more = `${grouped(count)} more`;
    const text = [`← ${more}`, `${more} →`, `↓ ${more}`, `↑ ${more}`][edge];
    const w = widthOf(stage.context, text, style);
    const places = [];
    for (let share = 0.5; share < 0.95; share += 0.04) {
      for (const s of [share, 1 - share]) {
        places.push({
          x: edge < 2 ? (edge ? plot.x + plot.w - w - 4 : plot.x + 4) : plot.x + s * plot.w,
          y: edge < 2 ? plot.y + s * plot.h : edge === 2 ? plot.y + plot.h - 18 : plot.y + 3,
          w,
          h: 14,
        });
      }
    }
    return placed(spot, room, places, plot, [{ text, style, colour: stage.theme.faint }]);
  });
}

/** A label in the first of some places that is free, if any is. @param {Placed} spot @param {Occupancy} room @param {Rect[]} places @param {Rect} inside @param {Label['lines']} lines @param {CanvasTextAlign} align @returns {Label[]} */
function placed({ key, plot, part: { layout } }, room, places, inside, lines, align = 'left') {
  const at = room.take(places, inside);
  if (!at) return [];
  const [u, v] = [(at.x - plot.x) / plot.w, (at.y - plot.y) / plot.h];
  return [{ key, layout, revision: layout.revision, u, v, lines, align, width: at.w }];
}

/** @param {Stage} stage @param {Label[]} labels */
export function drawLabels(stage, labels) {
  const { context, placed, theme } = stage;
  if (stage.morph || !labels.length) return;
  const by = new Map(placed.map((spot) => [spot.key, spot]));
  for (const { key, layout, revision, u, v, lines, align, width, ends = [] } of labels) {
    const spot = by.get(key);
    if (spot?.part.layout !== layout || layout.revision !== revision) continue; // words of what is gone
    if (spot.strength < 0.9 || stage.tour?.hides(spot)) continue;
    const x = spot.plot.x + u * spot.plot.w + (align === 'right' ? width : 0);
    lines.forEach(({ text, style, colour }, i) =>
      write(context, text, x, spot.plot.y + v * spot.plot.h + i * 17, {
        style,
        colour,
        halo: theme.panel,
        align,
      }),
    );
    const beside = widthOf(context, lines[0].text, lines[0].style) + 5;
    ends.forEach((row, i) => {
      const image = stage.sheets?.picture(stage.scene.tile[row], stage.dark);
      const left =
        align === 'right' ? x - beside - (ends.length - i) * END + 4 : x + beside + i * END;
      if (image) context.drawImage(image, left, spot.plot.y + v * spot.plot.h - 5, 20, 20);
    });
  }
}
