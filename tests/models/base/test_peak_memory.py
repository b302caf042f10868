"""Chains of orthonormal components take less memory than their rows, beside them."""

import pytest

from tests.memory import growth, needs_proc

pytestmark = pytest.mark.thorough  # tests/models/rows/test_streams measures a fit in every run

# Fits of a few rows come first: libraries and compiled kernels stay once they are loaded.
BEFORE = """
import numpy as np
from appca import AdaptivePPCA, NonparametricPPCA

rng = np.random.default_rng(0)
W = np.linalg.qr(rng.standard_normal((750, 3)))[0].T.astype(np.float32)
X = np.empty((20_000, 750), np.float32)  # 60 MB
for part in np.array_split(X, 10):
    Z = rng.random((len(part), 3)).argsort(axis=1) < 2
    part[:] = (9.0 * Z * rng.standard_normal(Z.shape)).astype(np.float32) @ W
    part += rng.standard_normal(part.shape, dtype=np.float32) + 1.0
wide = X.reshape(1000, 15_000)  # fewer rows than features
chain = {"n_chains": 1, "burn_in": 2, "n_draws": 3, "random_state": 0}
em = {"inference": "gibbs", "init": "pca", "max_iter": 3}
models = [
    AdaptivePPCA(13, 2, **em, **chain),
    AdaptivePPCA(13, 2, w_update="polar", z_update="swap", **em, **chain),
    NonparametricPPCA(13, **chain),
]
for model in models:
    model.fit(X[:1000].copy())  # enough for the compiled E step
"""
# Large arrays are always new to the process, so a copy of the rows shows in whatever fit makes it,
# while what the allocator keeps of smaller ones is not counted again and again.
WORK = """
for model, rows in [*((model, X) for model in models), (models[0], wide)]:
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("RssAnon")
    noise = model.fit(rows).noise_variance_
    assert rows is wide or abs(noise - 1.0) < 0.05, (model, noise)
    share = (peak() - before) / rows.nbytes
    assert share < 1.0, (model, rows.shape, share)
"""


@needs_proc
def test_a_chain_takes_less_memory_than_its_rows():
    assert growth(BEFORE, WORK) < 2 * 60_000_000  # with what was kept after all the fits before
