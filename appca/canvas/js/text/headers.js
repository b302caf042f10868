/** Words of panels: names, counts, ticks and axes, and the pictures and chips of components. */

import { clamp, toPage, touches, header, pointToPage } from '../layout/geometry.js';
import { componentName, grouped, panelTitle, signed, ticks } from '../scene/names.js';
import { HIDDEN, SELECTED } from '../scene/rows.js';
import { cut, font, widthOf, write } from '../parts/dom.js';

/** @type {WeakMap<object, {key: string, count: number, kept: number}>} selected and kept rows of a panel */
const counted = new WeakMap();

/** @param {Stage} stage @param {Pick<Placed, 'part' | 'panel'>} spot */
export function selectedIn(stage, { part: { layout }, panel }) {
  const { rows } = stage;
  const key = `${rows.flagsChanged} ${layout.name}`;
  const cached = counted.get(panel);
  if (cached?.key === key || (cached && stage.moving)) return cached;
  const counts = { key, count: 0, kept: 0 };
  for (let i = panel.start; i < panel.start + panel.count; i += 1) {
    const flags = rows.flags[layout.rows[i]];
    counts.count += flags & SELECTED;
    counts.kept += flags & HIDDEN ? 0 : 1;
  }
  counted.set(panel, counts);
  return counts;
}

/** @param {Stage} stage */
export function drawNames(stage) {
  const { context, theme, rows, placed } = stage;
  for (const spot of placed) {
    const { card, panel, part, strength, open, view } = spot;
    if (card.w < 44) continue;
    const tour = stage.tour?.hides(spot) ? stage.tour.title(stage.meta) : null;
    const size = open
      ? 15
      : part.inset
        ? 13
        : Math.min(
            clamp(card.w * (panel.name.length > 6 ? 0.128 : 0.142), 9, 13),
            Math.max(9, (1.55 * card.w) / panel.name.length),
          );
    const top = card.y + (open ? 10 : clamp((header(card.h) - size) / 2, 1.5, 7));
    if (top < view.rect.y - 20) continue;
    context.globalAlpha = strength * (stage.morph?.view === view ? stage.morph.t : 1);
    const left = card.x + (open ? 14 : Math.min(10, card.w * 0.05));
    const style = font(size, 600);
    if (open && !tour) continue; // the bar above says it
    const named = panelTitle(stage.meta, panel);
    const fits = widthOf(context, named, style) < card.w - 4 - 2 * (left - card.x);
    const title = tour?.name ?? (part.inset ? 'Map' : fits ? named : panel.name);
    const used = widthOf(context, title, style);
    if (used > card.w - 4) continue; // no room for words
    write(context, title, left, top, { style, colour: theme.text });
    const many = rows.selected || rows.hidden ? selectedIn(stage, spot) : null;
    const all = many && rows.hidden ? many.kept : panel.count;
    const picked = rows.selected && many?.count ? `${grouped(many.count)} of ` : '';
    const text = tour
      ? tour.about
      : part.inset
        ? `${panel.name} of all rows`
        : picked && card.w > 120
          ? picked + grouped(all)
          : grouped(picked && many ? many.count : all);
    const plain = font(part.inset || open ? 12.5 : Math.min(12, size) - 0.5);
    const room = card.w - used - (left - card.x) * 2 - 3;
    if (widthOf(context, text, plain) > room) continue;
    const look = { style: plain, colour: picked && !part.inset ? theme.primary : theme.soft };
    if (part.inset || open) write(context, text, left + used + 8, top + (open ? 2.5 : 0.5), look);
    else
      write(
        context,
        text,
        card.x + card.w - (left - card.x),
        top + (size - Math.min(12, size)) / 2,
        { ...look, align: 'right' },
      );
  }
  context.globalAlpha = 1;
}

