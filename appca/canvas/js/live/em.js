/** Exact EM for adaptive PPCA in typed arrays: the steps of appca/models/em.py, in the same order. */

const FLOOR = 1e-8; // of the mean feature variance, the least noise variance
const LEAST = 1e-50; // smaller weights count as 0: products would be denormal
const MOST_CHANGE = Math.E; // of a variance by momentum
const WINDOW = 10;
const WELL_CONDITIONED = 1e-6;

/** @param {Values} values n x d, row by row @param {number} n @param {number} d @param {number} [factor] @returns {Matrix} */
export function rowsOf(values, n, d, factor = 1) {
  const origin = new Float64Array(d);
  for (let i = 0, at = 0; i < n; i += 1)
    for (let j = 0; j < d; j += 1, at += 1) origin[j] += values[at];
  for (let j = 0; j < d; j += 1) origin[j] *= factor / n;
  let total = 0;
  for (let i = 0, at = 0; i < n; i += 1)
    for (let j = 0; j < d; j += 1, at += 1) total += (factor * values[at] - origin[j]) ** 2;
  return { values, n, d, factor, origin, total, features: d };
}

/** Every so many rows, about their own mean. @param {Matrix} rows @param {number} most */
export function sampleOf(rows, most) {
  const { values, n, d, factor, features } = rows;
  if (n <= most) return rows;
  const some = /** @type {Values} */ (values.slice(0, most * d));
  for (let i = 0; i < most; i += 1) {
    const from = Math.floor(((i + 0.5) * n) / most) * d; // a stride would follow a period
    some.set(values.subarray(from, from + d), i * d);
  }
  return { ...rowsOf(some, most, d, factor), features };
}

/** The first columns of A, or as many zeros more. @param {Float64Array} A d x from @param {number} from @param {number} to */
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

/** Products of one row at a time with K directions, four at a time; numbers that are 0 cost nothing. */
class RowProducts {
  /** @param {Matrix} rows @param {number} K */
  constructor({ values, d }, K) {
    this.values = values;
    this.d = d;
    this.width = 4 * Math.ceil(K / 4);
    this.places = new Int32Array(d); // in the lines of W
    this.present = new Float64Array(d);
    this.count = 0;
  }

  /** @param {number} row */
  load(row) {
    const { values, d, width, places, present } = this;
    let count = 0;
    for (let j = 0, at = row * d; j < d; j += 1, at += 1) {
      const x = values[at];
      if (x === 0) continue;
      places[count] = j * width;
      present[count] = x;
      count += 1;
    }
    this.count = count;
  }

  /** The row's products with the columns of W. @param {Float64Array} W padded @param {Float64Array} p filled */
  project(W, p) {
    const { count, width, places, present } = this;
    for (let k = 0; k < width; k += 4) {
      let [a, b, c, e] = [0, 0, 0, 0];
      for (let t = 0; t < count; t += 1) {
        const at = places[t] + k;
        const x = present[t];
        a += x * W[at];
        b += x * W[at + 1];
        c += x * W[at + 2];
        e += x * W[at + 3];
      }
      p[k] = a;
      p[k + 1] = b;
      p[k + 2] = c;
      p[k + 3] = e;
    }
  }

