/** Exact EM for adaptive PPCA in typed arrays, with the same steps as appca/models/em.py; fits and descriptions of rows. */

import { clamp } from '../layout/geometry.js';

const FLOOR = 1e-8; // minimum noise variance, relative to the mean feature variance
const LEAST = 1e-50; // smaller weights count as 0, because their products would be denormal
const [MOST_CHANGE, WELL_CONDITIONED, WINDOW, ANNEALED] = [Math.E, 1e-6, 10, 30];

/** @param {Values} values n x d, row by row @param {number} n @param {number} d @param {number} [factor] @returns {Matrix} */
export function rowsOf(values, n, d, factor = 1) {
  const origin = new Float64Array(d);
  let total = 0;
  for (let at = 0; at < n * d;) for (let j = 0; j < d; j += 1, at += 1) origin[j] += values[at];
  for (let j = 0; j < d; j += 1) origin[j] *= factor / n;
  for (let at = 0; at < n * d;)
    for (let j = 0; j < d; j += 1, at += 1) total += (factor * values[at] - origin[j]) ** 2;
  return { values, n, d, factor, origin, total, features: d };
}

/** Return evenly spaced rows, relative to their mean. @param {Matrix} rows @param {number} most */
export function sampleOf(rows, most) {
  const { values, n, d, factor, features } = rows;
  if (n <= most) return rows;
  const some = /** @type {Values} */ (values.slice(0, most * d));
  for (let i = 0; i < most; i += 1) {
    const from = Math.floor(((i + 0.5) * n) / most) * d; // a fixed stride could coincide with a period of the rows
    some.set(values.subarray(from, from + d), i * d);
  }
  const own = rowsOf(some, most, d, factor);
  const within = features > d ? rowsOf(values, n, d, factor).total : rows.total;
  return { ...own, features, total: own.total + ((rows.total - within) * most) / n };
}

/** Return the first columns of A, padded with zeros. @param {Float64Array} A d x from @param {number} from @param {number} to */
export function resized(A, from, to) {
  const made = new Float64Array((A.length / from) * to);
  const least = Math.min(from, to);
  for (let at = 0, bt = 0; at < A.length; at += from, bt += to)
    for (let k = 0; k < least; k += 1) made[bt + k] = A[at + k];
  return made;
}

/** @param {Float64Array} A @param {number} columns @returns {Float64Array} */
export function transpose(A, columns) {
  const lines = A.length / columns;
  return A.map((_, at) => A[(at % lines) * columns + Math.floor(at / lines)]);
}

/** Call the visitor with the products p of each centred row and the columns of W. Unless it returns false, it has filled in s, and the row times s is added to Y' S (d x K). Columns are processed four at a time; zeros are skipped. @param {Matrix} rows @param {Float64Array} W d x K @param {number} K @param {(p: Float64Array, s: Float64Array, row: number) => any} visit */
function sweep({ values, n, d, factor, origin }, W, K, visit) {
  const width = 4 * Math.ceil(K / 4);
  const centre = product(origin, W, d, K);
  const wide = resized(W, K, width);
  const [A, p, s, sum] = [d * width, width, width, K].map((length) => new Float64Array(length));
  const places = new Int32Array(d); // offsets in W of the row's nonzero numbers
  const present = new Float64Array(d);
  for (let row = 0; row < n; row += 1) {
    let count = 0;
    for (let j = 0, at = row * d; j < d; j += 1, at += 1) {
      const x = values[at];
      if (x === 0) continue;
      places[count] = j * width;
      present[count] = x;
      count += 1;
    }
    project(places, present, count, wide, p);
    for (let k = 0; k < K; k += 1) p[k] = factor * p[k] - centre[k];
    if (visit(p, s, row) === false) continue;
    for (let k = 0; k < K; k += 1) sum[k] += s[k];
    addTimes(places, present, count, s, A);
  }
  return resized(A, width, K).map((value, at) => {
    return factor * value - origin[Math.floor(at / K)] * sum[at % K];
  });
}

