"""The compiled E step, and long fits by it, against the E step of NumPy and plain EM."""

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.models import climb, em, stiefel
from appca.models.em import EMSettings, SubspaceState, expect, floor_of
from appca.models.rows import about, centre_of
from tests.models.synthetic import planted


def settings(rows, k, n_active, latent="shared", *, compiled=False):
    floor = floor_of(rows)
    return EMSettings(k, n_active, latent, True, False, stiefel.polar, floor, compiled)


def problem(seed, n=600, d=12, k=5, n_active=2, dtype=np.float64):
    rng = np.random.default_rng(seed)
    data = planted(n, d, k, n_active, seed=seed, noise=0.5, offset=2.0)
    X = data.X.astype(dtype)
    rows = about(X, centre_of(X))
    W = np.linalg.qr(rng.standard_normal((d, k)))[0]
    return data, rows, SubspaceState(W, rng.standard_normal(k), rng.uniform(0.5, 2.0, k), 0.2)


def test_the_compiled_e_step_counts_the_first_of_equal_logits(seed):
    """Rows at the mean along several components: L of them are used, by symmetry L/K of each."""
    X = np.zeros((64, 6))
    X[:, 5] = np.random.default_rng(seed).standard_normal(64)
    rows = about(X, None)
    state = SubspaceState(np.eye(6, 4), np.zeros(4), np.ones(4), 0.5)
    sums = expect(state, rows, settings(rows, 4, 2, compiled=True))
    np.testing.assert_allclose(sums.used, 32.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("size", "worth"),
    [
        ((60_000, 10, 3), True),
        ((5000, 12, 6), True),
        ((178, 5, 2), False),
        ((10**6, 4, 4), False),
        ((2500, 100, 50), True),
    ],
)
def test_the_compiler_is_called_by_size_alone(size, worth):
    assert em.worth_compiling(*size) == worth


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_fits_end_as_high_as_the_plain_path(dtype, seed, monkeypatch):
    """The plain path: no sample, no coordinates, no momentum, no compiler."""
    monkeypatch.setattr(climb, "SAMPLE_ROWS_PER_COMPONENT", 100)
    monkeypatch.setattr(climb, "MIN_SAMPLE_ROWS", 100)
    monkeypatch.setattr(em, "LEAST_COMPILED", 1)
    data = planted(4000, 30, 5, 2, seed=seed, noise=0.5, offset=1.0)
    X = data.X.astype(dtype)
    seen = []
    fast = AdaptivePPCA(5, 2, random_state=0, tol=1e-6, callback=seen.append).fit(X)
    assert any(p.stage == "refinement on 4,000 rows" for p in seen)
    monkeypatch.setattr(em, "LEAST_COMPILED", 10**12)
    plain = AdaptivePPCA(
        5, 2, init=fast.components_, accelerate=False, max_iter=2000, tol=1e-7
    ).fit(X)
    assert fast.score(X) >= plain.score(X) - (1e-6 if dtype == np.float64 else 1e-4) * abs(
        plain.score(X)
    )
    assert np.all(np.diff(fast.log_likelihoods_) >= -1e-6 * abs(fast.log_likelihoods_[-1]))
