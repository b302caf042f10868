/**
 * Which points lie in a polygon. A polygon is a list of [x, y]; it closes itself.
 */

/** @param {number[][]} polygon */
export function boundsOf(polygon) {
  const bounds = { left: Infinity, right: -Infinity, low: Infinity, high: -Infinity };
  for (const [x, y] of polygon) {
    bounds.left = Math.min(bounds.left, x);
    bounds.right = Math.max(bounds.right, x);
    bounds.low = Math.min(bounds.low, y);
    bounds.high = Math.max(bounds.high, y);
  }
  return bounds;
}

/** Even-odd rule: count the edges to the right of the point. */
export function isInside(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    const crosses = yi > y !== yj > y;
    if (crosses && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

/**
 * Places of the points inside the polygon.
 *
 * @param {number[][]} polygon in the units of the points
 * @param {Float32Array} xs
 * @param {Float32Array} ys
 * @returns {number[]}
 */
export function placesInside(polygon, xs, ys) {
  const { left, right, low, high } = boundsOf(polygon);
  const places = [];
  for (let i = 0; i < xs.length; i += 1) {
    const x = xs[i];
    const y = ys[i];
    if (x < left || x > right || y < low || y > high) continue;
    if (isInside(polygon, x, y)) places.push(i);
  }
  return places;
}

/** @returns {number[][]} the rectangle between two corners */
export function rectangle([x0, y0], [x1, y1]) {
  return [
    [x0, y0],
    [x1, y0],
    [x1, y1],
    [x0, y1],
  ];
}
