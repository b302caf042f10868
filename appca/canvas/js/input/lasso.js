/** Rows inside a polygon: it is filled once as a mask of pixels, then each point is one lookup. */

/** @typedef {import('../layout/place.js').Placed} Placed */
/** @typedef {{x: number, y: number, w: number, h: number, mask: Uint8Array}} Mask */

const FINE = 2; // mask cells a pixel
const SHIFT = 16; // bits of a cell's parts: whole numbers are fast before a loop is compiled, as in the first lasso

/** Fill a polygon, even-odd. @param {[number, number][]} path @returns {Mask} */
export function maskOf(path) {
  const xs = path.map(([x]) => x * FINE);
  const ys = path.map(([, y]) => y * FINE);
  const [x, y] = [Math.floor(Math.min(...xs)), Math.floor(Math.min(...ys))];
  const [w, h] = [Math.ceil(Math.max(...xs)) - x + 1, Math.ceil(Math.max(...ys)) - y + 1];
  /** @type {number[][]} where the path crosses the middle of each line */
  const crossings = Array.from({ length: h }, () => []);
  for (let i = 0, j = path.length - 1; i < path.length; j = i, i += 1) {
    const slope = (xs[j] - xs[i]) / (ys[j] - ys[i]);
    const last = Math.ceil(Math.max(ys[i], ys[j]) - y - 0.5);
    for (let line = Math.ceil(Math.min(ys[i], ys[j]) - y - 0.5); line < last; line += 1)
      crossings[line].push(Math.round(xs[i] + (y + line + 0.5 - ys[i]) * slope - x));
  }
  const mask = new Uint8Array(w * h);
  crossings.forEach((at, line) => {
    if (at.length > 2) at.sort((a, b) => a - b);
    else if (at[0] > at[1]) at.reverse();
    for (let k = 0; k + 1 < at.length; k += 2) mask.fill(1, line * w + at[k], line * w + at[k + 1]);
  });
  return { x, y, w, h, mask };
}

/** Mark the rows whose points lie under the mask. @param {Mask} mask @param {Placed[]} placed @param {Uint8Array} hits one byte a row */
export function markUnder(mask, placed, hits) {
  const [cx, cy] = [(mask.x + mask.w / 2) / FINE, (mask.y + mask.h / 2) / FINE];
  const away = (/** @type {Placed} */ { plot }) =>
    Math.hypot(plot.x + plot.w / 2 - cx, plot.y + plot.h / 2 - cy);
  const shown = placed.filter(({ strength }) => strength >= 0.5).sort((a, b) => away(a) - away(b)); // the loop meets hits and misses before it is compiled, so that it is compiled once
  for (const spot of shown) markIn(mask, spot, hits);
}

/** @param {Mask} mask @param {Placed} placed @param {Uint8Array} hits */
function markIn(
  { x, y, w, h, mask },
  {
    part: {
      layout: { xy, rows },
    },
    panel: { start, count },
    plot,
    range,
  },
  hits,
) {
  const [left, top, right, bottom] = [plot.x, plot.y, plot.x + plot.w, plot.y + plot.h].map(
    (at, i) => at * FINE - (i % 2 ? y : x),
  );
  const [x0, y0, x1, y1] = [
    Math.max(0, left),
    Math.max(0, top),
    Math.min(w - 1, right),
    Math.min(h - 1, bottom),
  ]; // beyond the plot nothing is drawn
  if (x0 > x1 || y0 > y1) return;
  const [kx, ky] = [(right - left) / (range[1] - range[0]), (bottom - top) / (range[3] - range[2])];
  const [ox, oy] = [left - range[0] * kx, bottom + range[2] * ky];
  const [low, high, under, over] = [
    Math.ceil((x0 - ox) / kx),
    Math.floor((x1 - ox) / kx),
    Math.ceil((oy - y1) / ky),
    Math.floor((oy - y0) / ky),
  ];
  const [kx1, ky1, ox1, oy1] = [kx, ky, ox, oy].map((value) => Math.round(value * 2 ** SHIFT));
  for (let at = 2 * start, end = at + 2 * count; at < end; at += 2) {
    const px = xy[at];
    if (px < low || px > high) continue;
    const py = xy[at + 1];
    if (
      py >= under &&
      py <= over &&
      mask[((oy1 - py * ky1) >> SHIFT) * w + ((ox1 + px * kx1) >> SHIFT)]
    )
      hits[rows[at >> 1]] = 1;
  }
}
