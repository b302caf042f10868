/**
 * What is under the pointer: an image if one is drawn there, else the nearest point.
 */

export const PICK_RADIUS = 9; // pixels

/**
 * @param {{place: number, left: number, top: number, size: number}[]} plates drawn images by
 *   their middles, the topmost first
 */
export function plateAt(plates, left, top) {
  return plates.find(
    (plate) =>
      Math.abs(plate.left - left) <= plate.size / 2 && Math.abs(plate.top - top) <= plate.size / 2,
  );
}

/**
 * The nearest point within the radius, or -1.
 *
 * @param {Float32Array} xs
 * @param {Float32Array} ys
 * @param {Object} frame see axes.js
 * @param {function(number): boolean} shown
 */
export function nearestPlace(xs, ys, frame, left, top, shown) {
  const scaleX = frame.width / (frame.x[1] - frame.x[0]);
  const scaleY = frame.height / (frame.y[1] - frame.y[0]);
  const atX = left - frame.left;
  const atY = top - frame.top;
  let best = -1;
  let least = PICK_RADIUS * PICK_RADIUS;
  for (let i = 0; i < xs.length; i += 1) {
    const dx = (xs[i] - frame.x[0]) * scaleX - atX;
    const dy = (frame.y[1] - ys[i]) * scaleY - atY;
    const squared = dx * dx + dy * dy;
    if (squared <= least && shown(i)) {
      least = squared;
      best = i;
    }
  }
  return best;
}