/** Ticks and axis names stand beside the plot of the opened panel, where no data are. @param {Stage} stage */
export function drawAxes(stage) {
  const { context, theme, meta, placed } = stage;
  const spot = placed.find(({ open, strength }) => open && strength > 0.5);
  if (!spot || spot.card.w < 300 || !spot.panel.axes.length) return;
  const shown = stage.tour?.shown(spot) ?? spot;
  const { plot, range, card, panel } = shown;
  const unit = meta.score_unit;
  const look = { style: font(11.5), colour: theme.faint };
  const across = ticks(range[0] * unit, range[1] * unit, plot.w / 90);
  for (const value of across.values) {
    const [x] = pointToPage(shown, value / unit, 0);
    const text = signed(value, across.digits);
    write(context, text, x, plot.y + plot.h + 8, { ...look, align: 'center' });
  }
  const up = ticks(range[2] * unit, range[3] * unit, plot.h / 70);
  for (const value of up.values) {
    const [, y] = pointToPage(shown, 0, value / unit);
    write(context, signed(value, up.digits), plot.x - 8, y - 6, { ...look, align: 'right' });
  }
  if (stage.tour) return;
  const bold = { style: font(12.5, 600), colour: theme.text };
  const more = panel.components.length > 2 ? ' ▾' : ''; // a click shows the next one
  panel.axes.forEach((component, i) => {
    const text = i
      ? `↑ ${componentName(meta, component)}${more}`
      : `${componentName(meta, component)} →${more}`;
    const side = stage.pictures.there ? 22 : 0;
    const wide = widthOf(context, text, bold.style) + side + 6;
    const [left, top] = i
      ? [card.x + 12, card.y + 8]
      : [card.x + card.w - 14 - wide, plot.y + plot.h + 3];
    context.fillStyle = theme.panel;
    context.fillRect(left - 6, top, wide + 8, 22);
    if (side) stage.pictures.draw(component, { x: left, y: top, w: side, h: side });
    write(context, text, left + side + 6, top + 4, bold);
  });
}

/** The sheet of component pictures. */
export class Pictures {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {ImageBitmap | null} */ this.sheet = null;
  }

  /** Fetch the sheet of the present scene. */
  async load() {
    const { scene } = this.stage;
    this.sheet = null;
    const sheet = await scene.pictures();
    if (!sheet || this.stage.scene !== scene) return;
    this.sheet = sheet;
    this.stage.schedule();
  }

  /** @param {number} component @param {Rect} to @param {CanvasRenderingContext2D} [into] */
  draw(component, to, into = this.stage.context) {
    const { meta, dark, theme } = this.stage;
    const info = meta.component_pictures;
    const place = component + (dark ? meta.components.length : 0);
    into.save();
    into.beginPath();
    into.roundRect(to.x, to.y, to.w, to.h, Math.min(8, to.w * 0.16));
    into.fillStyle = theme.panel;
    into.fill();
    if (this.sheet && info) {
      const { cell, columns } = info;
      const [h, w] = info.tile;
      into.clip();
      into.drawImage(
        this.sheet,
        (place % columns) * cell + ((cell - w) >> 1),
        Math.floor(place / columns) * cell + ((cell - h) >> 1),
        w,
        h,
        to.x,
        to.y,
        to.w,
        to.h,
      );
    }
    into.strokeStyle = theme.line;
    into.lineWidth = 1;
    into.stroke();
    into.restore();
    if (!this.sheet && into === this.stage.context)
      write(
        into,
        `${meta.components[component].number}`,
        to.x + to.w / 2,
        to.y + to.h / 2 - to.w * 0.19,
        { style: font(Math.max(10, to.w * 0.34), 600), colour: theme.soft, align: 'center' },
      );
  }

  get there() {
    return this.sheet !== null;
  }
}

/** @param {Stage} stage */
export function drawHeaders(stage) {
  for (const view of stage.views) {
    const { context, theme, meta, pictures } = stage;
    if (view.opened || !view.arrangement.diagonal.length) continue;
    context.save();
    context.beginPath();
    context.rect(view.rect.x, view.rect.y, view.rect.w, view.rect.h);
    context.clip();
    context.globalAlpha =
      (view.from && view.shift < 1 ? view.shift : 1) *
      (stage.morph?.view === view ? stage.morph.t : 1);
    for (const { component, rect } of view.arrangement.diagonal) {
      const at = toPage(view.cam, view.rect, rect);
      if (weights(stage, component, at)) {
        chip(stage, component, at.x + at.w, at.y);
        continue;
      }
      if (!touches(at, view.rect)) continue;
      const side = Math.min(at.w * 0.78, 150);
      const cx = at.x + at.w / 2;
      const style = font(clamp(at.w * 0.17, 10.5, 14), 600);
      const text = cut(context, componentName(meta, component), at.w - 4, style);
      const words =
        pictures.there || meta.components[component].name ? Math.min(14, at.w * 0.17) + 4 : 0;
      const top = at.y + (at.h - side - words) / 2;
      pictures.draw(component, { x: cx - side / 2, y: top, w: side, h: side });
      chip(stage, component, cx + side / 2, top);
      const look = /** @type {const} */ ({ style, colour: theme.text, align: 'center' });
      if (words && at.w > 26) write(context, text, cx, top + side + 4, look);
    }
    if (view.cam.k > view.home.k * 1.3) rulers(stage, view);
    context.restore();
  }
}