/** @param {Int32Array} places @param {Float64Array} present @param {number} count @param {Float64Array} W @param {Float64Array} p result */
function project(places, present, count, W, p) {
  for (let k = 0; k < p.length; k += 4) {
    let [a, b, c, e] = [0, 0, 0, 0];
    for (let t = 0; t < count; t += 1) {
      const at = places[t] + k;
      const x = present[t];
      a += x * W[at];
      b += x * W[at + 1];
      c += x * W[at + 2];
      e += x * W[at + 3];
    }
    [p[k], p[k + 1], p[k + 2], p[k + 3]] = [a, b, c, e];
  }
}

/** @param {Int32Array} places @param {Float64Array} present @param {number} count @param {Float64Array} s @param {Float64Array} A changed in place */
function addTimes(places, present, count, s, A) {
  for (let k = 0; k < s.length; k += 4) {
    const [a, b, c, e] = [s[k], s[k + 1], s[k + 2], s[k + 3]];
    for (let t = 0; t < count; t += 1) {
      const at = places[t] + k;
      const x = present[t];
      A[at] += x * a;
      A[at + 1] += x * b;
      A[at + 2] += x * c;
      A[at + 3] += x * e;
    }
  }
}

/** Return Y W for centred rows, n x K. @param {Matrix} rows @param {Float64Array} W d x K @param {number} K */
export function times(rows, W, K) {
  const P = new Float64Array(rows.n * K);
  sweep(rows, W, K, (p, _, row) => {
    for (let k = 0; k < K; k += 1) P[row * K + k] = p[k];
    return false;
  });
  return P;
}

/** @param {Float64Array} a n x p @param {Float64Array} b n x q @param {number} p @param {number} q */
const gram = (a, b, p, q) => product(transpose(a, p), b, a.length / p, q);

/** Return the product of a (n x p) and b (p x q). @param {Float64Array} a @param {Float64Array} b @param {number} p @param {number} q */
export function product(a, b, p, q) {
  const C = new Float64Array((a.length / p) * q);
  for (let at = 0, to = 0; at < a.length; at += p, to += q)
    for (let i = 0; i < p; i += 1)
      for (let j = 0; j < q; j += 1) C[to + j] += a[at + i] * b[i * q + j];
  return C;
}

/** @param {number} n */
export const identity = (n) =>
  Float64Array.from({ length: n * n }, (_, at) => +(at % (n + 1) === 0));

/** Return decreasing eigenvalues and eigenvectors (columns) of a symmetric matrix, by Jacobi rotations. @param {Float64Array} matrix @param {number} n */
export function eigen(matrix, n) {
  const [A, V] = [matrix.slice(), identity(n)];
  const size = Math.sqrt(A.reduce((sum, a) => sum + a * a, 0));
  for (let [sweep, turned] = [0, true]; turned && sweep < 40; sweep += 1) {
    turned = false;
    for (let p = 0; p < n; p += 1)
      for (let q = p + 1; q < n; q += 1)
        if (Math.abs(A[p * n + q]) > 1e-17 * size) turned = rotate(A, V, n, p, q);
  }
  const order = Array.from(V.subarray(0, n).keys()).sort((a, b) => A[b * n + b] - A[a * n + a]);
  const vectors = V.map((_, at) => V[order[at % n] * n + Math.floor(at / n)]);
  return { values: Float64Array.from(order, (i) => A[i * n + i]), vectors };
}

/** Rotate A, and the rows of V. @param {Float64Array} A @param {Float64Array} V @param {number} n @param {number} p @param {number} q */
function rotate(A, V, n, p, q) {
  const b = A[p * n + q];
  const theta = (A[q * n + q] - A[p * n + p]) / (2 * b);
  const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
  const c = 1 / Math.sqrt(t * t + 1);
  const s = t * c;
  A[p * n + p] -= t * b;
  A[q * n + q] += t * b;
  A[p * n + q] = A[q * n + p] = 0;
  for (let i = 0; i < n; i += 1) {
    const [x, y, u, v] = [A[p * n + i], A[q * n + i], V[p * n + i], V[q * n + i]];
    V[p * n + i] = c * u - s * v;
    V[q * n + i] = s * u + c * v;
    if (i === p || i === q) continue;
    A[p * n + i] = A[i * n + p] = c * x - s * y;
    A[q * n + i] = A[i * n + q] = s * x + c * y;
  }
  return true;
}

