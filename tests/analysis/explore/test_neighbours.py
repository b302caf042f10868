import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appca.analysis import umap as neighbours_module
from appca.analysis.umap import nearest_rows


def brute(X: np.ndarray, k: int) -> np.ndarray:
    """Sorted distances (N, k) from all differences, in float64."""
    X = X.astype(np.float64)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.sqrt(np.sort(squares, axis=1)[:, :k])


def check(X: np.ndarray, k: int) -> None:
    found, expected = nearest_rows(X, k), brute(X, k)
    n = len(X)
    scale = np.abs(X - X.mean(axis=0)).max() + 1e-12
    np.testing.assert_allclose(found.distances, expected, atol=1e-5 * scale * X.shape[1] ** 0.5)
    np.testing.assert_array_equal(found.indices[:, 0], np.arange(n))
    assert (found.distances[:, 0] == 0).all()
    assert (np.diff(found.distances, axis=1) >= 0).all()
    assert ((found.indices >= 0) & (found.indices < n)).all()
    assert all(len(set(row)) == k for row in found.indices.tolist()), "no row twice"
    true = np.linalg.norm(
        X.astype(np.float64)[:, None] - X.astype(np.float64)[found.indices], axis=2
    )
    np.testing.assert_allclose(true, expected, atol=1e-5 * scale * X.shape[1] ** 0.5)


@pytest.mark.parametrize(
    "shape", [(2, 2), (40, 3), (300, 150), (120, 2000), (700, 20)], ids=lambda s: f"{s[0]}x{s[1]}"
)
def test_neighbours_are_the_nearest_rows_of_all(seed, shape):
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.1, 10, shape[1])
    check(rng.standard_normal(shape) * spread + 100, min(15, shape[0]))


def test_blocks_do_not_show(seed, monkeypatch):
    X = np.random.default_rng(seed).standard_normal((500, 30)).astype(np.float32)
    whole = nearest_rows(X, 10)
    monkeypatch.setattr(neighbours_module, "_QUERIES", 7)
    pieces = nearest_rows(X, 10)
    np.testing.assert_array_equal(pieces.indices, whole.indices)
    np.testing.assert_allclose(pieces.distances, whole.distances, atol=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(2, 5), st.integers(2, 10))
def test_equal_rows_keep_themselves_first(draw, n, d, k):
    check(np.random.default_rng(draw).integers(0, 2, (n, d)).astype(np.float32), min(k, n))


@pytest.mark.parametrize("n_columns", [2, 4])
def test_rows_that_are_all_the_same_have_neighbours_too(n_columns):
    check(np.full((30, n_columns), 7.0), 5)


def test_progress_is_told_between_blocks_and_an_exception_ends_the_search(monkeypatch):
    monkeypatch.setattr(neighbours_module, "_QUERIES", 100)
    told = []

    def report(stage: str, share: float) -> None:
        told.append((stage, share))
        if share >= 0.5:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        nearest_rows(np.random.default_rng(0).standard_normal((400, 5)), 3, report)
    assert told == [("finding neighbours", share) for share in (0.0, 0.25, 0.5)]
