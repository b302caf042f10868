/** Name and count of each panel in the strip above its plot; ticks and axis names of the opened one. */

import { HIDDEN, SELECTED } from '../scene/rows.js';
import { componentName, grouped, panelTitle, signed, ticks } from '../scene/names.js';
import { header, pointToPage } from '../layout/place.js';
import { clamp } from '../layout/rect.js';
import { font, widthOf, write } from './write.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../layout/place.js').Placed} Placed */

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
