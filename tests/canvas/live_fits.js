/** Fit the data sets of a JSON file in typed arrays; prints what `test_live.py` compares. */

import { readFileSync } from 'node:fs';

import * as em from '../../appca/canvas/js/live/em.js';

const ended = (path) => {
  for (;;) {
    const { done, value } = path.next();
    if (done) return value;
  }
};

const fits = JSON.parse(readFileSync(process.argv[2])).map(({ X, n, d, K, L, latent, W }) => {
  const rows = em.rowsOf(Float64Array.from(X), n, d);
  const directions = em.polar(Float64Array.from(W), K);
  const start = em.firstState(rows, directions, K, L, latent);
  const state =
    L === K
      ? em.closedForm(rows, K, latent)
      : ended(em.climb(em.ascent(start, rows, L, latent), rows)).state;
  const said = em.describe(state, rows, L);
  const shown = em.arranged(state, said, null).state;
  const best = ended(new em.Fits(rows).best(K, L, latent));
  const components = [...em.transpose(shown.W, K)];
  return { values: [...said.density], components, best: em.expect(best, rows, L).value };
});
console.log(JSON.stringify(fits));