  /** Add the row times s to A. @param {Float64Array} A padded @param {Float64Array} s */
  add(A, s) {
    const { count, width, places, present } = this;
    for (let k = 0; k < width; k += 4) {
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
}

/** Y W about the origin, n x K. @param {Matrix} rows @param {Float64Array} W d x K @param {number} K */
export function times(rows, W, K) {
  const { n, factor } = rows;
  const products = new RowProducts(rows, K);
  const wide = resized(W, K, products.width);
  const p = new Float64Array(products.width);
  const P = new Float64Array(n * K);
  const centre = originOn(rows, W, K);
  for (let i = 0; i < n; i += 1) {
    products.load(i);
    products.project(wide, p);
    for (let k = 0; k < K; k += 1) P[i * K + k] = factor * p[k] - centre[k];
  }
  return P;
}

/** @param {Matrix} rows @param {Float64Array} W @param {number} K */
const originOn = ({ origin }, W, K) => product(origin, W, origin.length, K);

/** Y' S about the origin, d x K. @param {Matrix} rows @param {Float64Array} S n x K @param {number} K */
function transposed(rows, S, K) {
  const products = new RowProducts(rows, K);
  const A = new Float64Array(rows.d * products.width);
  const sum = new Float64Array(K);
  const s = new Float64Array(products.width);
  for (let i = 0; i < rows.n; i += 1) {
    for (let k = 0; k < K; k += 1) sum[k] += s[k] = S[i * K + k];
    products.load(i);
    products.add(A, s);
  }
  return centred(resized(A, products.width, K), rows.factor, rows.origin, sum);
}

/** @param {Float64Array} A @param {number} factor @param {Float64Array} origin @param {Float64Array} sum */
function centred(A, factor, origin, sum) {
  const K = sum.length;
  for (let j = 0; j < origin.length; j += 1)
    for (let k = 0; k < K; k += 1) A[j * K + k] = factor * A[j * K + k] - origin[j] * sum[k];
  return A;
}

/** a' b of a (n x p) and b (n x q). @param {Float64Array} a @param {Float64Array} b @param {number} p @param {number} q */
function gram(a, b, p, q) {
  const G = new Float64Array(p * q);
  for (let at = 0, bt = 0; at < a.length; at += p, bt += q)
    for (let i = 0; i < p; i += 1)
      for (let j = 0; j < q; j += 1) G[i * q + j] += a[at + i] * b[bt + j];
  return G;
}

/** a b of a (n x p) and b (p x q). @param {Float64Array} a @param {Float64Array} b @param {number} p @param {number} q */
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

/** Eigenvalues, falling, and vectors (columns) of a symmetric matrix, by Jacobi rotations. @param {Float64Array} matrix @param {number} n */
export function eigen(matrix, n) {
  const A = matrix.slice();
  const V = identity(n);
  let size = 0;
  for (const a of A) size += a * a;
  for (let sweep = 0; sweep < 40; sweep += 1) {
    let off = 0;
    for (let p = 0; p < n; p += 1) for (let q = 0; q < p; q += 1) off += A[p * n + q] ** 2;
    if (!(off > 1e-33 * size)) break;
    for (let p = 0; p < n; p += 1)
      for (let q = p + 1; q < n; q += 1) rotate(A, V, n, p, q, 1e-18 * Math.sqrt(size));
  }
  const order = Array.from(V.subarray(0, n).keys()).sort((a, b) => A[b * n + b] - A[a * n + a]);
  const vectors = V.map((_, at) => V[order[at % n] * n + Math.floor(at / n)]);
  return { values: Float64Array.from(order, (i) => A[i * n + i]), vectors };
}

/** One rotation of A, and of the rows of V. @param {Float64Array} A @param {Float64Array} V @param {number} n @param {number} p @param {number} q @param {number} least */
function rotate(A, V, n, p, q, least) {
  const b = A[p * n + q];
  if (Math.abs(b) <= least) return;
  const theta = (A[q * n + q] - A[p * n + p]) / (2 * b);
  const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
  const c = 1 / Math.sqrt(t * t + 1);
  const s = t * c;
  A[p * n + p] -= t * b;
  A[q * n + q] += t * b;
  A[p * n + q] = A[q * n + p] = 0;
  for (let i = 0; i < n; i += 1) {
    const [up, uq] = [V[p * n + i], V[q * n + i]];
    V[p * n + i] = c * up - s * uq;
    V[q * n + i] = s * up + c * uq;
    if (i === p || i === q) continue;
    const [x, y] = [A[p * n + i], A[q * n + i]];
    A[p * n + i] = A[i * n + p] = c * x - s * y;
    A[q * n + i] = A[i * n + q] = s * x + c * y;
  }
}

/** Columns made orthonormal one after the other, twice; those that vanish become 0. @param {Float64Array} A d x K @param {number} K */
export function orthonormal(A, K) {
  const d = A.length / K;
  for (let k = 0; k < K; k += 1) {
    let first = 0;
    for (let j = 0; j < d; j += 1) first += A[j * K + k] ** 2;
    for (let pass = 0; pass < 2; pass += 1)
      for (let other = 0; other < k; other += 1) {
        let dot = 0;
        for (let j = 0; j < d; j += 1) dot += A[j * K + k] * A[j * K + other];
        for (let j = 0; j < d; j += 1) A[j * K + k] -= dot * A[j * K + other];
      }
    let last = 0;
    for (let j = 0; j < d; j += 1) last += A[j * K + k] ** 2;
    const scale = last > 1e-24 * first ? 1 / Math.sqrt(last) : 0;
    for (let j = 0; j < d; j += 1) A[j * K + k] *= scale;
  }
  return A;
}

/** Orthonormal W of largest tr(W'A): U V' of A = U S V'; of deficient A the one nearest to `previous`. @param {Float64Array} A d x K @param {number} K @param {Float64Array} [previous] */
export function polar(A, K, previous) {
  const { values, vectors: V } = eigen(gram(A, A, K, K), K);
  const whole = values.findIndex((value) => !(value > WELL_CONDITIONED * values[0]));
  if (whole < 0) {
    const scaled = V.map((v, at) => v / Math.sqrt(values[at % K]));
    const R = product(scaled, transpose(V, K), K, K);
    const W = product(A, R, K, K);
    const G = gram(W, W, K, K).map((g, at) => (at % (K + 1) ? 0 : 1.5) - 0.5 * g);
    return product(W, G, K, K); // orthonormal to rounding
  }
  const U = orthonormal(product(A, V, K, K), K); // falling lengths, so the leading ones are exact
  const free = previous ? product(previous, V, K, K) : normal(mulberry(1), A.length);
  for (let k = 0; k < K; k += 1) {
    let there = false;
    for (let at = k; at < U.length; at += K) there ||= U[at] !== 0;
    if (!there) for (let at = k; at < U.length; at += K) U[at] = free[at];
  }
  return product(orthonormal(U, K), transpose(V, K), K, K);
}

/** @param {number} n @param {number} k */
export function logBinomial(n, k) {
  let sum = 0;
  for (let i = 1; i <= k; i += 1) sum += Math.log((n - k + i) / i);
  return sum;
}

/** Sums over all subsets of L of K components of one row: log e_L(exp a), and the inclusion of each. */
export class Subsets {
  /** @param {number} K @param {number} L */
  constructor(K, L) {
    this.K = K;
    this.L = L;
    this.flip = 2 * L > K; // those left out are fewer
    this.m = this.flip ? K - L : L;
    this.table = new Float64Array((K + 1) * (this.m + 2));
    this.after = new Float64Array(this.m + 2);
    this.into = new Float64Array(K);
    this.out = new Float64Array(K);
    this.top = new Float64Array(this.m);
  }

  /** @param {Float64Array} a logits @param {Float64Array} r filled with the inclusion probabilities */
  sum(a, r) {
    const { K, m, flip, table, after, into, out, top } = this;
    let base = 0;
    if (flip || !m) for (let k = 0; k < K; k += 1) base += flip ? a[k] : 0;
    if (!m) return r.fill(flip ? 1 : 0) && base;
    top.fill(-Infinity);
    for (let k = 0; k < K; k += 1) {
      let [value, i] = [flip ? -a[k] : a[k], m - 1];
      if (value <= top[i]) continue;
      for (; i > 0 && top[i - 1] < value; i -= 1) top[i] = top[i - 1];
      top[i] = value;
    }
    const level = top[m - 1];
    base += m * level;
    for (let k = 0; k < K; k += 1) {
      const b = (flip ? -a[k] : a[k]) - level;
      const w = Math.exp(-Math.abs(b));
      const weight = w > LEAST ? w : 0;
      if (b > 0) base += b;
      into[k] = b > 0 ? 1 : weight;
      out[k] = b > 0 ? weight : 1;
    }
    const width = m + 2; // before the first entry there is a zero
    table.fill(0, 0, width);
    table[1] = 1;
    for (let k = 0; k < K; k += 1) {
      const [from, to] = [k * width, (k + 1) * width];
      for (let j = 1; j < width; j += 1)
        table[to + j] = out[k] * table[from + j] + into[k] * table[from + j - 1];
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
  }
}

/** What rows share under a state: the logits' slope and offset, shrinkage, and less the projection of a row that is 0. @param {FitState} state @param {Matrix} rows */
function constants({ W, shift, latent, noise }, rows) {
  const K = latent.length;
  const shrink = latent.map((tau2) => tau2 / (tau2 + noise));
  const start = originOn(rows, W, K).map((one, k) => shift[k] - one);
  const slope = shrink.map((share) => share / (2 * noise));
  return { K, shrink, start, slope, offset: latent.map((tau2) => 0.5 * Math.log1p(tau2 / noise)) };
}

/** E step; `beta` below 1 tempers the logits. @param {FitState} state @param {Matrix} rows @param {number} L @param {number} [beta] @returns {Sums} */
export function expect(state, rows, L, beta = 1) {
  const { n, d, factor, origin, total, features } = rows;
  const { shift, noise } = state;
  const { K, shrink, start, slope, offset } = constants(state, rows);
  const [subsets, products] = [new Subsets(K, L), new RowProducts(rows, K)];
  const W = resized(state.W, K, products.width);
  const wide = new Float64Array(d * products.width);
  const [p, s] = [new Float64Array(products.width), new Float64Array(products.width)];
  const [a, r, sum, used, second] = Array.from({ length: 5 }, () => new Float64Array(K));
  let value = 0;
  for (let i = 0; i < n; i += 1) {
    products.load(i);
    products.project(W, p);
    for (let k = 0; k < K; k += 1) {
      p[k] = factor * p[k] + start[k];
      a[k] = beta * (p[k] * p[k] * slope[k] - offset[k]);
    }
    value += subsets.sum(a, r);
    for (let k = 0; k < K; k += 1) {
      const m = shrink[k] * p[k];
      s[k] = r[k] * m;
      sum[k] += s[k];
      used[k] += r[k];
      second[k] += s[k] * m;
    }
    products.add(wide, s);
  }
  const A = centred(resized(wide, products.width, K), factor, origin, sum);
  for (let k = 0; k < K; k += 1) second[k] += used[k] * shrink[k] * noise;
  const away = shift.reduce((all, one) => all + one * one, 0);
  value -= n * (0.5 * features * Math.log(2 * Math.PI * noise) + logBinomial(K, L));
  value -= (total + n * away) / (2 * noise);
  return { value, A, sum, second, used };
}

/** @param {Matrix} rows */
const floorOf = ({ total, n, features }) => (FLOOR * total) / (n * features);

/** M step. @param {Sums} sums @param {FitState} state @param {Matrix} rows @param {Latent} latent @returns {FitState} */
function maximise({ A, sum, second, used }, state, rows, latent) {
  const { n, total, features } = rows;
  const K = sum.length;
  const shift = sum.map((one) => one / n);
  const W = polar(A, K, state.W);
  let residual = total;
  for (let at = 0; at < W.length; at += 1) residual -= 2 * W[at] * A[at];
  for (let k = 0; k < K; k += 1) residual += second[k] - n * shift[k] * shift[k];
  const floor = floorOf(rows);
  return {
    ...{ W, shift, latent: latentOf(sum.length, second, used, latent, state, floor) },
    noise: Math.max(residual / (n * features), floor),
  };
}

/** @param {number} K @param {Float64Array} second @param {Float64Array} used @param {Latent} latent @param {FitState} state @param {number} floor */
function latentOf(K, second, used, latent, state, floor) {
  const add = (/** @type {Float64Array} */ of) => of.reduce((all, one) => all + one, 0);
  const uses = add(used);
  if (latent === 'shared')
    return new Float64Array(K).fill(Math.max(add(second) / Math.max(uses, 1e-300), floor));
  const some = (/** @type {number} */ k) => used[k] > 1e-9 * uses;
  return second.map((all, k) => Math.max(some(k) ? all / used[k] : state.latent[k], floor));
}

/** Momentum: now + beta (now - before), in logs of variances. @param {FitState} before @param {FitState} now @param {number} beta @param {number} floor @returns {FitState} */
function extend(before, now, beta, floor) {
  const ahead = (/** @type {Float64Array} */ first, /** @type {Float64Array} */ last) =>
    last.map((value, i) => value + beta * (value - first[i]));
  const inLogs = (/** @type {number} */ first, /** @type {number} */ last) =>
    Math.max(
      last * Math.min(Math.max((last / first) ** beta, 1 / MOST_CHANGE), MOST_CHANGE),
      floor,
    );
  return {
    W: polar(ahead(before.W, now.W), now.latent.length, now.W),
    shift: ahead(before.shift, now.shift),
    latent: now.latent.map((tau2, k) => inLogs(before.latent[k], tau2)),
    noise: inLogs(before.noise, now.noise),
  };
}

/** The state at the start and after every step, by Nesterov's sequence restarted where a likelihood falls. @param {FitState} start @param {Matrix} rows @param {number} L @param {Latent} latent @returns {Generator<Step>} */
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

/** Follow a path until ten steps gain under `tol` nats a row, or as `window` of them say. @param {Generator<Step>} path @param {Matrix} rows @param {{tol?: number, most?: number, window?: number, best?: number}} [how] `best` is the end of another path, which this one must still be able to pass @returns {Generator<Step, Step & {values: number[]}>} */
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

const ANNEALED = 30; // steps from 0.001 to 1

/** The state after EM with logits times a rising number. @param {FitState} state @param {Matrix} rows @param {number} L @param {Latent} latent */
export function* annealed(state, rows, L, latent) {
  for (let i = 0; i < ANNEALED; i += 1) {
    const sums = expect(state, rows, L, 10 ** (-3 + (3 * i) / (ANNEALED - 1)));
    state = maximise(sums, state, rows, latent);
    yield { ...sums, state, next: state };
  }
  return state;
}

/** Variances from the hard assignment of rows to their L largest projections on W. @param {Matrix} rows @param {Float64Array} W @param {number} K @param {number} L @param {Latent} latent @returns {FitState} */
export function firstState(rows, W, K, L, latent) {
  const { n, total, features } = rows;
  const P = times(rows, W, K);
  const [captured, used] = [new Float64Array(K), new Float64Array(K)];
  for (let i = 0; i < n; i += 1)
    for (const k of topOf(
      P.subarray(i * K, i * K + K).map((p) => p * p),
      L,
    )) {
      captured[k] += P[i * K + k] ** 2;
      used[k] += 1;
    }
  const all = captured.reduce((sum, one) => sum + one, 0);
  const spare = n * (features - L);
  const floor = floorOf(rows);
  const noise = Math.max(spare ? (total - all) / spare : all / (2 * n * L), floor);
  const tau2 = captured.map((one, k) =>
    Math.max((latent === 'shared' ? all / (n * L) : one / (used[k] || 1)) - noise, floor),
  );
  return { W, shift: new Float64Array(K), latent: tau2, noise };
}

/** The L largest, ties to the first, ascending. @param {Float64Array} a @param {number} L */
export function topOf(a, L) {
  const order = Array.from(a, (_, k) => k).sort((i, j) => a[j] - a[i] || i - j);
  return order.slice(0, L).sort((i, j) => i - j);
}

/** The maximum at L = K: Tipping and Bishop (1999). @param {Matrix} rows @param {number} K @param {Latent} latent @returns {FitState} */
export function closedForm(rows, K, latent) {
  const { V, values } = principal(rows, K);
  const { n, total, features } = rows;
  const spare = features - K;
  const kept = values.reduce((sum, one) => sum + one, 0);
  const floor = floorOf(rows);
  const noise = Math.max(spare ? (total / n - kept) / spare : 0, floor);
  let tau2 = values.map((value) => Math.max(value - noise, floor));
  if (latent === 'shared') tau2 = tau2.fill(tau2.reduce((sum, one) => sum + one, 0) / K);
  return { W: V, shift: new Float64Array(K), latent: tau2, noise };
}

const DIRECT = 96; // features up to which the covariance is decomposed whole
const [ROUNDS, EXTRA] = [4, 8];

/** Leading directions (d x q) and their variances. @param {Matrix} rows @param {number} q @param {number} [rounds] of subspace iteration, where there are many features */
export function principal(rows, q, rounds = ROUNDS) {
  const { d, n } = rows;
  const many = Math.min(q + EXTRA, d, n);
  let V = /** @type {Float64Array} */ (identity(d));
  if (d > DIRECT) {
    V = orthonormal(normal(mulberry(7), d * many), many);
    for (let round = 0; round < rounds; round += 1)
      V = orthonormal(transposed(rows, times(rows, V, many), many), many);
  }
  const width = V.length / d;
  const P = times(rows, V, width);
  const { values, vectors } = eigen(gram(P, P, width, width), width);
  const leading = product(V, resized(vectors, width, q), width, q);
  return { V: leading, values: values.slice(0, q).map((sum) => sum / n) };
}

/** Rotation of scores P (n x K) with the largest sum of fourth powers. @param {Float64Array} P @param {number} K */
export function quartimax(P, K) {
  let size = 0;
  for (const p of P) size += p * p;
  const scale = 1 / Math.sqrt(size / P.length || 1);
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

/** Uniform numbers. @param {number} seed */
export const mulberry = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};

/** @param {() => number} random @param {number} count */
export const normal = (random, count) =>
  Float64Array.from(
    { length: count },
    () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
