/** Text of panels (names, counts, ticks, axes), and pictures and chips of components. */

import { box, clamp, header, pointToPage, toPage, touches } from '../layout/geometry.js';
import { cut, font, trace, widthOf, write } from '../parts/dom.js';
import { componentName, grouped, panelTitle, signed, ticks } from '../scene/names.js';
import { HIDDEN, SELECTED } from '../scene/rows.js';

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
  const { context, theme, rows, placed, meta, morph } = stage;
  /** @type {View | null} */ let within = null;
  context.save();
  for (const spot of placed) {
    const { card, panel, part, strength, open, view } = spot;
    if (within !== view) clipTo(context, (within = view));
    const tour = stage.tour?.hides(spot) ? stage.tour.title(meta) : null;
    if (card.w < 44 || (open && !tour)) continue; // the bar above names the open panel
    const { length } = panel.name;
    const usual = clamp(card.w * (length > 6 ? 0.128 : 0.142), 9, 13);
    const small = Math.min(usual, Math.max(9, (1.55 * card.w) / length));
    const size = open ? 15 : part.inset ? 13 : small;
    const top = card.y + (open ? 10 : clamp((header(card.h) - size) / 2, 1.5, 7));
    if (top < view.rect.y - 20) continue;
    context.globalAlpha = strength * (morph?.view === view ? morph.t : 1);
    const pad = open ? 14 : Math.min(10, card.w * 0.05);
    const style = font(size, 600);
    const named = panelTitle(meta, panel);
    const many = rows.selected || rows.hidden ? selectedIn(stage, spot) : null;
    const all = many && rows.hidden ? many.kept : panel.count;
    const picked = rows.selected ? (many?.count ?? 0) : 0;
    const of = card.w > 120 ? ` of ${grouped(all)}` : '';
    const count = picked ? grouped(picked) + of : grouped(all);
    const text = tour?.about ?? (part.inset ? `${panel.name} of all rows` : count);
    const beside = part.inset || open; // otherwise at the right edge
    const plain = font(beside ? 12.5 : Math.min(12, size) - 0.5);
    const free = card.w - widthOf(context, text, plain) - 2 * pad - 3;
    const shorter = [named, named.replace(` ${panel.name}`, '')];
    const fitting = shorter.find((words) => widthOf(context, words, style) < free) ?? panel.name;
    const title = tour?.name ?? (part.inset ? 'Map' : fitting);
    const used = widthOf(context, title, style);
    if (used > card.w - 4) continue; // no space for text
    write(context, title, card.x + pad, top, { style, colour: theme.text });
    if (part.layout.feet && !open && !panel.other) drawFoot(stage, spot, pad);
    if (used > free) continue;
    const colour = picked && !part.inset ? theme.primary : theme.soft;
    const at = beside ? card.x + pad + used + 8 : card.x + card.w - pad;
    const down = open ? 2.5 : beside ? 0.5 : (size - Math.min(12, size)) / 2;
    const align = beside ? 'left' : 'right';
    write(context, text, at, top + down, { style: plain, colour, align });
  }
  context.restore();
}

/** Restrict later drawing to a view. @param {CanvasRenderingContext2D} context @param {View} view */
function clipTo(context, { rect: { x, y, w, h } }) {
  context.restore();
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
}

/** Draw the components of a panel's axes, and its other components, below the panel. @param {Stage} stage @param {Placed} spot @param {number} pad */
function drawFoot({ context, meta, pictures, theme }, { card, panel, part }, pad) {
  const high = header(card.h);
  const side = pictures.sheet ? high - 2 : 0;
  const style = font(clamp(0.62 * high, 8, 12));
  const [y, look] = [card.y + card.h - high, { style, colour: theme.soft }];
  for (const [i, names] of part.layout.axes?.entries() ?? []) {
    const name = names.find((text) => widthOf(context, text, style) < card.w / 2 - pad - 24);
    const x = card.x + pad + (i * card.w) / 2;
    if (name) write(context, `${name} ${'→↑'[i]}`, x, (i ? card.y : y) + 0.12 * high, look);
  }
  if (part.layout.axes) return;
  const others = panel.components.filter((k) => !panel.axes.includes(k));
  const marks = [...panel.axes, ...others].map((k, i) => [k, ['→', '↑'][i] ?? '']);
  const room = (card.w - 2 * pad) / marks.length;
  const numbers = marks.map(([k, mark]) => `${meta.components[+k].number}${mark}`);
  const long = marks.map(([k, mark], i) => {
    const names = meta.components[+k].columns
      ?.slice(0, 2)
      .map(([name, w]) => (w < 0 ? '−' : '') + name);
    return names?.length ? `${parseInt(numbers[i])}: ${names.join(', ')} ${mark}` : '';
  });
  const texts = long.every((t) => t && widthOf(context, t, style) < room - 9) ? long : numbers;
  const wide = Math.max(...texts.map((text) => widthOf(context, text, style))) + side + 3;
  marks.forEach(([k, mark], i) => {
    const x = card.x + pad + i * Math.min(room, wide + 6);
    if (side) pictures.draw(+k, box(x, y, side, side));
    write(context, wide > room && side ? `${mark}` : texts[i], x + side + 2, y + 0.12 * high, look);
  });
}

