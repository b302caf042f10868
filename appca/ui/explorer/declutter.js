/**
 * Which points show their image: few enough that no two images overlap, always the same ones.
 */

const CELL_SHARE = 0.4; // of an image's width: the first, coarse thinning
const DISTANCE_SHARE = 1.08; // of an image's width, between the middles of two images

/** Round up to a power of the square root of two: steps stay put while panning and nest on zoom. */
export function snappedStep(wanted) {
  return 2 ** (Math.ceil(2 * Math.log2(wanted)) / 2);
}

/**
 * Keep the most important point of every cell of a grid that is fixed in data units.
 *
 * @param {{x: Float32Array, y: Float32Array, rank: function(number): number,
 *   shown: function(number): boolean}} points `rank`: smaller is more important
 * @param {Object} frame see axes.js
 * @param {number} size of an image, pixels
 * @returns {number[]} places
 */
export function bestPerCell(points, frame, size) {
  const [left, right] = frame.x;
  const [low, high] = frame.y;
  const stepX = snappedStep((size * CELL_SHARE * (right - left)) / frame.width);
  const stepY = snappedStep((size * CELL_SHARE * (high - low)) / frame.height);
  const firstX = Math.floor(left / stepX);
  const firstY = Math.floor(low / stepY);
  const columns = Math.floor(right / stepX) - firstX + 1;
  const lines = Math.floor(high / stepY) - firstY + 1;
  const best = new Int32Array(columns * lines).fill(-1);
  for (let i = 0; i < points.x.length; i += 1) {
    const x = points.x[i];
    const y = points.y[i];
    const outside = !(x >= left && x <= right && y >= low && y <= high);
    if (outside || !points.shown(i)) continue;
    const cell =
      Math.floor(x / stepX) - firstX + columns * (Math.floor(y / stepY) - firstY);
    if (best[cell] < 0 || points.rank(i) < points.rank(best[cell])) best[cell] = i;
  }
  return Array.from(best).filter((place) => place >= 0);
}

/**
 * Drop images that would overlap a more important one.
 *
 * @param {{place: number, left: number, top: number}[]} candidates most important first
 * @param {number} size of an image, pixels
 */
export function withoutOverlap(candidates, size) {
  const distance = size * DISTANCE_SHARE;
  const taken = new Map();
  const key = (column, line) => column * 65536 + line;
  const overlaps = (candidate, column, line) =>
    (taken.get(key(column, line)) ?? []).some(
      (other) =>
        Math.abs(other.left - candidate.left) < distance &&
        Math.abs(other.top - candidate.top) < distance,
    );
  return candidates.filter((candidate) => {
    const column = Math.floor(candidate.left / distance);
    const line = Math.floor(candidate.top / distance);
    for (let c = column - 1; c <= column + 1; c += 1) {
      for (let l = line - 1; l <= line + 1; l += 1) if (overlaps(candidate, c, l)) return false;
    }
    const here = taken.get(key(column, line)) ?? [];
    taken.set(key(column, line), [...here, candidate]);
    return true;
  });
}
