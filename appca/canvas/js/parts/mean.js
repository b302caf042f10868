/** The mean image of a sign cell, from the images that are loaded, while the hand is on its words. */

import { holds } from '../layout/rect.js';
import { element, paint, quiet } from './dom.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../text/labels.js').Label} Label @typedef {import('../layout/place.js').Placed} Placed */
/** @typedef {{x: number, y: number, spot: Placed, row: number, said: Label['lines'], cell: number}} CellFound */

const MOST = 240; // images in a mean

/** The sign cell whose words are at a place. @param {Stage} stage @param {Label[]} labels @param {number} x @param {number} y @returns {CellFound | null} */
export function cellAt(stage, labels, x, y) {
  for (const { key, u, v, width, lines, cell } of labels) {
    const spot = stage.placed.find((placed) => placed.key === key);
    if (!spot || cell === undefined) continue;
    const [left, top] = [spot.plot.x + u * spot.plot.w, spot.plot.y + v * spot.plot.h];
    if (holds({ x: left, y: top, w: width, h: 32 }, x, y, 3))
      return { x: left + width / 2, y: top + 16, spot, row: -1, said: lines, cell };
  }
  return null;
}

/** @param {Stage} stage @param {CellFound} hit @param {HTMLCanvasElement} picture @param {HTMLElement} lines */
export function fillMean(
  { sheets, scene, dark },
  {
    spot: {
      part: { layout },
      panel,
    },
    said,
    cell,
  },
  picture,
  lines,
) {
  let sum = new Float32Array(0);
  let count = 0;
  for (let i = panel.start; sheets && i < panel.start + panel.count && count < MOST; i += 1) {
    if ((layout.xy[2 * i] > 0 ? 1 : 0) + (layout.xy[2 * i + 1] > 0 ? 2 : 0) !== cell) continue;
    const bytes = sheets.read(scene.tile[layout.rows[i]]);
    if (!bytes) continue;
    if (!count) sum = new Float32Array(bytes.length);
    bytes.forEach((value, k) => {
      sum[k] += value;
    });
    count += 1;
  }
  picture.hidden = !count;
  if (count && sheets)
    paint(
      picture,
      Uint8ClampedArray.from(sum, (value) => value / count),
      sheets.meta,
      dark,
    );
  lines.replaceChildren(
    element('b', '', {}, said[0].text),
    element('p', '', {}, said[1]?.text ?? ''),
    quiet(count ? `mean of ${count}` : ''),
  );
}
