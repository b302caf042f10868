"""Factor analysis takes less memory than its rows, beside them; measured as benchmarks do."""

import pytest

from tests.memory import growth, needs_proc

pytestmark = pytest.mark.thorough  # tests/models/rows/test_streams measures a fit in every run

# Fits of a few rows come first: libraries and compiled kernels stay once they are loaded.
BEFORE = """
import numpy as np
from appca import AdaptiveFactorAnalysis, FiniteSparseFA, InfiniteSparseFA

rng = np.random.default_rng(0)
W = rng.standard_normal((3, 500), dtype=np.float32)
X = np.empty((24_000, 500), np.float32)  # 48 MB
for part in np.array_split(X, 12):
    Z = rng.random((len(part), 3)).argsort(axis=1) < 2
    part[:] = (3.0 * Z * rng.standard_normal(Z.shape)).astype(np.float32) @ W
    part += rng.standard_normal(part.shape, dtype=np.float32) + 1.0
chain = {"n_chains": 1, "burn_in": 1, "n_draws": 1, "random_state": 0}
models = [
    AdaptiveFactorAnalysis(3, 2, max_iter=3, random_state=0),
    AdaptiveFactorAnalysis(3, 2, max_iter=2, allocation="best", annealing=1, random_state=0),
    AdaptiveFactorAnalysis(3, 2, max_iter=3, inference="gibbs", **chain),
    FiniteSparseFA(3, **chain),
    InfiniteSparseFA(3, **chain),
]
for model in models:
    model.fit(X[:500].copy())
"""
WORK = """
for model in models:
    noise = model.fit(X).noise_variance_
    assert abs(noise - 1.0) < 0.05, (model, noise)
"""


@needs_proc
def test_fits_take_less_memory_than_their_rows():
    assert growth(BEFORE, WORK) < 48_000_000
