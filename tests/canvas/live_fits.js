/** Fit the data sets of a JSON file in typed arrays; prints what `test_live.py` compares. */

import { readFileSync } from 'node:fs';
import * as em from '../../appca/canvas/js/live/em.js';

function ended(path, step = path.next()) {
  while (!step.done) step = path.next();
  return step.value;
}

const fits = JSON.parse(readFileSync(process.argv[2])).map(({ X, n, d, K, L, latent, W }) => {
  const rows = em.rowsOf(Float64Array.from(X), n, d);
  const start = em.firstState(rows, em.polar(Float64Array.from(W), K), K, L, latent);
  const whole = L === K && em.closedForm(rows, K, latent);
  const state = whole || ended(em.climb(em.ascent(start, rows, L, latent), rows)).state;
  const said = em.describe(state, rows, L);
  const components = [...em.transpose(em.arranged(state, said, null).state.W, K)];
  const best = em.expect(ended(new em.Fits(rows).best(K, L, latent)), rows, L).value;
  return { values: [...said.density], components, best };
});
console.log(JSON.stringify(fits));
