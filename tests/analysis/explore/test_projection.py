"""Projections as colours, principal components, and shares of variance."""

import numpy as np
import pytest

from appca.analysis.subspaces import explained_share, principal_scores, rgb, variance_shares
from tests.fitted_runs import fitted_run


def test_each_channel_ranks_the_score_of_the_rows_own_component():
    scores = np.array([[3.0, 0, 10.0], [0, 1.0, 20.0], [2.0, 30.0, 0]])
    colours = rgb(scores, scores != 0)
    red = [3.0, 1.0, 2.0]  # the first active component of each row
    green = [10.0, 20.0, 30.0]  # the second one
    assert np.argsort(colours[:, 0]).tolist() == np.argsort(red).tolist()
    assert np.argsort(colours[:, 1]).tolist() == np.argsort(green).tolist()
    low, middle, high = (round(255 * share) for share in (0.01, 0.5, 0.99))
    assert sorted(colours[:, 0]) == [low, middle, high]


def test_a_channel_without_a_component_is_half():
    scores = np.array([[3.0, 1.0], [5.0, 2.0]])
    assert (rgb(scores, scores != 0)[:, 2] == 128).all()
    assert (rgb(scores[:, :1], scores[:, :1] != 0)[:, 1:] == 128).all()


def test_equal_scores_get_equal_colours():
    scores = np.array([[1.0], [1.0], [2.0], [2.0], [2.0]])
    red = rgb(scores, np.ones((5, 1), bool))[:, 0]
    assert red[0] == red[1] < red[2] == red[3] == red[4]


@pytest.mark.parametrize("shape", [(60, 8), (8, 60)])
def test_principal_scores_agree_with_a_singular_value_decomposition(shape, seed):
    X = np.random.default_rng(seed).normal(size=shape) * np.linspace(3, 0.1, shape[1])
    U, singular, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    scores, shares = principal_scores(X, 3)
    np.testing.assert_allclose(np.abs(scores), np.abs(U * singular)[:, :3], atol=1e-5 * singular[0])
    np.testing.assert_allclose(shares, (singular**2 / (singular**2).sum())[:3], atol=1e-10)


def test_principal_scores_have_a_fixed_sign(seed):
    X = np.random.default_rng(seed).normal(size=(50, 5))
    scores, _ = principal_scores(X)
    np.testing.assert_allclose(
        principal_scores(-X)[0], scores * np.sign(scores[0] * principal_scores(-X)[0][0]), atol=1e-5
    )
    extreme = np.abs(scores).argmax(axis=0)
    assert (scores[extreme, range(3)] > 0).all()


def test_fewer_columns_than_colours_still_give_a_colour():
    scores, _ = principal_scores(np.arange(10.0).reshape(5, 2) ** 2)
    assert scores.shape == (5, 2)
    assert (rgb(scores, np.ones(scores.shape, bool))[:, 2] == 128).all()


@pytest.mark.parametrize("orthonormal", [True, False])
def test_shares_are_what_each_component_takes_off_the_squared_error(seed, orthonormal):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(6, 3))
    if orthonormal:
        W, _ = np.linalg.qr(W)
    Y = rng.normal(size=(40, 6)) * np.linspace(3, 1, 6)
    mean, noise, latent = Y.mean(axis=0), 0.5, np.full(3, 2.0)
    scores = np.zeros((40, 3))
    for row, used in enumerate(rng.random((40, 3)) < 0.6):  # posterior means given the row's set
        precision = W[:, used].T @ W[:, used] / noise + np.diag(1 / latent[used])
        scores[row, used] = np.linalg.solve(precision, W[:, used].T @ (Y - mean)[row] / noise)

    def squared_error(kept):
        return np.square(Y - mean - (scores * kept) @ W.T).sum()

    fitted = fitted_run(
        scores != 0,
        components=W.T,
        scores=scores,
        error=np.square(Y - mean - scores @ W.T).mean(axis=1),
        mean=mean,
        noise_variance=noise,
        latent_variance=latent,
    )
    total, left = squared_error([0, 0, 0]), squared_error([1, 1, 1])
    expected = [(squared_error(k != np.arange(3)) - left) / total for k in range(3)]
    np.testing.assert_allclose(variance_shares(fitted), expected, atol=1e-10)
    assert explained_share(fitted) == pytest.approx(1 - left / total, abs=1e-10)
    adds_up = abs(explained_share(fitted) - variance_shares(fitted).sum()) < 1e-9
    assert adds_up == orthonormal