/** Make columns orthonormal one after another, twice; vanishing columns become 0. @param {Float64Array} A d x K, changed in place @param {number} K */
function orthonormal(A, K) {
  const dot = (/** @type {number} */ a, /** @type {number} */ b) => {
    let sum = 0;
    for (let at = 0; at < A.length; at += K) sum += A[at + a] * A[at + b];
    return sum;
  };
  for (let k = 0; k < K; k += 1) {
    const first = dot(k, k);
    for (let other = 0; other < 2 * k; other += 1) {
      const share = dot(k, other % k);
      for (let at = 0; at < A.length; at += K) A[at + k] -= share * A[at + (other % k)];
    }
    const last = dot(k, k);
    const scale = last > 1e-24 * first ? 1 / Math.sqrt(last) : 0;
    for (let at = k; at < A.length; at += K) A[at] *= scale;
  }
  return A;
}

/** Return the orthonormal W that maximizes tr(W'A): U V' of A = U S V', or for deficient A the maximizer nearest to `previous`. @param {Float64Array} A d x K @param {number} K @param {Float64Array} [previous] */
export function polar(A, K, previous) {
  const { values, vectors: V } = eigen(gram(A, A, K, K), K);
  if (values[K - 1] > WELL_CONDITIONED * values[0]) {
    const scaled = V.map((v, at) => v / Math.sqrt(values[at % K]));
    const W = product(A, product(scaled, transpose(V, K), K, K), K, K);
    const G = gram(W, W, K, K).map((g, at) => (at % (K + 1) ? 0 : 1.5) - 0.5 * g);
    return product(W, G, K, K); // orthonormal to rounding
  }
  const U = orthonormal(product(A, V, K, K), K); // columns have decreasing lengths, so the leading ones are exact
  const free = previous ? product(previous, V, K, K) : normal(A.length, 2);
  const size = gram(U, U, K, K);
  U.forEach((_, at) => size[(at % K) * (K + 1)] || (U[at] = free[at]));
  return product(orthonormal(U, K), transpose(V, K), K, K);
}

/** @param {number} n @param {number} k */
export const logBinomial = (n, k) =>
  added(Float64Array.from({ length: k }, (_, i) => Math.log((n - k + i + 1) / (i + 1))));

/** Sum over all subsets of L of K components: return log e_L(exp a) for the logits a of a row, and write each inclusion to r. @param {number} K @param {number} L @returns {(a: Float64Array, r: Float64Array) => number} */
function subsetsOf(K, L) {
  if (L === K) return (a, r) => r.fill(1) && a.reduce((sum, one) => sum + one, 0);
  const flip = 2 * L > K; // then fewer components are left out than used
  const [m, sign] = flip ? [K - L, -1] : [L, 1];
  const width = m + 2; // a zero precedes the first entry of a line
  const [table, after] = [new Float64Array((K + 1) * width), new Float64Array(width)];
  const [into, out, top] = [K, K, m].map((length) => new Float64Array(length));
  table[1] = 1;
  return (a, r) => {
    let base = 0;
    top.fill(-Infinity);
    for (let k = 0; k < K; k += 1) {
      if (flip) base += a[k];
      let [value, i] = [sign * a[k], m - 1];
      if (value <= top[i]) continue;
      for (; i > 0 && top[i - 1] < value; i -= 1) top[i] = top[i - 1];
      top[i] = value;
    }
    const level = top[m - 1];
    base += m * level;
    for (let k = 0; k < K; k += 1) {
      const b = sign * a[k] - level;
      const w = Math.exp(-Math.abs(b));
      const weight = w > LEAST ? w : 0;
      if (b > 0) base += b;
      into[k] = b > 0 ? 1 : weight;
      out[k] = b > 0 ? weight : 1;
      for (let from = k * width + 1, j = 0; j <= m; j += 1, from += 1)
        table[from + width] = out[k] * table[from] + into[k] * table[from - 1];
    }
    const total = table[K * width + m + 1];
    after.fill(0);
    after[m] = 1;
    for (let k = K - 1; k >= 0; k -= 1) {
      let sum = 0;
      for (let j = 0; j < m; j += 1) sum += table[k * width + j + 1] * after[j + 1];
      const share = Math.min((into[k] * sum) / total, 1);
      r[k] = flip ? 1 - share : share;
      for (let j = 0; j <= m; j += 1) after[j] = out[k] * after[j] + into[k] * after[j + 1];
    }
    return base + Math.log(total);
  };
}

