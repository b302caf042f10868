"""Principal and independent components, from which fits start."""

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from scipy.linalg import sqrtm

from appca.models import independent_components, stiefel
from appca.models.rows import about, centre_of, project
from appca.models.stiefel import lift, lower, principal, sketched, thin
from tests.models.synthetic import drawn, matched_cosines


def rows_of(Y):
    return about(Y, centre_of(Y))


def decaying(shape, seed):
    rng = np.random.default_rng(seed)
    n, d = shape
    return rng.standard_normal((n, d)) * 0.8 ** np.arange(d) + 5.0


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "subspace iteration"])
@pytest.mark.parametrize("shape", [(200, 12), (30, 30), (25, 80)], ids=["long", "square", "wide"])
def test_principal_directions_equal_those_of_a_singular_value_decomposition(
    shape, dense, seed, monkeypatch
):
    if not dense:
        monkeypatch.setattr(stiefel, "DENSE_LIMIT", 1)
    X = decaying(shape, seed)
    found = principal(np.random.default_rng(seed), about(X, centre_of(X)), 5)
    _, s, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    close(found.values, s[:5] ** 2 / len(X), rtol=1e-8)
    close(np.abs(np.sum(found.V * Vt[:5].T, axis=0)), 1.0, atol=1e-8)
    close(found.V.T @ found.V, np.eye(5), atol=1e-10)


@pytest.mark.parametrize("centred", [True, False])
def test_thin_coordinates_keep_all_inner_products_and_lead_back(centred, seed):
    X = decaying((25, 80), seed)
    rows = about(X, centre_of(X) if centred else None)
    space = thin(rows)
    B = X - X.mean(axis=0) if centred else X
    assert space.rows.X.shape[1] == 25 - centred
    assert space.rows.n_features == 80
    close(space.rows.X @ space.rows.X.T, B @ B.T, atol=1e-9)
    W_thin = np.linalg.qr(np.random.default_rng(seed).standard_normal((25 - centred, 3)))[0]
    W = lift(W_thin, space, rows)
    close(W.T @ W, np.eye(3), atol=1e-10)
    close(project(rows, W), project(space.rows, W_thin), atol=1e-6)
    close(lower(W, space, rows), W_thin, atol=1e-6)


def test_sketched_directions_hold_what_principal_ones_hold(seed):
    rng = np.random.default_rng(seed)
    spread = 1.0 / np.arange(1, 201)
    X = rng.standard_normal((500, 200)) * spread @ np.linalg.qr(rng.standard_normal((200, 200)))[0]
    rows = about(X, centre_of(X))
    V, best = sketched(rng, rows, 10), principal(rng, rows, 10).V
    close(V.T @ V, np.eye(10), atol=1e-12)
    held = [np.square(project(rows, U)).sum() for U in (V, best)]
    assert 0.999 * held[1] < held[0] < held[1]
    close(np.abs(np.sum(V[:, :3] * best[:, :3], axis=0)), 1.0, atol=1e-3)


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
    close(one.W, other.W, atol=1e-6)
    assert one.noise == pytest.approx(other.noise, rel=1e-9)
    repeated = rows_of(Y[again])
    taken = [independent_components.from_loadings(X, one.W).noise for X in (weighted, repeated)]
    assert taken[0] == pytest.approx(taken[1])


def test_rows_of_the_data_are_drawn_as_loadings_by_their_weight(seed):
    Y = np.eye(6) - np.eye(6).mean(axis=0)
    w = np.array([1e6, 1e6, 1e-6, 1e-6, 1e-6, 1e-6])
    rows = about(Y, None, w)
    W = independent_components.dictionary(np.random.default_rng(seed), rows, 2, 1).W
    close(np.sort(np.abs(unit(W).T).argmax(axis=1)), [0, 1])


def test_fast_ica_undoes_a_rotation_of_sparse_scores_and_finds_nothing_in_gaussian_ones(seed):
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((5000, 6)) * (rng.random((5000, 6)) < 0.4)
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    R = independent_components.fast_ica(rng, S / S.std(axis=0) @ rotation.T)
    close(R.T @ R, np.eye(6), atol=1e-10)
    assert least_cosine(R, rotation) > 0.99
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
    close(independent_components.fast_ica(np.random.default_rng(1), P, 3), R, atol=tol)


def test_independent_components_start_at_the_true_loadings_and_principal_ones_do_not(seed):
    Y, W, *_ = drawn(seed, 1000, 50, 10, 5, noise=0.1)
    rng = np.random.default_rng(seed)
    found = independent_components.ica(rng, rows_of(Y), 10, 5)
    assert least_cosine(found.W, W) > 0.97
    assert least_cosine(independent_components.pca(rng, rows_of(Y), 10, 5).W, W) < 0.9
    assert found.noise == pytest.approx(0.01, rel=0.05)
    lengths = np.sort(np.linalg.norm(found.W, axis=0)), np.sort(np.linalg.norm(W, axis=0))
    close(*lengths, rtol=0.12)


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


def test_more_factors_than_dimensions_start_from_rows_and_want_annealing(seed):
    Y = drawn(seed, 100, 4, 6, 1)[0]
    rows = rows_of(Y)
    found = independent_components.ica(np.random.default_rng(seed), rows, 6, 1)
    assert found.annealing == 30
    directions = unit((Y - rows.origin).T)
    assert np.abs(unit(found.W).T @ directions).max(axis=1) == pytest.approx(np.ones(6))
    assert len(np.unique(np.abs(unit(found.W).T @ directions).argmax(axis=1))) == 6
