/** Fit the data set of a JSON file in typed arrays; prints what `test_live.py` compares. */

import { readFileSync } from 'node:fs';
import * as em from '../../appca/canvas/js/live/em.js';

function ended(path, step = path.next()) {
  while (!step.done) step = path.next();
  return step.value;
}

const { X, n, d, K, L, latent, W } = JSON.parse(readFileSync(process.argv[2]));
const rows = em.rowsOf(Float64Array.from(X), n, d);
const start = em.firstState(rows, em.polar(Float64Array.from(W), K), K, L, latent);
const whole = L === K && em.closedForm(rows, K, latent);
const state = whole || ended(em.climb(em.ascent(start, rows, L, latent), rows)).state;
const said = em.describe(state, rows, L);
const components = [...em.transpose(em.arranged(state, said, null).state.W, K)];
const best = em.expect(ended(new em.Fits(rows).best(K, L, latent)), rows, L).value;
console.log(JSON.stringify({ values: [...said.density], components, best }));