/** E step; `beta` below 1 tempers the logits. @param {FitState} state @param {Matrix} rows @param {number} L @param {number} [beta] @returns {Sums} */
export function expect(state, rows, L, beta = 1) {
  const { n, total, features } = rows;
  const { W, shift, latent, noise } = state;
  const K = latent.length;
  const shrink = latent.map((tau2) => tau2 / (tau2 + noise));
  const slope = shrink.map((share) => share / (2 * noise));
  const offset = latent.map((tau2) => 0.5 * Math.log1p(tau2 / noise));
  const subsets = subsetsOf(K, L);
  const [a, r, sum, used, second] = Array.from({ length: 5 }, () => new Float64Array(K));
  let value = 0;
  const A = sweep(rows, W, K, (p, s) => {
    for (let k = 0; k < K; k += 1) {
      p[k] += shift[k];
      a[k] = beta * (p[k] * p[k] * slope[k] - offset[k]);
    }
    value += subsets(a, r);
    for (let k = 0; k < K; k += 1) {
      const m = shrink[k] * p[k];
      s[k] = r[k] * m;
      sum[k] += s[k];
      used[k] += r[k];
      second[k] += s[k] * m;
    }
  });
  for (let k = 0; k < K; k += 1) second[k] += used[k] * shrink[k] * noise;
  value -= n * (0.5 * features * Math.log(2 * Math.PI * noise) + logBinomial(K, L));
  value -= (total + n * added(shift.map((one) => one * one))) / (2 * noise);
  return { value, A, sum, second, used };
}

/** @param {Matrix} rows */
const floorOf = ({ total, n, features }) => (FLOOR * total) / (n * features);

/** @param {Float64Array} of */
const added = (of) => of.reduce((all, one) => all + one, 0);

/** M step. @param {Sums} sums @param {FitState} state @param {Matrix} rows @param {Latent} latent @returns {FitState} */
function maximise({ A, sum, second, used }, state, rows, latent) {
  const { n, total, features } = rows;
  const K = sum.length;
  const [W, shift] = [polar(A, K, state.W), sum.map((one) => one / n)];
  const residual = total + added(second) - n * added(shift.map((one) => one * one));
  const [floor, uses] = [floorOf(rows), added(used)];
  const noise = (residual - 2 * added(W.map((w, at) => w * A[at]))) / (n * features);
  const common = added(second) / Math.max(uses, 1e-300);
  const tau2 = second.map((all, k) => {
    const own = used[k] > 1e-9 * uses ? all / used[k] : state.latent[k];
    return Math.max(latent === 'shared' ? common : own, floor);
  });
  return { W, shift, latent: tau2, noise: Math.max(noise, floor) };
}

/** Return now + beta (now - before), a momentum step, in logs of variances. @param {FitState} before @param {FitState} now @param {number} beta @param {number} floor @returns {FitState} */
function extend(before, now, beta, floor) {
  const ahead = (/** @type {'W' | 'shift'} */ name) =>
    now[name].map((value, i) => value + beta * (value - before[name][i]));
  const inLogs = (/** @type {number} */ first, /** @type {number} */ last) => {
    const change = Math.min(Math.max((last / first) ** beta, 1 / MOST_CHANGE), MOST_CHANGE);
    return Math.max(last * change, floor);
  };
  const latent = now.latent.map((tau2, k) => inLogs(before.latent[k], tau2));
  const W = polar(ahead('W'), latent.length, now.W);
  return { W, shift: ahead('shift'), latent, noise: inLogs(before.noise, now.noise) };
}

