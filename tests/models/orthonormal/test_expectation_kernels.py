"""The compiled E step, part by part against NumPy, and whole against the plain one."""

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.models import em, stiefel
from appca.models.em import EMSettings, SubspaceState, expect, floor_of
from appca.models.rows import about, centre_of


@pytest.mark.parametrize(("n", "d", "k"), [(1, 3, 4), (7, 33, 8), (64, 256, 4), (129, 300, 12)])
def test_products_equal_those_of_numpy(n, d, k, seed):
    from appca.models.product_kernels import add_outer, project

    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((n, d)), rng.standard_normal((k, d))
    P = np.zeros((k, n + 8))
    project(X, W, P)
    np.testing.assert_allclose(P[:, :n], W @ X.T, atol=1e-12 * d)
    assert not P[:, n:].any()
    A = np.ones((k, d))
    add_outer(X, P, A)
    np.testing.assert_allclose(A, 1.0 + P[:, :n] @ X, atol=1e-11 * n * d)


def problem(rng, n, d, k, dtype, noise):
    """Return rows with an origin far from 0, and a state with a spread of variances."""
    X = (rng.standard_normal((n, d)) * rng.uniform(0.5, 3.0, d) + 5.0).astype(dtype)
    W = np.linalg.qr(rng.standard_normal((d, k)))[0]
    return X, SubspaceState(W, 0.3 * rng.standard_normal(k), rng.uniform(0.5, 2.0, k), noise)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(
    ("d", "k", "n_active"),
    [(30, 5, 2), (260, 10, 3), (300, 12, 11), (280, 4, 2), (300, 13, 6), (30, 20, 10)],
)
def test_the_sweep_equals_the_plain_e_step(d, k, n_active, hard, seed):
    """Rows of all lengths of the last lanes, by own products and by those of a BLAS."""
    rng = np.random.default_rng(seed)
    X, state = problem(rng, 130 + 7 * k, d, k, np.float64, 0.7)
    rows = about(X, centre_of(X))
    plain = EMSettings(k, n_active, "shared", True, hard, stiefel.polar, floor_of(rows))
    sums = [expect(state, rows, plain._replace(compiled=c)) for c in (False, True)]
    for a, b in zip(*sums, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("noise", [3.0, 0.3, 1e-4])
@pytest.mark.parametrize(("d", "k", "n_active"), [(260, 10, 3), (40, 20, 10), (256, 12, 6)])
def test_in_float32_it_keeps_four_digits_and_more(d, k, n_active, noise, seed):
    """From rows of which all subsets are alike to rows with one subset, logits of thousands."""
    rng = np.random.default_rng(seed)
    X, state = problem(rng, 500, d, k, np.float32, noise)
    rows, exact = (about(Y, centre_of(Y)) for Y in (X, X.astype(np.float64)))
    plain = EMSettings(k, n_active, "shared", True, False, stiefel.polar, floor_of(rows))
    wanted = expect(state, exact._replace(origin=rows.origin), plain)
    found = expect(state, rows, plain._replace(compiled=True))
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-5)
    for a, b in zip(found[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


def test_the_order_of_rows_in_memory_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, state = problem(rng, 333, 260, 6, np.float64, 0.7)
    some = [X, np.asfortranarray(X), np.hstack([X, X])[:, :260]]
    settings = EMSettings(6, 2, "shared", True, False, stiefel.polar, 1e-9, compiled=True)
    sums = [expect(state, about(Y, centre_of(X)), settings) for Y in some]
    for other in sums[1:]:
        for a, b in zip(sums[0], other, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12)


def test_what_is_compiled_ahead_is_what_fits_call(monkeypatch):
    """After it no fit compiles: numba has a signature for each way already."""
    from appca.models import em_kernels, set_kernels
    from appca.models.product_kernels import add_outer, project

    em.compile_ahead()
    own = em_kernels.weigh_components, em_kernels.share
    points = set_kernels.tilted, set_kernels.inclusion
    kernels = project, add_outer, *own, *points
    known = [len(kernel.signatures) for kernel in kernels]
    monkeypatch.setattr(em, "LEAST_COMPILED", 0)
    X = np.random.default_rng(0).standard_normal((90, 300))
    for dtype in (np.float32, np.float64):
        for k, n_active in [(5, 2), (32, 16)]:
            for columns in (40, 300):
                some = X[:, :columns].astype(dtype)
                AdaptivePPCA(k, n_active, max_iter=2, random_state=0).fit(some)
    assert [len(kernel.signatures) for kernel in kernels] == known
