/** Fits of one data set: a quick one from the fit on screen, the best of several starts, and what a fit says of the rows. */

import { clamp } from '../layout/geometry.js';
import {
  annealed,
  ascent,
  climb,
  closedForm,
  firstState,
  identity,
  logBinomial,
  mulberry,
  normal,
  orthonormal,
  polar,
  principal,
  product,
  quartimax,
  resized,
  rowsOf,
  sampleOf,
  Subsets,
  times,
  topOf,
  transpose,
} from './em.js';

const COORDINATES = 64; // in which starts are searched; the last steps take all features
const [WORK, LEAST_STARTS, MOST_STARTS] = [4.5e7, 5, 100]; // multiplications a step, by which random rotations are counted
const LAST = { window: 1, tol: 1e-3 }; // over all features, after climbs in coordinates
const MATCHED = 0.8; // |cos| from which a component is the same

export class Fits {
  /** @param {Matrix} rows */
  constructor(rows) {
    this.rows = rows;
    this.low = rows; // all rows, in few coordinates where they have many features
    /** @type {Float64Array | null} */ this.V = null;
    this.lead = new Float64Array(0); // leading directions in these coordinates, d x `leads`
    this.leads = 0;
  }

  get mostK() {
    return Math.min(30, this.rows.n - 1, this.rows.d);
  }

  /** Find the coordinates, from a sample of many rows; the rough fit of a sample needs none. */
  prepare() {
    if (this.leads) return;
    const { rows } = this;
    const { d } = rows;
    const few = Math.min(COORDINATES, d);
    if (d > COORDINATES) {
      const { V } = principal(sampleOf(rows, 2500), Math.min(few, rows.n - 1));
      const q = V.length / d;
      const P = times(rows, V, q);
      this.V = V;
      this.low = { ...rowsOf(P, rows.n, q), total: rows.total, features: d };
      this.low.origin.fill(0); // they are about the mean already
    }
    this.leads = Math.min(30, this.low.d);
    this.lead = principal(this.low, this.leads).V;
  }

  /** The first principal directions, d x K; of a sample where there are many features. @param {number} K */
  planes(K) {
    if (!this.V && this.leads) return resized(this.lead, this.leads, K);
    return principal(sampleOf(this.rows, 1000), K, 2).V;
  }

  /** A path from a few rows, so that there is a picture. @param {number} K @param {number} L @param {Latent} latent @returns {Generator<Step>} */
  *rough(K, L, latent) {
    const some = sampleOf(this.rows, 1000);
    const { V } = principal(some, K, 2);
    const W = product(V, quartimax(times(some, V, K), K), K, K);
    yield* ascent(firstState(some, W, K, L, latent), some, L, latent);
  }

  /** EM from a fit with another K or L, in coordinates. @param {FitState} from in all features @param {number} K @param {number} L @param {Latent} latent */
  *warm(from, K, L, latent) {
    this.prepare();
    const { low, V, rows } = this;
    const before = from.latent.length;
    const W = V ? product(transpose(V, low.d), from.W, rows.d, before) : from.W;
    const { lead, leads } = this;
    const wide = resized(W, before, K);
    for (let at = 0; at < wide.length; at += 1)
      if (at % K >= before) wide[at] = lead[Math.floor(at / K) * leads + (at % K)];
    const start = firstState(low, polar(orthonormal(wide, K), K), K, L, latent);
    return yield* climb(ascent(start, low, L, latent), low, { tol: 1e-2 });
  }

  /** The highest end of climbs from several starts, on a sample of many rows. @param {number} K @param {number} L @param {Latent} latent @param {(elapsed: number) => boolean} [late] whether no other start is to begin @returns {Generator<Step, FitState>} in coordinates */
  *race(K, L, latent, late = () => false) {
    this.prepare();
    const { low } = this;
    const some = sampleOf(low, Math.min(10_000, Math.max(400 * K, 2500)));
    const V = resized(this.lead, this.leads, K);
    const work = some.n * K * (some.d + 6 * L);
    const random = clamp(Math.round(WORK / work), LEAST_STARTS, MOST_STARTS);
    const R = quartimax(times(sampleOf(some, 1000), V, K), K);
    const seeds = mulberry(5);
    let best = /** @type {Step | null} */ (null);
    for (let i = 0; i < 4 + random && !(i && late(i)); i += 1) {
      const turned = i > 3 ? polar(normal(seeds, K * K), K) : i % 3 ? identity(K) : R;
      let state = firstState(some, product(V, turned, K, K), K, L, latent);
      if (i === 2 || i === 3) state = yield* annealed(state, some, L, latent);
      const how = { tol: 1e-2, most: 200, best: i > 3 && best ? best.value : -Infinity };
      const end = yield* climb(ascent(state, some, L, latent), some, how);
      if (!best || end.value > best.value) best = end;
    }
    return /** @type {Step} */ (best).state;
  }

  /** To the end with all rows and features. @param {FitState} start in coordinates @param {number} L @param {Latent} latent @param {number} [most] steps over all features */
  *finish(start, L, latent, most = 500) {
    const { low, rows, V } = this;
    if (!V) return yield* climb(ascent(start, rows, L, latent), rows);
    const end = yield* climb(ascent(start, low, L, latent), low, { tol: 1e-3, window: 3 });
    const path = ascent(this.lifted(end.state), rows, L, latent, 6);
    return yield* climb(path, rows, { ...LAST, most });
  }