/** Yield the state at the start and after every step of Nesterov's sequence, restarted if the likelihood falls. @param {FitState} start @param {Matrix} rows @param {number} L @param {Latent} latent @returns {Generator<Step>} */
export function* ascent(start, rows, L, latent, age = 0) {
  const advance = (/** @type {FitState} */ state) => {
    const sums = expect(state, rows, L);
    return { value: sums.value, state, next: maximise(sums, state, rows, latent) };
  };
  let step = advance(start);
  yield step;
  let [before, now, { value }] = [step.next, step.next, step];
  for (;;) {
    age += 1;
    const beta = Math.min((age - 1) / (age + 2), 0.98);
    step = advance(beta > 0 ? extend(before, now, beta, floorOf(rows)) : now);
    if (beta > 0 && !(step.value >= value)) {
      age = 0;
      step = advance(now);
    }
    [before, now, value] = [now, step.next, step.value];
    yield step;
  }
}

/** Follow a path until ten steps gain under `tol` nats per row, as judged by the last `window` steps. @param {Generator<Step>} path @param {Matrix} rows @param {{tol?: number, most?: number, window?: number, best?: number}} [how] `best` is the final value of another path; stop if this path cannot exceed it @returns {Generator<Step, Step & {values: number[]}>} */
export function* climb(path, rows, how = {}) {
  const { tol = 1e-4, most = 500, window = WINDOW, best = -Infinity } = how;
  let step = /** @type {Step} */ (path.next().value);
  const values = [step.value];
  for (let i = 1; i <= most; i += 1) {
    step = path.next().value;
    values.push(step.value);
    yield step;
    const gain = step.value - values[values.length - 1 - window];
    const slow = step.value - values[values.length - 1 - WINDOW];
    if (step.state.noise <= floorOf(rows)) break;
    if (i >= window && gain < (tol * window * rows.n) / WINDOW) break;
    if (i >= WINDOW && step.value + 3 * slow < best) break;
  }
  return { ...step, values };
}

/** Return the state after EM with logits multiplied by an increasing factor. @param {FitState} state @param {Matrix} rows @param {number} L @param {Latent} latent */
export function* annealed(state, rows, L, latent) {
  for (let i = 0; i < ANNEALED; i += 1) {
    const sums = expect(state, rows, L, 10 ** (-3 + (3 * i) / (ANNEALED - 1)));
    state = maximise(sums, state, rows, latent);
    yield { ...sums, state, next: state };
  }
  return state;
}

/** Return variances after assigning each row to its L largest projections on W. @param {Matrix} rows @param {Float64Array} W @param {number} K @param {number} L @param {Latent} latent @returns {FitState} */
export function firstState(rows, W, K, L, latent) {
  const { n, total, features } = rows;
  const power = times(rows, W, K).map((p) => p * p);
  const [captured, used] = [new Float64Array(K), new Float64Array(K)];
  for (let i = 0; i < n; i += 1)
    for (const k of topOf(power.subarray(i * K, i * K + K), L)) {
      captured[k] += power[i * K + k];
      used[k] += 1;
    }
  const all = added(captured);
  const [spare, floor] = [n * (features - L), floorOf(rows)];
  const noise = Math.max(spare ? (total - all) / spare : 0, floor);
  const own = captured.map((one, k) =>
    latent === 'shared' ? all / (n * L) : one / (used[k] || 1),
  );
  const tau2 = own.map((one) => Math.max(one - noise, floor));
  return { W, shift: new Float64Array(K), latent: tau2, noise };
}

/** Return the indices of the L largest values, ascending; of equal values, the first are taken. @param {Float64Array} a @param {number} L */
export function topOf(a, L) {
  const order = Array.from(a, (_, k) => k).sort((i, j) => a[j] - a[i] || i - j);
  return order.slice(0, L).sort((i, j) => i - j);
}