/** For a while a dashed chip says what a component was before. @param {Stage} stage @param {number} component @param {number} right @param {number} top */
function chip({ context, theme, options, cameUntil }, component, right, top) {
  const text = options.came?.[component];
  if (!text || performance.now() > cameUntil) return;
  const style = font(11, 600);
  const w = widthOf(context, text, style) + 12;
  context.save();
  context.setLineDash([3, 2]);
  context.fillStyle = theme.panel;
  context.strokeStyle = theme.primary;
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(right - w, top, w, 18, 9);
  context.fill();
  context.stroke();
  context.restore();
  write(context, text, right - w / 2, top + 3, { style, colour: theme.text, align: 'center' });
}

const LINE = 17; // px of a column's name

/** Name the columns of a table that weigh most, over bars as long as their weights; false where there is no room. @param {Stage} stage @param {number} component @param {Rect} at */
function weights({ context, meta, theme }, component, at) {
  const { columns = [] } = meta.components[component];
  const w = Math.min(at.w * 1.15, 230);
  const shown = columns.slice(0, Math.floor((at.h - 24) / LINE));
  if (w < 84 || shown.length < 2) return false;
  const [x, y] = [at.x + (at.w - w) / 2, at.y + (at.h - 24 - shown.length * LINE) / 2];
  write(context, cut(context, componentName(meta, component), w, font(13, 600)), x, y, {
    style: font(13, 600),
    colour: theme.text,
  });
  shown.forEach(([name, weight], i) => {
    const top = y + 22 + i * LINE;
    context.fillStyle = weight < 0 ? theme.below : theme.above;
    context.beginPath();
    context.roundRect(x, top, Math.max(3, Math.abs(weight) * w), LINE - 3, 3);
    context.fill();
    write(context, cut(context, name, w - 8, font(11)), x + 5, top + 2, {
      style: font(11),
      colour: theme.text,
    });
  });
  return true;
}

const [TOP, LEFT, TOOLS] = [40, 58, 356]; // of the rulers, and what the tools take of them

/** Zoomed in, pictures of columns and rows stand on rulers at the edges, where no data are. @param {Stage} stage @param {View} view */
function rulers(stage, view) {
  const { context, theme, meta, pictures } = stage;
  const { rect, cam } = view;
  const { diagonal } = view.arrangement;
  context.fillStyle = theme.ground;
  context.fillRect(rect.x, rect.y, rect.w, TOP);
  context.fillRect(rect.x, rect.y, LEFT, rect.h);
  const style = font(12.5, 600);
  const side = 28;
  for (const { component, rect: world } of diagonal) {
    const at = toPage(cam, rect, world);
    const cx = middle(at.x - at.w * 0.1, at.x + at.w * 1.1, rect.x + LEFT, rect.x + rect.w);
    const cy = middle(at.y - at.h * 0.1, at.y + at.h * 1.1, rect.y + TOP, rect.y + rect.h - 120);
    const text = componentName(meta, component);
    const w = side + (pictures.there ? 6 + widthOf(context, text, style) : 0);
    if (component > 0 && cx - w / 2 > rect.x + LEFT && cx + w / 2 < rect.x + rect.w - TOOLS) {
      pictures.draw(component, { x: cx - w / 2, y: rect.y + 6, w: side, h: side });
      if (pictures.there)
        write(context, text, cx - w / 2 + side + 6, rect.y + 14, { style, colour: theme.text });
    }
    if (component < diagonal.length - 1 && cy > rect.y + TOP + 30) {
      const big = 36;
      pictures.draw(component, {
        x: rect.x + (LEFT - big) / 2,
        y: cy - big / 2 - 8,
        w: big,
        h: big,
      });
      if (pictures.there)
        write(
          context,
          `${meta.components[component].number}`,
          rect.x + LEFT / 2,
          cy + big / 2 - 4,
          { style, colour: theme.text, align: 'center' },
        );
    }
  }
}

/** The middle of the part of a stretch that is in sight. @param {number} low @param {number} high @param {number} from @param {number} to */
const middle = (low, high, from, to) =>
  high < from || low > to ? -1e4 : (Math.max(low, from) + Math.min(high, to)) / 2;
