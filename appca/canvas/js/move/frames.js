/** The frames of a tour: two orthonormal axes that turn from those of one panel into those of another. */

/** @typedef {{basis: number[], x: number[], y: number[]}} Frame axes over at most four components */

/** @param {number[]} from components of x and y @param {number[]} to @param {number} t 0 to 1 @returns {Frame} */
export function frameAt(from, to, t) {
  const basis = [...new Set([...from, ...to])];
  const unit = (/** @type {number} */ component) =>
    [0, 1, 2, 3].map((i) => (basis[i] === component ? 1 : 0));
  const turned = (
    /** @type {number} */ a,
    /** @type {number} */ b,
    /** @type {number} */ share,
  ) => {
    if (a === b || share <= 0) return unit(a);
    if (share >= 1) return unit(b);
    const angle = (share * Math.PI) / 2;
    const [p, q] = [unit(a), unit(b)];
    return p.map((value, i) => Math.cos(angle) * value + Math.sin(angle) * q[i]);
  };
  const crossed = from[0] === to[1] ? -1 : from[1] === to[0] ? 1 : 0;
  if (crossed && basis.length === 3 && t > 0 && t < 1)
    return { basis, ...around(unit(from[0]), unit(from[1]), crossed * t) };
  if (basis.length === 4)
    return { basis, x: turned(from[0], to[0], 2 * t), y: turned(from[1], to[1], 2 * t - 1) };
  return { basis, x: turned(from[0], to[0], t), y: turned(from[1], to[1], t) };
}

/** The shared component changes its axis: a turn of 120 degrees about the diagonal of all three. @param {number[]} x @param {number[]} y @param {number} share */
function around(x, y, share) {
  const angle = (share * 2 * Math.PI) / 3;
  const [c, s, n] = [Math.cos(angle), Math.sin(angle), 1 / Math.sqrt(3)];
  const turn = (/** @type {number[]} */ [a, b, d]) => {
    const along = (a + b + d) * n * n * (1 - c);
    return [
      a * c + (d - b) * n * s + along,
      b * c + (a - d) * n * s + along,
      d * c + (b - a) * n * s + along,
      0,
    ];
  };
  return { x: turn(x), y: turn(y) };
}

/** What happens in words: what turns into what, and what stays. @param {import('../types.js').Meta} meta @param {number[]} from @param {number[]} to @param {number} t */
export function said(meta, from, to, t) {
  const number = (/** @type {number} */ index) => meta.components[index].number;
  const stays = from.find((axis) => to.includes(axis));
  if (stays === undefined) {
    const step = t < 0.5 ? 0 : 1;
    return `component ${number(from[step])} turns into ${number(to[step])} (turn ${step + 1} of 2)`;
  }
  const [turns] = from.filter((axis) => axis !== stays);
  const [into] = to.filter((axis) => axis !== stays);
  return `component ${number(turns)} turns into ${number(into)}, ${number(stays)} stays`;
}