/** Return the maximum-likelihood state for L = K (Tipping and Bishop 1999). @param {Matrix} rows @param {number} K @param {Latent} latent */
export const closedForm = (rows, K, latent) => firstState(rows, principal(rows, K).V, K, K, latent);

const DIRECT = 96; // maximum number of features for a full decomposition of the covariance
const [ROUNDS, EXTRA] = [4, 8];

/** Return leading directions (d x q) and their variances. @param {Matrix} rows @param {number} q @param {number} [rounds] of subspace iteration, if there are many features */
export function principal(rows, q, rounds = ROUNDS) {
  const { d, n } = rows;
  const many = Math.min(q + EXTRA, d, n);
  const whole = d <= DIRECT;
  /** @type {Float64Array} */ let V = whole ? identity(d) : orthonormal(normal(d * many, 1), many);
  if (!whole) {
    const squared = (/** @type {Float64Array} */ p, /** @type {Float64Array} */ s) => s.set(p);
    for (let i = 0; i < rounds; i += 1) V = orthonormal(sweep(rows, V, many, squared), many);
  }
  const width = V.length / d;
  const P = times(rows, V, width);
  const { values, vectors } = eigen(gram(P, P, width, width), width);
  const leading = product(V, resized(vectors, width, q), width, q);
  return { V: leading, values: values.slice(0, q).map((sum) => sum / n) };
}

/** Return the rotation of scores P (n x K) that maximizes the sum of fourth powers. @param {Float64Array} P @param {number} K */
export function quartimax(P, K) {
  const scale = 1 / Math.sqrt(added(P.map((p) => p * p)) / P.length || 1);
  const lines = P.map((p) => p * scale);
  let R = identity(K);
  for (let step = 0; step < 200; step += 1) {
    const before = R;
    const cubes = product(lines, R, K, K).map((q) => q * q * q);
    R = polar(gram(lines, cubes, K, K), K, before);
    if (R.every((value, at) => Math.abs(value - before[at]) < 1e-4)) break;
  }
  return R;
}

/** Draw a uniform number. @param {number} seed */
function uniform(seed) {
  let t = Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d);
  t = Math.imul(t ^ (t >>> 12), 0x297a2d39);
  return ((t ^ (t >>> 15)) >>> 0) / 2 ** 32;
}

/** Draw normal numbers. @param {number} count @param {number} seed */
const normal = (count, seed) =>
  Float64Array.from({ length: count }, (_, i) => {
    const [u, v] = [2 * i + 1, 2 * i + 2].map((place) => uniform(1e6 * seed + place));
    return Math.sqrt(-2 * Math.log(1 - u)) * Math.cos(2 * Math.PI * v);
  });

const COORDINATES = 64; // dimensions in which starts are searched; the last steps use all features
const [WORK, LEAST_STARTS, MOST_STARTS] = [4.5e7, 5, 100]; // multiplications per step, which set the number of random rotations
const LAST = { window: 1, tol: 1e-3 }; // stopping rule of the steps over all features, after the search in coordinates
const MATCHED = 0.8; // minimum |cos| of equal components

export class Fits {
  /** @param {Matrix} rows @param {number} [K] of the first fit */
  constructor(rows, K = 2) {
    this.rows = rows;
    this.low = rows; // all rows, in few coordinates if they have many features
    /** @type {Float64Array | null} */ this.V = null;
    this.lead = new Float64Array(0); // leading directions in these coordinates, d x `leads`
    this.leads = 0;
    this.mostK = Math.min(30, rows.n - 1, rows.d);
    this.few = Math.min(Math.max(K, 2), this.mostK);
    this.some = sampleOf(rows, 1000);
    this.first = principal(this.some, this.few, 2).V; // leading directions of this sample, d x few
  }

  /** Compute the coordinates, from a sample if there are many rows; the rough fit does not need them. */
  prepare() {
    if (this.leads) return;
    const { rows } = this;
    if (rows.d > COORDINATES) {
      const q = Math.min(COORDINATES, rows.n - 1);
      this.V = principal(sampleOf(rows, 2500), q).V;
      const low = rowsOf(times(rows, this.V, q), rows.n, q);
      this.low = { ...low, total: rows.total, features: rows.d, origin: new Float64Array(q) };
    }
    this.leads = Math.min(30, this.low.d);
    this.lead = principal(this.low, this.leads).V;
  }

