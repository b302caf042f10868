import { decodeFrame } from './bytes.js';
import { announce } from './store.js';

/**
 * Sprite sheets on the page: PNG bytes in parcels, decoded when first drawn, the oldest forgotten.
 */

const MOST_PIXELS = 48e6; // of decoded sheets, about 190 MB

/**
 * A sheet ready to draw, or null. Starts the decoding when its bytes are there.
 *
 * @param {Object} store see store.js
 * @param {{set: string, style: string}} order
 * @param {number} number
 * @returns {?CanvasImageSource}
 */
export function readySheet(store, order, number) {
  const name = sheetName(order, number);
  const known = store.sheets.get(`${name}:${order.style}`);
  if (known) return known.image;
  const parcel = store.parcels.get(name);
  if (parcel) startDecoding(store, `${name}:${order.style}`, parcel, order.style);
  return null;
}

/** Whether the bytes of a sheet are on the page already. */
export function hasSheet(store, order, number) {
  const name = sheetName(order, number);
  return store.parcels.has(name) || store.sheets.has(`${name}:${order.style}`);
}

/** The sheet that holds a row, and where: its priority divided by the sheet's size. */
export function placeOnSheet(order, priority) {
  const [height, width] = order.tile;
  const rest = priority % order.perSheet;
  return {
    sheet: Math.floor(priority / order.perSheet),
    left: (rest % order.columns) * width,
    top: Math.floor(rest / order.columns) * height,
    width,
    height,
  };
}

function sheetName(order, number) {
  return `sheet:${order.set}:${number}`;
}

function startDecoding(store, key, parcel, style) {
  store.sheets.set(key, { image: null });
  const [png] = decodeFrame(parcel.bytes).parts;
  const options = { colorSpaceConversion: 'none', premultiplyAlpha: 'none' };
  createImageBitmap(new Blob([png], { type: 'image/png' }), options)
    .then((bitmap) => {
      store.sheets.set(key, { image: style === 'ink' ? inkMask(bitmap) : bitmap });
      forgetOldest(store);
      announce(store);
    })
    .catch(() => store.sheets.delete(key));
}

/** Turn grey levels into opacity, so that strokes can be filled with any colour. */
function inkMask(bitmap) {
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext('2d');
  context.drawImage(bitmap, 0, 0);
  const pixels = context.getImageData(0, 0, bitmap.width, bitmap.height);
  inkPixels(pixels.data);
  context.putImageData(pixels, 0, 0);
  bitmap.close();
  return canvas;
}

/** @param {Uint8ClampedArray} data RGBA, changed in place to white with the grey as opacity */
export function inkPixels(data) {
  for (let i = 0; i < data.length; i += 4) {
    data[i + 3] = data[i];
    data[i] = 255;
    data[i + 1] = 255;
    data[i + 2] = 255;
  }
}

function forgetOldest(store) {
  let pixels = 0;
  for (const { image } of store.sheets.values()) pixels += image ? image.width * image.height : 0;
  for (const [key, { image }] of store.sheets) {
    if (pixels <= MOST_PIXELS) return;
    if (!image) continue;
    pixels -= image.width * image.height;
    store.sheets.delete(key);
  }
}
