import { axisKey } from './axes.js';
import { decodeFrame, restoreParts } from './bytes.js';
import { unpackMask } from './rows.js';

/**
 * From frames to what the explorer works with.
 */

/** The message of a rerun: colours, selection, view, names of parcels. */
export function readMessage(data) {
  const { header, parts } = decodeFrame(new Uint8Array(data));
  return {
    rows: header.rows,
    parcels: header.parcels,
    view: header.view,
    seen: header.seen,
    colour: { ...header.colour, codes: parts[0] },
    selection: header.selected ? unpackMask(parts[1], header.rows) : null,
  };
}

/** Panels and axes out of the geometry parcel. */
export function readGeometry(bytes) {
  const { header, parts } = decodeFrame(bytes);
  const panels = restoreParts(header.panels, parts);
  restoreParts(header.traces, parts).forEach((trace, number) => {
    Object.assign(panels[number], {
      trace,
      rows: trace.customdata,
      x: trace.x,
      y: trace.y,
      xKey: axisKey('x', number),
      yKey: axisKey('y', number),
      plates: [], // images drawn, see overlay.js
      cellBoxes: [],
      frame: null, // see axes.js
    });
  });
  return { panels, axes: header.axes, fill: header.fill };
}

/** How the sprite sheets are divided, and the priority of every row. */
export function readOrder(bytes) {
  const { header, parts } = decodeFrame(bytes);
  return { ...header, priority: parts[0] };
}

/** Columns of the hover card. */
export function readHover(bytes) {
  const { header, parts } = decodeFrame(bytes);
  return restoreParts(header.columns, parts);
}

/** Names of all rows. */
export function readIds(bytes) {
  return JSON.parse(new TextDecoder().decode(decodeFrame(bytes).parts[0]));
}

/**
 * Whether the selection that came with a message is to be taken: not when the person has made a
 * newer one that Python had not seen when it sent the message.
 *
 * @param {{mount: string, number: number}} local
 * @param {?[string, number]} seen
 */
export function acceptsSelection(local, seen) {
  if (local.number === 0) return true;
  return seen !== null && seen[0] === local.mount && seen[1] >= local.number;
}