  /** Fit a few rows roughly, for a first picture. @param {number} K @param {number} L @param {Latent} latent @returns {Generator<Step>} */
  *rough(K, L, latent) {
    const { some } = this;
    const V = resized(this.first, this.few, K);
    const W = product(V, quartimax(times(sampleOf(some, 300), V, K), K), K, K);
    yield* ascent(firstState(some, W, K, L, latent), some, L, latent);
  }

  /** Run EM in coordinates, starting from a fit with another K or L. @param {FitState} from over all features @param {number} K @param {number} L @param {Latent} latent */
  *warm(from, K, L, latent) {
    this.prepare();
    const { low, V, rows } = this;
    const before = from.latent.length;
    const W = V ? product(transpose(V, low.d), from.W, rows.d, before) : from.W;
    const wide = resized(W, before, K).map((value, at) => {
      const k = at % K;
      return k < before ? value : this.lead[((at - k) / K) * this.leads + k];
    });
    const start = firstState(low, polar(orthonormal(wide, K), K), K, L, latent);
    return yield* climb(ascent(start, low, L, latent), low, { tol: 1e-2 });
  }

  /** Run EM from several starts, on a sample if there are many rows, and return the best state. @param {number} K @param {number} L @param {Latent} latent @param {() => boolean} [late] @returns {Generator<Step, FitState>} in coordinates */
  *race(K, L, latent, late = () => false) {
    this.prepare();
    const { low } = this;
    const some = sampleOf(low, Math.min(10_000, Math.max(400 * K, 2500)));
    const V = resized(this.lead, this.leads, K);
    const work = some.n * K * (some.d + 6 * L);
    const random = clamp(Math.round(WORK / work), LEAST_STARTS, MOST_STARTS);
    const R = quartimax(times(sampleOf(some, 1000), V, K), K);
    let best = /** @type {Step | null} */ (null);
    for (let i = 0; i < 4 + random && !(i && late()); i += 1) {
      const turned = i > 3 ? polar(normal(K * K, i), K) : i % 3 ? identity(K) : R;
      let state = firstState(some, product(V, turned, K, K), K, L, latent);
      if (i === 2 || i === 3) state = yield* annealed(state, some, L, latent);
      const how = { tol: 1e-2, most: 200, best: i > 3 && best ? best.value : -Infinity };
      const end = yield* climb(ascent(state, some, L, latent), some, how);
      if (!best || end.value > best.value) best = end;
      if (i === 3) yield /** @type {any} */ ({ ...best, named: true });
    }
    return /** @type {Step} */ (best).state;
  }

  /** @param {FitState} state in coordinates @returns {FitState} in all features */
  lifted(state) {
    const { V, low } = this;
    return V ? { ...state, W: product(V, state.W, low.d, state.latent.length) } : state;
  }

  /** Fit completely. @param {number} K @param {number} L @param {Latent} latent @param {() => boolean} [late] whether to begin no further start @param {number} [most] steps over all features @returns {Generator<Step, FitState>} */
  *best(K, L, latent, late, most = 500) {
    const { rows } = this;
    if (L === K) return closedForm(rows, K, latent);
    let state = yield* this.race(K, L, latent, late);
    const { V, low } = this;
    if (!V) return (yield* climb(ascent(state, rows, L, latent), rows)).state;
    ({ state } = yield* climb(ascent(state, low, L, latent), low, { tol: 1e-3, window: 3 }));
    const path = ascent(this.lifted(state), rows, L, latent, 6);
    return (yield* climb(path, rows, { ...LAST, most })).state;
  }
}

