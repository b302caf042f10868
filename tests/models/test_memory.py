"""Fits take less memory than their rows, beside them; `test_blocks` measures a mapped file."""

import pytest

from tests.memory import growth, needs_proc

pytestmark = pytest.mark.thorough

# Fits of a few rows come first: libraries and compiled kernels stay once they are loaded.
BEFORE = """
import numpy as np
from appca import (
    AdaptiveFactorAnalysis, AdaptivePPCA, FiniteSparseFA, InfiniteSparseFA, NonparametricPPCA
)

rng = np.random.default_rng(0)
W = {}
X = np.empty(({}, {}), np.float32)
for part in np.array_split(X, 10):
    Z = rng.random((len(part), 3)).argsort(axis=1) < 2
    part[:] = ({} * Z * rng.standard_normal(Z.shape)).astype(np.float32) @ W
    part += rng.standard_normal(part.shape, dtype=np.float32) + 1.0
chain = {{"n_chains": 1, "burn_in": 2, "n_draws": 3, "random_state": 0}}
em = {{"inference": "gibbs", "init": "pca", "max_iter": 3}}
models = [{}]
for model in models:
    model.fit(X[:1000].copy())  # enough for the compiled E step
"""
# Large arrays are always new to the process, so a copy of the rows shows in whatever fit makes it,
# while what the allocator keeps of smaller ones is not counted again and again.
WORK = """
wide = X.reshape(1000, -1)  # fewer rows than features
for model, rows in [*((model, X) for model in models), (models[0], wide)][: {}]:
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("RssAnon")
    noise = model.fit(rows).noise_variance_
    assert rows is wide or abs(noise - 1.0) < 0.05, (model, noise)
    share = (peak() - before) / rows.nbytes
    assert share < 1.0, (model, rows.shape, share)
"""
CHAINS = """
    AdaptivePPCA(13, 2, **em, **chain),
    AdaptivePPCA(13, 2, w_update="polar", z_update="swap", **em, **chain),
    NonparametricPPCA(13, **chain),
"""
FACTORS = """
    AdaptiveFactorAnalysis(3, 2, max_iter=3, random_state=0),
    AdaptiveFactorAnalysis(3, 2, max_iter=2, allocation="best", annealing=1, random_state=0),
    AdaptiveFactorAnalysis(3, 2, max_iter=3, inference="gibbs", **chain),
    FiniteSparseFA(3, **chain),
    InfiniteSparseFA(3, **chain),
"""


@needs_proc
@pytest.mark.parametrize(
    ("W", "n", "d", "size", "models", "n_fits"),
    [
        ("np.linalg.qr(rng.standard_normal((750, 3)))[0].T.astype(np.float32)", 20_000, 750, 9.0,
         CHAINS, 4),
        ("rng.standard_normal((3, 500), dtype=np.float32)", 24_000, 500, 3.0, FACTORS, 5),
    ],
)  # fmt: skip
def test_fits_take_less_memory_than_their_rows(W, n, d, size, models, n_fits):
    before, work = BEFORE.format(W, n, d, size, models), WORK.format(n_fits)
    assert growth(before, work) < 2 * n * d * 4  # with what was kept after all the fits before