/** Draw ticks and axis names beside the plot of the opened panel, where there are no data. @param {Stage} stage */
export function drawAxes(stage) {
  const { context, theme, meta, placed, pictures, tour } = stage;
  const spot = placed.find(({ open, strength }) => open && strength > 0.5);
  if (!spot || spot.card.w < 300 || !spot.panel.axes.length) return;
  const shown = tour?.shown(spot) ?? spot;
  const { plot, range, card, panel } = shown;
  const unit = meta.score_unit;
  const bottom = plot.y + plot.h;
  const look = { style: font(11.5), colour: theme.faint };
  for (const up of [0, 1]) {
    const room = up ? plot.h / 70 : plot.w / 90;
    const { values, digits } = ticks(range[2 * up] * unit, range[2 * up + 1] * unit, room);
    for (const value of values) {
      const [x, y] = pointToPage(shown, value / unit, value / unit);
      if (up) write(context, signed(value, digits), plot.x - 8, y - 6, { ...look, align: 'right' });
      else write(context, signed(value, digits), x, bottom + 8, { ...look, align: 'center' });
    }
  }
  if (tour) return;
  const bold = { style: font(12.5, 600), colour: theme.text };
  const more = panel.components.length > 2 ? ' ▾' : ''; // a click shows the next component
  panel.axes.forEach((component, up) => {
    const name = componentName(meta, component);
    const text = (up ? `↑ ${name}` : `${name} →`) + more;
    const side = pictures.sheet ? 22 : 0;
    const wide = widthOf(context, text, bold.style) + side + 6;
    const left = up ? card.x + 12 : card.x + card.w - 14 - wide;
    const top = up ? card.y + 8 : bottom + 3;
    context.fillStyle = theme.panel;
    context.fillRect(left - 6, top, wide + 8, 22);
    if (side) pictures.draw(component, box(left, top, side, side));
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

  /** Fetch the sheet of the current scene. */
  async load() {
    const { scene } = this.stage;
    this.sheet = null;
    const sheet = await scene.pictures();
    if (!sheet || this.stage.scene !== scene) return;
    this.sheet = sheet;
    this.stage.schedule();
  }

  /** @param {number} component @param {Rect} to @param {CanvasRenderingContext2D} [into] */
  draw(component, { x, y, w, h }, into = this.stage.context) {
    const { meta, dark, theme, context } = this.stage;
    const info = meta.component_pictures;
    into.save();
    into.beginPath();
    into.roundRect(x, y, w, h, Math.min(8, w * 0.16));
    into.fillStyle = theme.panel;
    into.fill();
    if (this.sheet && info) {
      const { cell, columns } = info;
      const [high, wide] = info.tile;
      const place = component + (dark ? meta.components.length : 0);
      const left = (place % columns) * cell + ((cell - wide) >> 1);
      const top = Math.floor(place / columns) * cell + ((cell - high) >> 1);
      into.clip();
      into.drawImage(this.sheet, left, top, wide, high, x, y, w, h);
    }
    [into.strokeStyle, into.lineWidth] = [theme.line, 1];
    into.stroke();
    into.restore();
    if (this.sheet || into !== context) return;
    const style = font(Math.max(10, w * 0.34), 600);
    const look = /** @type {const} */ ({ style, colour: theme.soft, align: 'center' });
    write(into, `${meta.components[component].number}`, x + w / 2, y + h / 2 - w * 0.19, look);
  }
}

/** @param {Stage} stage */
export function drawHeaders(stage) {
  const { context, theme, meta, pictures, morph } = stage;
  context.save();
  for (const view of stage.views) {
    const { rect, cam, arrangement, from, shift } = view;
    if (view.opened || !arrangement.diagonal.length) continue;
    clipTo(context, view);
    context.globalAlpha = (from && shift < 1 ? shift : 1) * (morph?.view === view ? morph.t : 1);
    for (const { component, rect: world } of arrangement.diagonal) {
      const at = toPage(cam, rect, world);
      if (weights(stage, component, at)) {
        chip(stage, component, at.x + at.w, at.y);
        continue;
      }
      if (!touches(at, rect)) continue;
      const side = Math.min(at.w * 0.78, 150);
      const cx = at.x + at.w / 2;
      const style = font(clamp(at.w * 0.17, 10.5, 14), 600);
      const said = pictures.sheet || meta.components[component].name;
      const words = said ? Math.min(14, at.w * 0.17) + 4 : 0;
      const top = at.y + (at.h - side - words) / 2;
      pictures.draw(component, box(cx - side / 2, top, side, side));
      chip(stage, component, cx + side / 2, top);
      if (!words || at.w <= 26) continue;
      const text = cut(context, componentName(meta, component), at.w - 4, style);
      write(context, text, cx, top + side + 4, { style, colour: theme.text, align: 'center' });
    }
    if (cam.k > view.home.k * 1.3) rulers(stage, view);
  }
  context.restore();
}

/** A dashed chip briefly shows a component's origin. @param {Stage} stage @param {number} component @param {number} right @param {number} top */
function chip({ context, theme, options, cameUntil }, component, right, top) {
  const text = options.came?.[component];
  if (!text || performance.now() > cameUntil) return;
  const style = font(11, 600);
  const w = widthOf(context, text, style) + 12;
  const look = { colour: theme.primary, dash: [3, 2], fill: theme.panel };
  trace(context, look, () => context.roundRect(right - w, top, w, 18, 9));
  write(context, text, right - w / 2, top + 3, { style, colour: theme.text, align: 'center' });
}

const LINE = 17; // height in px of a column's name

/** Draw the names of the columns with the largest weights over bars of the weights; return false if there is no space. @param {Stage} stage @param {number} component @param {Rect} at */
function weights({ context, meta, theme }, component, at) {
  const { columns = [] } = meta.components[component];
  const w = Math.min(at.w * 1.15, 230);
  const shown = columns.slice(0, Math.floor((at.h - 24) / LINE));
  const fits = shown.every(([name]) => widthOf(context, name, font(11)) < w - 8);
  if (w < 84 ? !fits || !shown.length : shown.length < 2) return false;
  const [x, y] = [at.x + (at.w - w) / 2, at.y + (at.h - 24 - shown.length * LINE) / 2];
  const say = (/** @type {string} */ text, /** @type {string} */ style, right = 0, down = 0) => {
    const short = cut(context, text, w - 1.6 * right, style);
    write(context, short, x + right, y + down, { style, colour: theme.text });
  };
  say(componentName(meta, component), font(13, 600));
  shown.forEach(([name, weight], i) => {
    context.fillStyle = weight < 0 ? theme.below : theme.above;
    context.beginPath();
    context.roundRect(x, y + 22 + i * LINE, Math.max(3, Math.abs(weight) * w), LINE - 3, 3);
    context.fill();
    say(name, font(11), 5, 24 + i * LINE);
  });
  return true;
}

const [TOP, LEFT, TOOLS] = [40, 58, 356]; // px for the rulers above and at the left; px for the tools
const [SMALL, BIG] = [28, 36]; // sides in px of pictures above and at the left

/** Draw the pictures of columns and rows at the edges when the view is zoomed in. @param {Stage} stage @param {View} view */
function rulers(stage, { rect, cam, arrangement: { diagonal } }) {
  const { context, theme, meta, pictures } = stage;
  const [right, bottom] = [rect.x + rect.w, rect.y + rect.h];
  const look = { style: font(12.5, 600), colour: theme.text };
  context.fillStyle = theme.ground;
  context.fillRect(rect.x, rect.y, rect.w, TOP);
  context.fillRect(rect.x, rect.y, LEFT, rect.h);
  for (const { component, rect: world } of diagonal) {
    const { x, y, w: wide, h } = toPage(cam, rect, world);
    const text = componentName(meta, component);
    const named = pictures.sheet ? 6 + widthOf(context, text, look.style) : 0;
    const left = middle(x - wide * 0.1, x + wide * 1.1, rect.x + LEFT, right) - (SMALL + named) / 2;
    const inside = left > rect.x + LEFT && left + SMALL + named < right - TOOLS;
    if (component > 0 && inside) {
      pictures.draw(component, box(left, rect.y + 6, SMALL, SMALL));
      if (named) write(context, text, left + SMALL + 6, rect.y + 14, look);
    }
    const cy = middle(y - h * 0.1, y + h * 1.1, rect.y + TOP, bottom - 120);
    if (component === diagonal.length - 1 || cy <= rect.y + TOP + 30) continue;
    pictures.draw(component, box(rect.x + (LEFT - BIG) / 2, cy - BIG / 2 - 8, BIG, BIG));
    const number = `${meta.components[component].number}`;
    const at = [rect.x + LEFT / 2, cy + BIG / 2 - 4];
    if (named) write(context, number, at[0], at[1], { ...look, align: 'center' });
  }
}

/** Return the middle of the visible part of an interval. @param {number} low @param {number} high @param {number} from @param {number} to */
const middle = (low, high, from, to) =>
  high < from || low > to ? -1e4 : (Math.max(low, from) + Math.min(high, to)) / 2;
