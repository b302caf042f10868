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
  const mask = new Uint8Array(w * h);
  for (let line = 0; line < h; line += 1) {
    const at = y + line + 0.5;
    const crossings = [];
    for (let i = 0, j = path.length - 1; i < path.length; j = i, i += 1) {
      if (ys[i] > at !== ys[j] > at) crossings.push(xs[j] + ((at - ys[j]) / (ys[i] - ys[j])) * (xs[i] - xs[j]));
    }
    crossings.sort((a, b) => a - b);
    for (let k = 0; k + 1 < crossings.length; k += 2) mask.fill(1, line * w + Math.max(0, Math.round(crossings[k] - x)), line * w + Math.min(w, Math.round(crossings[k + 1] - x)));
  }
  return { x, y, w, h, mask };
}

/** Mark the rows whose points lie under the mask. @param {Mask} mask @param {Placed[]} placed @param {Uint8Array} hits one byte a row */
export function markUnder({ x, y, w, h, mask }, placed, hits) {
  for (const { part: { layout }, panel, plot, range, strength } of placed) {
    if (strength < 0.5 || plot.x * FINE > x + w || plot.y * FINE > y + h || (plot.x + plot.w) * FINE < x || (plot.y + plot.h) * FINE < y) continue;
    const [kx, ky] = [(FINE * plot.w) / (range[1] - range[0]), (FINE * plot.h) / (range[3] - range[2])];
    const [ox, oy] = [plot.x * FINE - x - range[0] * kx, (plot.y + plot.h) * FINE - y + range[2] * ky];
    const { xy, rows } = layout;
    for (let i = panel.start; i < panel.start + panel.count; i += 1) {
      const vx = xy[2 * i]; // no lists in here: the first lasso runs before this is compiled
      const vy = xy[2 * i + 1];
      if (vx < range[0] || vx > range[1] || vy < range[2] || vy > range[3]) continue; // not drawn
      const px = ox + vx * kx;
      const py = oy - vy * ky;
      if (px >= 0 && py >= 0 && px < w && py < h && mask[(py | 0) * w + (px | 0)]) hits[rows[i]] = 1;
    }
  }
}
