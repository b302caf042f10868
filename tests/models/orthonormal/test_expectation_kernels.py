"""The compiled E step, part by part against NumPy, and whole against the plain one."""

from typing import ClassVar

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.models import em, stiefel
from appca.models.data_checks import without_subnormal
from appca.models.em import EMSettings, SubspaceState, Variant, evenly, expect, floor_of
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


class Watched(np.ndarray):
    """Rows that count the subnormal numbers they are multiplied with."""

    found: ClassVar[list[int]] = []

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **how):
        plain = [x.view(np.ndarray) if isinstance(x, Watched) else x for x in inputs]
        if ufunc is np.matmul:
            count_subnormal(*plain)
        if out is not None:
            how["out"] = tuple(x.view(np.ndarray) if isinstance(x, Watched) else x for x in out)
        result = getattr(ufunc, method)(*plain, **how)
        return result.view(Watched) if isinstance(result, np.ndarray) else result


def count_subnormal(*operands):
    tiny = np.finfo(np.float32).tiny
    Watched.found.append(sum(int(((x != 0) & (np.abs(x) < tiny)).sum()) for x in operands))


def decided_rows(seed, d):
    """Rows whose components are decided by some hundred nats: many means are about 1e-40."""
    rng = np.random.default_rng(seed)
    X = 0.3 * rng.standard_normal((2000, d))
    X[:, :6] += 4.0 * rng.standard_normal((2000, 6))
    W = np.eye(d, 6)
    W[7] = 1e-40  # as where a feature hardly varies
    return X.astype(np.float32), SubspaceState(W, np.zeros(6), np.full(6, 16.0), 0.09)


@pytest.mark.parametrize("row_scale", [False, True], ids=["", "row scales"])
@pytest.mark.parametrize("compiled", [False, True], ids=["NumPy", "compiled"])
@pytest.mark.parametrize("d", [40, 260], ids=["BLAS", "own products"])
def test_no_product_is_taken_with_subnormal_numbers(d, compiled, row_scale, seed, monkeypatch):
    from appca.models import product_kernels

    X, state = decided_rows(seed, d)
    monkeypatch.setattr(Watched, "found", [])
    for name in ("project", "add_outer"):
        kernel = getattr(product_kernels, name)

        def watched(A, B, C, kernel=kernel):
            count_subnormal(A, B)
            kernel(A, B, C)

        monkeypatch.setattr(product_kernels, name, watched)
    rows = about(X, centre_of(X))
    rows = rows._replace(X=X.view(Watched))
    settings = EMSettings(6, 2, "shared", True, False, stiefel.polar, 1e-9, compiled=compiled)
    if row_scale:
        settings = settings._replace(variant=Variant(row_scales=True))
    expect(evenly(state, settings), rows, settings)
    assert Watched.found
    assert not any(Watched.found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_subnormal_entries_count_as_zero_beside_far_larger_ones(dtype, seed):
    X = np.random.default_rng(seed).standard_normal((50, 6)).astype(dtype)
    small = X.copy()
    small[::3, 2], X[::3, 2] = np.finfo(dtype).tiny / 8, 0.0
    given = small.copy()
    fits = [AdaptivePPCA(3, 1, random_state=0).fit(Y) for Y in (X, small)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    np.testing.assert_array_equal(small, given)
    with_gaps = small.copy()
    with_gaps[1, 1] = np.nan
    assert without_subnormal(with_gaps)[0, 2] == 0.0
    tiny_unit = X * dtype(1e-12 if dtype is np.float32 else 1e-290)
    assert without_subnormal(tiny_unit) is tiny_unit  # and is refused for its size, or fitted
