/** Size and opacity of points by how far apart they stand on average: one smooth curve for every view. */

/** @param {number} points @param {number} area pixels @returns {{size: number, alpha: number}} */
export function density(points, area) {
  const apart = Math.sqrt(area / Math.max(1, points));
  return {
    size: 1.5 + 4.3 * (1 - Math.exp(-apart / 16)),
    alpha: 0.22 + 0.56 * (1 - Math.exp(-apart / 2.1)),
  };
}
