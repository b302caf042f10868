/** Which parts of the page have data on them, and the one placer that gives words their room. */

import { imagesShown } from '../draw.js';
import { pointsIn } from '../gl/points.js';
import { pointToPage } from '../layout/place.js';
import { touches, within } from '../layout/rect.js';
import { ghosts } from './ghosts.js';

/** @typedef {import('../types.js').Rect} Rect @typedef {import('../stage.js').Stage} Stage */

const CELL = 6; // px
const SAMPLE = 80000; // points looked at
const GAP = 3; // px between words

export class Occupancy {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.columns = Math.ceil(width / CELL) + 1;
    this.lines = Math.ceil(height / CELL) + 1;
    this.cells = new Uint16Array(this.columns * this.lines);
    /** @type {Rect[]} words that stand */
    this.words = [];
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

/** What the picture has where, now. @param {Stage} stage @param {import('../layout/place.js').Placed[]} [placed] the panels looked at */
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
