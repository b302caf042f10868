import { placeOnSheet, readySheet } from './sheets.js';

/**
 * Draw one row's image on a canvas: as strokes in a colour on a plate, or as a photograph.
 */

let scratch = null; // one small canvas to tint strokes on

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Object} tile {store, order, row} what to draw
 * @param {{left: number, top: number, size: number}} box where, pixels
 * @param {{ink: string, rim: string, plate: ?string, dashed: boolean, width: number}} look
 *   colours of strokes, rim and ground, and the rim's line; without a plate: the image alone
 * @returns {boolean} false when the sheet is not there yet
 */
export function drawSprite(context, tile, box, look) {
  const { store, order, row } = tile;
  const source = placeOnSheet(order, order.priority[row]);
  const sheet = readySheet(store, order, source.sheet);
  if (!sheet) return false;
  if (look.plate) drawPlate(context, box, look);
  const inner = imageBox(box, source, look.plate ? box.size * 0.06 : 0);
  context.save();
  if (look.plate) clipRounded(context, inner);
  const image = order.style === 'ink' ? tinted(sheet, source, look.ink) : sheet;
  const [left, top] = order.style === 'ink' ? [0, 0] : [source.left, source.top];
  context.drawImage(
    image, left, top, source.width, source.height, inner.left, inner.top, inner.width, inner.height,
  );
  context.restore();
  if (look.plate) drawRim(context, box, look);
  return true;
}

/** Fit an image into a square box with a rim, keeping its proportions. */
export function imageBox(box, source, rim) {
  const room = box.size - 2 * rim;
  const scale = room / Math.max(source.width, source.height);
  const width = source.width * scale;
  const height = source.height * scale;
  return {
    left: box.left + (box.size - width) / 2,
    top: box.top + (box.size - height) / 2,
    width,
    height,
  };
}

function tinted(sheet, source, colour) {
  scratch ??= document.createElement('canvas');
  scratch.width = source.width;
  scratch.height = source.height;
  const context = scratch.getContext('2d');
  context.drawImage(
    sheet, source.left, source.top, source.width, source.height, 0, 0, source.width, source.height,
  );
  context.globalCompositeOperation = 'source-in';
  context.fillStyle = colour;
  context.fillRect(0, 0, source.width, source.height);
  return scratch;
}

function roundedPath(context, left, top, width, height, size) {
  context.beginPath();
  context.roundRect(left, top, width, height, size * 0.18);
}

function drawPlate(context, box, look) {
  context.save();
  context.globalAlpha = 0.92;
  context.fillStyle = look.plate;
  roundedPath(context, box.left, box.top, box.size, box.size, box.size);
  context.fill();
  context.restore();
}

function clipRounded(context, inner) {
  roundedPath(context, inner.left, inner.top, inner.width, inner.height, inner.width * 0.8);
  context.clip();
}

function drawRim(context, box, look) {
  context.save();
  context.strokeStyle = look.rim;
  context.lineWidth = look.width;
  context.globalAlpha = 0.9;
  if (look.dashed) context.setLineDash([3, 2]);
  roundedPath(context, box.left, box.top, box.size, box.size, box.size);
  context.stroke();
  context.restore();
}