/** Describe the rows by a fit. @param {FitState} state @param {Matrix} rows @param {number} L @returns {Described} */
export function describe(state, rows, L) {
  const { n, d, values, factor, origin } = rows;
  const { W, shift, latent, noise } = state;
  const K = latent.length;
  const P = times(rows, W, K);
  const subsets = subsetsOf(K, L);
  const [a, r, variance] = [K, K, K].map((length) => new Float64Array(length));
  const [scores, inclusion] = [new Float32Array(n * K), new Float32Array(n * K)];
  const [membership, error] = [new Float32Array(n), new Float32Array(n)];
  const [active, density] = [new Uint8Array(n * K), new Float64Array(n)];
  const shrink = latent.map((tau2) => tau2 / (tau2 + noise));
  const fixed = -0.5 * d * Math.log(2 * Math.PI * noise) - logBinomial(K, L);
  for (let i = 0; i < n; i += 1) {
    let squares = 0;
    for (let j = 0, at = i * d; j < d; j += 1, at += 1)
      squares += (factor * values[at] - origin[j]) ** 2;
    const p = P.subarray(i * K, i * K + K); // about the mean from here on
    for (let k = 0; k < K; k += 1) {
      squares += shift[k] * (2 * p[k] + shift[k]);
      p[k] += shift[k];
      a[k] = (p[k] ** 2 * shrink[k]) / (2 * noise) - 0.5 * Math.log1p(latent[k] / noise);
    }
    const log = subsets(a, r);
    density[i] = fixed + log - squares / (2 * noise);
    inclusion.set(r, i * K);
    for (let k = 0; k < K; k += 1)
      variance[k] += (r[k] * ((shrink[k] * p[k]) ** 2 + shrink[k] * noise)) / n;
    let [chosen, left] = [-log, squares];
    for (const k of topOf(a, L)) {
      const score = shrink[k] * p[k];
      chosen += a[k];
      left += score * (score - 2 * p[k]);
      active[i * K + k] = 1;
      scores[i * K + k] = score;
    }
    membership[i] = Math.min(1, Math.exp(chosen));
    error[i] = Math.max(0, left) / d;
  }
  return { scores, active, inclusion, membership, density, error, variance, K, L };
}

/** Order components: those matched to the previous fit keep their numbers and signs, the others follow by variance. @param {FitState} state @param {Described} said @param {FitState | null} before the fit shown before */
export function arranged(state, said, before) {
  const { W, shift, latent } = state;
  const { K, inclusion, active, variance, scores } = said;
  const many = before?.latent.length ?? 0;
  const cosine = before ? product(transpose(W, K), before.W, W.length / K, many) : W;
  const numbers = [...variance.keys()].sort((a, b) => variance[b] - variance[a]);
  const there = numbers.map((_, k) =>
    // at most one of the orthonormal directions can be so close
    cosine.subarray(k * many, (k + 1) * many).findIndex((value) => Math.abs(value) >= MATCHED),
  );
  const signs = numbers.map((_, k) => {
    const own = W.filter((__, at) => at % K === k);
    const largest = own.reduce((a, b) => (Math.abs(b) > Math.abs(a) * (1 + 1e-4) ? b : a), 0);
    return Math.sign(there[k] < 0 ? largest : cosine[k * many + there[k]]) || 1;
  });
  const rest = numbers.filter((k) => there[k] < 0 || there[k] >= K);
  const place = (/** @type {number} */ _, /** @type {number} */ at) =>
    there.includes(at) ? there.indexOf(at) : (rest.shift() ?? 0);
  const order = there.map(place);
  /** @template {Float64Array | Float32Array | Uint8Array} T @param {T} A columns by component @param {boolean} [signed] @returns {T} */
  const moved = (A, signed = false) => {
    const one = (/** @type {number} */ _, /** @type {number} */ at) =>
      (signed ? signs[order[at % K]] : 1) * A[at - (at % K) + order[at % K]];
    return /** @type {any} */ (A.map(one));
  };
  const turned = { W: moved(W, true), shift: moved(shift, true), latent: moved(latent) };
  const kept = { inclusion: moved(inclusion), active: moved(active), variance: moved(variance) };
  return {
    state: { ...state, ...turned },
    said: { ...said, ...kept, scores: moved(scores, true) },
    came: before ? order.map((k) => there[k] < 0) : [],
  };
}
