import { frameOf, toPixels } from './axes.js';
import { colourOf } from './colours.js';
import { bestPerCell, withoutOverlap } from './declutter.js';
import { drawNames } from './names.js';
import { hasSheet, placeOnSheet } from './sheets.js';
import { drawSprite } from './sprite.js';
import { legible, withOpacity } from './theme.js';

/**
 * The canvas over the plot: images on points, the lasso being drawn, a ring on the hovered point.
 */

/**
 * Redraw everything.
 *
 * @param {Object} explorer the state, see explorer.js
 * @returns {{drawn: number, missing: Set<number>}} images drawn, and sheets still to be asked for
 */
export function drawOverlay(explorer) {
  const fullLayout = explorer.dom.plot._fullLayout;
  const context = clearedContext(explorer.dom.canvas, fullLayout);
  const tally = { drawn: 0, missing: new Set() };
  explorer.panels.forEach((panel, number) => {
    panel.frame = frameOf(fullLayout, number);
    panel.plates = explorer.order && explorer.thumbnail > 0 ? choosePlates(explorer, panel) : [];
    drawPlates(context, explorer, panel, tally);
    drawNames(context, panel, explorer.theme);
  });
  if (explorer.hovered) drawRing(context, explorer);
  if (explorer.path) drawPath(context, explorer.path, explorer.theme.primary);
  return tally;
}

function clearedContext(canvas, { width, height }) {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.imageSmoothingQuality = 'high';
  return context;
}

/** Choose the images of one panel, the most important first. */
function choosePlates(explorer, panel) {
  const { order, selection } = explorer;
  const size = explorer.thumbnail;
  const rank = (place) => order.priority[panel.rows[place]];
  const shown = (place) => !selection || selection[panel.rows[place]] === 1;
  const places = bestPerCell({ x: panel.x, y: panel.y, rank, shown }, panel.frame, size);
  places.sort((a, b) => rank(a) - rank(b));
  const candidates = places.map((place) => {
    const [left, top] = toPixels(panel.frame, panel.x[place], panel.y[place]);
    return { place, left, top, size };
  });
  const clear = candidates.filter((candidate) => !isCovered(panel, candidate));
  return withoutOverlap(clear, size);
}

/** Whether an image would hide under a sign cell's button. */
function isCovered({ frame, cellBoxes }, { left, top, size }) {
  const [x, y] = [left - frame.left, top - frame.top];
  const half = size / 2;
  return cellBoxes.some(
    (box) =>
      x + half > box.left && x - half < box.right && y + half > box.top && y - half < box.bottom,
  );
}

function drawPlates(context, explorer, panel, tally) {
  const { frame } = panel;
  context.save();
  context.beginPath();
  context.rect(frame.left, frame.top, frame.width, frame.height);
  context.clip();
  for (const plate of panel.plates.slice().reverse()) {
    if (drawPlateOf(context, explorer, panel, plate)) tally.drawn += 1;
    else noteMissing(explorer, panel, plate, tally.missing);
  }
  context.restore();
}

function drawPlateOf(context, explorer, panel, plate) {
  const { store, order, theme, colour } = explorer;
  const { place, left, top, size } = plate;
  const tile = { store, order, row: panel.rows[place] };
  const box = { left: left - size / 2, top: top - size / 2, size };
  const rim = colourOf(panel, place, colour);
  return drawSprite(context, tile, box, {
    ink: legible(rim, theme),
    rim,
    plate: theme.background,
    dashed: Boolean(panel.hollow && panel.hollow[place]),
    width: order.style === 'ink' ? 1.25 : 2,
  });
}

function noteMissing({ store, order }, panel, { place }, missing) {
  const { sheet } = placeOnSheet(order, order.priority[panel.rows[place]]);
  if (!hasSheet(store, order, sheet)) missing.add(sheet);
}

function drawRing(context, { hovered, panels, theme, thumbnail }) {
  const panel = panels[hovered.number];
  const [left, top] = toPixels(panel.frame, panel.x[hovered.place], panel.y[hovered.place]);
  const onPlate = panel.plates.some((plate) => plate.place === hovered.place);
  context.save();
  context.strokeStyle = theme.text;
  context.lineWidth = 2;
  context.beginPath();
  if (onPlate) {
    const size = thumbnail + 5;
    context.roundRect(left - size / 2, top - size / 2, size, size, size * 0.2);
  } else context.arc(left, top, 6, 0, 2 * Math.PI);
  context.stroke();
  context.restore();
}

function drawPath(context, path, colour) {
  context.save();
  context.beginPath();
  path.forEach(([left, top], i) => (i ? context.lineTo(left, top) : context.moveTo(left, top)));
  context.closePath();
  context.fillStyle = withOpacity(colour, 0.12);
  context.fill();
  context.setLineDash([5, 4]);
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.stroke();
  context.restore();
}