  /** @param {FitState} state in coordinates @returns {FitState} in all features */
  lifted(state) {
    const { V, low } = this;
    const K = state.latent.length;
    return V ? { ...state, W: product(V, state.W, low.d, K) } : state;
  }

  /** The whole of a fit. @param {number} K @param {number} L @param {Latent} latent @param {(start: number) => boolean} [late] @param {number} [most] @returns {Generator<Step, FitState>} */
  *best(K, L, latent, late, most) {
    if (L === K) return closedForm(this.rows, K, latent);
    const start = yield* this.race(K, L, latent, late);
    return (yield* this.finish(start, L, latent, most)).state;
  }
}

/** What a fit says of the rows. @param {FitState} state @param {Matrix} rows @param {number} L @returns {Described} */
export function describe(state, rows, L) {
  const { n, d, values, factor, origin } = rows;
  const { W, shift, latent, noise } = state;
  const K = latent.length;
  const P = times(rows, W, K);
  const subsets = new Subsets(K, L);
  const [a, r] = [new Float64Array(K), new Float64Array(K)];
  const [scores, inclusion] = [new Float32Array(n * K), new Float32Array(n * K)];
  const active = new Uint8Array(n * K);
  const [membership, error] = [new Float32Array(n), new Float32Array(n)];
  const density = new Float64Array(n);
  const shrink = latent.map((tau2) => tau2 / (tau2 + noise));
  const fixed = -0.5 * d * Math.log(2 * Math.PI * noise) - logBinomial(K, L);
  const second = new Float64Array(K);
  for (let i = 0; i < n; i += 1) {
    let squares = 0;
    for (let j = 0, at = i * d; j < d; j += 1, at += 1)
      squares += (factor * values[at] - origin[j]) ** 2;
    for (let k = 0; k < K; k += 1) {
      const p = P[i * K + k];
      squares += shift[k] * (2 * p + shift[k]);
      P[i * K + k] = p + shift[k];
      const power = (P[i * K + k] ** 2 * shrink[k]) / (2 * noise);
      a[k] = power - 0.5 * Math.log1p(latent[k] / noise);
    }
    const log = subsets.sum(a, r);
    density[i] = fixed + log - squares / (2 * noise);
    let [chosen, left] = [-log, squares];
    for (const k of topOf(a, L)) {
      chosen += a[k];
      const [p, score] = [P[i * K + k], shrink[k] * P[i * K + k]];
      active[i * K + k] = 1;
      scores[i * K + k] = score;
      left += score * (score - 2 * p);
    }
    membership[i] = Math.min(1, Math.exp(chosen));
    error[i] = Math.max(0, left) / d;
    for (let k = 0; k < K; k += 1) {
      inclusion[i * K + k] = r[k];
      second[k] += r[k] * ((shrink[k] * P[i * K + k]) ** 2 + shrink[k] * noise);
    }
  }
  const variance = second.map((sum) => sum / n);
  return { scores, active, inclusion, membership, density, error, variance, K, L };
}

/** Order and signs of components so that they keep the numbers of those they are like; else by variance. @param {FitState} state @param {Float64Array} variance @param {FitState | null} before as it was shown */
export function numbered(state, variance, before) {
  const { W, latent } = state;
  const K = latent.length;
  const d = W.length / K;
  const many = before?.latent.length ?? 0;
  const cosine = before ? product(transpose(W, K), before.W, d, many) : new Float64Array(0);
  const [signs, there] = [new Int8Array(K), new Int32Array(K).fill(-1)];
  for (let k = 0; k < K; k += 1) {
    let largest = 0;
    for (let j = 0; j < d; j += 1) {
      const weight = W[j * K + k];
      if (Math.abs(weight) > Math.abs(largest) * (1 + 1e-4)) largest = weight;
    }
    signs[k] = largest < 0 ? -1 : 1;
    for (let other = 0; other < many; other += 1)
      if (Math.abs(cosine[k * many + other]) >= MATCHED) {
        there[k] = other; // of orthonormal directions no other can be as close
        signs[k] = cosine[k * many + other] < 0 ? -1 : 1;
      }
  }
  const order = new Int32Array(K).fill(-1);
  there.forEach((place, k) => place >= 0 && place < K && (order[place] = k));
  const rest = Array.from(there.keys())
    .filter((k) => there[k] < 0 || there[k] >= K)
    .sort((a, b) => variance[b] - variance[a]);
  for (let place = 0; place < K; place += 1)
    if (order[place] < 0) order[place] = /** @type {number} */ (rest.shift());
  const came = before ? Array.from(order, (k) => there[k] < 0) : [];
  return { order, signs, came };
}

/** A state with its components in another order, some turned. @param {FitState} state @param {{order: Int32Array, signs: Int8Array}} how @returns {FitState} */
export function arranged({ W, shift, latent, noise }, { order, signs }) {
  const K = latent.length;
  const moved = W.map((_, at) => {
    const k = order[at % K];
    return signs[k] * W[at - (at % K) + k];
  });
  const turned = shift.map((_, k) => signs[order[k]] * shift[order[k]]);
  return { W: moved, shift: turned, latent: latent.map((_, k) => latent[order[k]]), noise };
}
