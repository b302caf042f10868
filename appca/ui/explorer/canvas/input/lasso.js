/** Rows inside a polygon: it is filled once as a mask of pixels, then each point is one lookup. */

/** @typedef {import('../layout/place.js').Placed} Placed */
/** @typedef {{x: number, y: number, w: number, h: number, mask: Uint8Array}} Mask */

const FINE = 2; // mask cells a pixel

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
    for (let line = Math.ceil(Math.min(ys[i], ys[j]) - y - 0.5); line < last; line += 1) crossings[line].push(Math.round(xs[i] + (y + line + 0.5 - ys[i]) * slope - x));
  }
  const mask = new Uint8Array(w * h);
  crossings.forEach((at, line) => {
    at.sort((a, b) => a - b);
    for (let k = 0; k + 1 < at.length; k += 2) mask.fill(1, line * w + at[k], line * w + at[k + 1]);
  });
  return { x, y, w, h, mask };
}

/** Mark the rows whose points lie under the mask. @param {Mask} mask @param {Placed[]} placed @param {Uint8Array} hits one byte a row */
export function markUnder({ x, y, w, h, mask }, placed, hits) {
  for (const { part: { layout }, panel, plot, range, strength } of placed) {
    const [left, top, right, bottom] = [plot.x, plot.y, plot.x + plot.w, plot.y + plot.h].map((at, i) => at * FINE - (i % 2 ? y : x));
    const [x0, y0, x1, y1] = [Math.max(0, left), Math.max(0, top), Math.min(w - 1, right), Math.min(h - 1, bottom)]; // beyond the plot nothing is drawn
    if (strength < 0.5 || x0 > x1 || y0 > y1) continue;
    const [kx, ky] = [(right - left) / (range[1] - range[0]), (bottom - top) / (range[3] - range[2])];
    const [ox, oy] = [left - range[0] * kx, bottom + range[2] * ky];
    const { xy, rows } = layout;
    for (let i = panel.start; i < panel.start + panel.count; i += 1) {
      const px = ox + xy[2 * i] * kx; // no lists in here: the first lasso runs before this is compiled
      const py = oy - xy[2 * i + 1] * ky;
      if (px >= x0 && px <= x1 && py >= y0 && py <= y1 && mask[(py | 0) * w + (px | 0)]) hits[rows[i]] = 1;
    }
  }
}
