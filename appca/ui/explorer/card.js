import { element, readable } from './dom.js';
import { drawSprite } from './sprite.js';

/**
 * The hover card: the row's image, its id, and what is known of it.
 */

const IMAGE_SIDE = 112; // pixels

/**
 * Fill the card with a row and show it.
 *
 * @param {Object} explorer the state
 * @param {{number: number, place: number}} hit
 * @returns {boolean} false when the image is still to come
 */
export function fillCard(explorer, hit) {
  const { card } = explorer.dom;
  const panel = explorer.panels[hit.number];
  const row = panel.rows[hit.place];
  const heading = element('div', 'appca-card-id', idOf(explorer.hover, row));
  const lines = linesOf(explorer, panel, hit.place).map(lineElement);
  const table = element('dl', 'appca-card-lines');
  table.append(...lines.flat());
  const parts = [heading, table];
  let complete = true;
  if (explorer.order) {
    const { canvas, drawn } = cardImage(explorer, panel, hit.place);
    parts.unshift(canvas);
    complete = drawn;
  }
  card.replaceChildren(...parts);
  card.dataset.row = String(row);
  card.dataset.image = complete ? 'drawn' : 'waiting';
  card.hidden = false;
  return complete;
}

export function hideCard(card) {
  card.hidden = true;
  delete card.dataset.row;
}

/** Place the card beside the pointer, inside the box. */
export function placeCard(card, left, top, box) {
  const gap = 16;
  const fitsRight = left + gap + card.offsetWidth <= box.width;
  const x = fitsRight ? left + gap : left - gap - card.offsetWidth;
  const y = Math.min(Math.max(0, top - card.offsetHeight / 2), box.height - card.offsetHeight);
  card.style.transform = `translate(${Math.max(0, Math.round(x))}px, ${Math.round(y)}px)`;
}

/**
 * What a row is called: by its id, and while there is none by its number, which people count from 1.
 *
 * @param {?{ids: ?string[], countFromZero: boolean}} hover ids that only count are not sent
 * @param {number} row from 0
 * @returns {string}
 */
export function idOf(hover, row) {
  if (hover?.ids) return hover.ids[row];
  return hover?.countFromZero ? `id ${row}` : `row ${readable(row + 1)}`;
}

/** What the card says of a point: name and text of every line. */
export function linesOf({ hover, axes }, panel, place) {
  const row = panel.rows[place];
  const lines = (hover ? hover.columns : []).map((column) => [
    column.name,
    column.names ? (column.names[column.values[row]] ?? '–') : readable(column.values[row]),
  ]);
  const names = [axes[panel.xKey].title.text || 'x', axes[panel.yKey].title.text || 'y'];
  lines.push([names[0], readable(panel.x[place])], [names[1], readable(panel.y[place])]);
  if (panel.cells.length && panel.cells[panel.cellOf[place]]) {
    lines.push(['sign cell', panel.cells[panel.cellOf[place]].label]);
  }
  if (panel.hollow && panel.hollow[place]) lines.push(['membership', 'doubtful']);
  return lines;
}

function lineElement([name, text]) {
  return [element('dt', '', name), element('dd', '', text)];
}

function cardImage(explorer, panel, place) {
  const { store, order, theme } = explorer;
  const ratio = window.devicePixelRatio || 1;
  const canvas = element('canvas', 'appca-card-image');
  canvas.width = IMAGE_SIDE * ratio;
  canvas.height = IMAGE_SIDE * ratio;
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  context.imageSmoothingEnabled = order.tile[0] > IMAGE_SIDE;
  const tile = { store, order, row: panel.rows[place] };
  const box = { left: 0, top: 0, size: IMAGE_SIDE };
  const drawn = drawSprite(context, tile, box, { ink: theme.text, plate: null });
  return { canvas, drawn };
}
