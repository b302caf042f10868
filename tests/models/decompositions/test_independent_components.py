"""Starts of adaptive factor analysis."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from appca.models import independent_components
from appca.models.rows import about, centre_of
from tests.models.synthetic import drawn, matched_cosines


def rows_of(Y):
    return about(Y, centre_of(Y))


def unit(W):
    return W / np.linalg.norm(W, axis=0)


def least_cosine(W, truth):
    return matched_cosines(unit(W).T, unit(truth)).min()


@pytest.mark.parametrize("name", ["ica", "pca", "random"])
def test_a_start_from_weighted_rows_is_that_from_repeated_ones(name, seed):
    Y, *_ = drawn(seed, 200, 8, 4, 2)
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 4, 200)
    again = rng.permutation(np.repeat(np.arange(200), w))
    weighted = about(Y, centre_of(Y, w), w.astype(float))
    begin = independent_components.NAMED[name]
    one = begin(np.random.default_rng(0), weighted, 4, 2)
    other = begin(np.random.default_rng(0), rows_of(Y[again]), 4, 2)
    np.testing.assert_allclose(one.W, other.W, atol=1e-6)
    assert one.noise == pytest.approx(other.noise, rel=1e-9)
    taken = independent_components.from_loadings(weighted, one.W).noise
    assert taken == pytest.approx(
        independent_components.from_loadings(rows_of(Y[again]), one.W).noise
    )


def test_rows_of_the_data_are_drawn_as_loadings_by_their_weight(seed):
    Y = np.eye(6) - np.eye(6).mean(axis=0)
    w = np.array([1e6, 1e6, 1e-6, 1e-6, 1e-6, 1e-6])
    rows = about(Y, None, w)
    W = independent_components.dictionary(np.random.default_rng(seed), rows, 2, 1).W
    np.testing.assert_allclose(np.sort(np.abs(unit(W).T).argmax(axis=1)), [0, 1])


def test_fast_ica_undoes_a_rotation_of_sparse_scores(seed):
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((5000, 6)) * (rng.random((5000, 6)) < 0.4)
    S /= S.std(axis=0)
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    R = independent_components.fast_ica(rng, S @ rotation.T)
    np.testing.assert_allclose(R.T @ R, np.eye(6), atol=1e-10)
    assert least_cosine(R, rotation) > 0.99


def test_fast_ica_finds_nothing_in_gaussian_scores(seed):
    """The criterion the recovery test relies on is not met by a rotation that means nothing."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    R = independent_components.fast_ica(rng, rng.standard_normal((5000, 6)) @ rotation.T)
    assert least_cosine(R, rotation) < 0.95


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fast_ica_takes_the_steps_of_its_equation_on_scores_made_white(dtype, seed):
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((20_000, 5)) * (rng.random((20_000, 5)) < 0.3)
    P = (S @ rng.standard_normal((5, 5)) * [1, 2, 3, 4, 50]).astype(dtype)
    white = P @ np.linalg.inv(sqrtm(P.T.astype(np.float64) @ P / len(P)))
    R = independent_components.fast_ica(np.random.default_rng(1), P, 0)
    for _ in range(3):
        U = white @ R
        U, _, Vt = np.linalg.svd(
            white.T @ np.tanh(U) / len(P) - R * np.mean(1 / np.cosh(U) ** 2, 0)
        )
        R = U @ Vt
    tol = 1e-9 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(
        independent_components.fast_ica(np.random.default_rng(1), P, 3), R, atol=tol
    )


def test_independent_components_start_at_the_true_loadings_and_principal_ones_do_not(seed):
    Y, W, *_ = drawn(seed, 1000, 50, 10, 5, noise=0.1)
    rng = np.random.default_rng(seed)
    found = independent_components.ica(rng, rows_of(Y), 10, 5)
    assert least_cosine(found.W, W) > 0.97
    assert least_cosine(independent_components.pca(rng, rows_of(Y), 10, 5).W, W) < 0.9
    assert found.noise == pytest.approx(0.01, rel=0.05)
    lengths = np.sort(np.linalg.norm(found.W, axis=0)), np.sort(np.linalg.norm(W, axis=0))
    np.testing.assert_allclose(*lengths, rtol=0.12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_starts_explain_the_variance_there_is(dtype, seed):
    Y = drawn(seed, 300, 8, 6, 2, noise=0.5)[0].astype(dtype)
    rows = rows_of(Y)
    rng = np.random.default_rng(seed)
    total = rows.squares.sum() / 300
    for name, start in independent_components.NAMED.items():
        for K in (3, 6, 8, 11):
            found = start(rng, rows, K, 2)
            assert found.W.shape == (8, K), name
            assert np.all(np.isfinite(found.W))
            assert found.noise > 0
            if name != "pca" or K <= 8:
                explained = np.square(found.W).sum() * 2 / K + 8 * found.noise
                assert 0.5 * total < explained < 2.0 * total, (name, K)


def test_all_factors_active_start_from_principal_components(seed):
    Y = drawn(seed, 200, 8, 3, 3, noise=0.5)[0]
    rng = np.random.default_rng(seed)
    np.testing.assert_allclose(
        independent_components.ica(rng, rows_of(Y), 3, 3).W,
        independent_components.pca(rng, rows_of(Y), 3, 3).W,
        atol=1e-12,
    )


def test_more_factors_than_dimensions_start_from_rows_and_want_annealing(seed):
    Y = drawn(seed, 100, 4, 6, 1)[0]
    rows = rows_of(Y)
    found = independent_components.ica(np.random.default_rng(seed), rows, 6, 1)
    assert found.annealing == 30
    directions = unit((Y - rows.origin).T)
    assert np.abs(unit(found.W).T @ directions).max(axis=1) == pytest.approx(np.ones(6))
    assert len(np.unique(np.abs(unit(found.W).T @ directions).argmax(axis=1))) == 6


def test_rows_that_repeat_still_give_every_factor_a_loading():
    Y = np.repeat(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), [1, 1, 8], axis=0)
    found = independent_components.dictionary(np.random.default_rng(0), about(Y, None), 5, 1)
    assert np.all(np.linalg.norm(found.W, axis=0) > 0)


def test_given_loadings_are_taken_with_their_lengths(seed):
    Y, W, _, mu = drawn(seed, 200, 8, 3, 2, noise=2.0)
    found = independent_components.from_loadings(about(Y, mu), W)
    np.testing.assert_array_equal(found.W, W)
    assert found.noise == pytest.approx(4.0, rel=0.15)
