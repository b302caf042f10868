"""Sets of any size, W given: exact sums and estimates against dense densities over all 2^K sets."""

import itertools

import numpy as np
import pytest

from appca.models.supports import free_supports
from appca.models.supports.free_supports import Question
from tests.references import low_rank

SIGMA2, TAU2 = 0.3, 1.4


def world(seed, n_components, n_rows=6, n_features=4):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_features, n_components))
    weights = rng.uniform(0.1, 0.8, n_components)
    Z = rng.random((n_rows, n_components)) < weights
    X = rng.normal(size=Z.shape) * np.sqrt(TAU2) * Z
    Y = X @ W.T + np.sqrt(SIGMA2) * rng.normal(size=(n_rows, n_features))
    return W, Y, Question(Y @ W / SIGMA2, W.T @ W / SIGMA2, TAU2, weights)


def joint(W, Y, q):
    """log p(y, z) of every row and set, (n, 2^K), and the sets, (2^K, K)."""
    sets = np.array(list(itertools.product((False, True), repeat=W.shape[1])))
    prior = np.where(sets, np.log(q.weights), np.log1p(-q.weights)).sum(axis=1)
    rows = [low_rank.log_density(Y, W[:, z], 0.0, SIGMA2, TAU2) for z in sets]
    return np.array(rows).T + prior, sets


def test_sums_over_all_sets_are_exact(seed):
    W, Y, q = world(seed, n_components=5)  # more columns than features
    log_joint, sets = joint(W, Y, q)
    background = low_rank.log_density(Y, W[:, sets[0]], 0.0, SIGMA2, TAU2)
    found, chosen = free_supports.summed(q, n_paths=4), free_supports.best(q)
    log_p = np.logaddexp.reduce(log_joint, axis=1)
    np.testing.assert_allclose(found.log_sum + background, log_p, rtol=0, atol=1e-9)
    posterior = np.exp(log_joint - log_p[:, None])
    np.testing.assert_allclose(found.inclusion, posterior @ sets, rtol=0, atol=1e-9)
    assert (found.error == 0).all()
    assert found.method == "exact, by enumeration of 32 sets"
    np.testing.assert_array_equal(chosen.Z, sets[log_joint.argmax(axis=1)])
    np.testing.assert_allclose(chosen.value + background, log_joint.max(axis=1), rtol=0, atol=1e-9)


def test_scores_are_posterior_means_given_the_set(seed):
    W, Y, q = world(seed, n_components=5)
    Z = np.random.default_rng(seed).random((len(Y), 5)) < 0.5
    H = free_supports.scores(q, Z)
    for y, z, h in zip(Y, Z, H, strict=True):
        active = W[:, z]
        mean = np.linalg.solve(
            np.eye(z.sum()) / TAU2 + active.T @ active / SIGMA2, active.T @ y / SIGMA2
        )
        np.testing.assert_allclose(h[z], mean, rtol=0, atol=1e-9)
        assert (h[~z] == 0).all()


@pytest.fixture
def few_columns(monkeypatch):
    """Estimate where enumeration would still be possible, so that both can be compared."""
    monkeypatch.setattr(free_supports, "MOST_COLUMNS", 3)


def exactly(q):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(free_supports, "MOST_COLUMNS", 12)
        return free_supports.summed(q, 4), free_supports.best(q)


@pytest.mark.usefixtures("few_columns")
def test_estimates_agree_with_enumeration_within_their_errors(seed):
    _, _, q = world(seed, n_components=10, n_rows=40, n_features=8)
    wanted, best = exactly(q)
    found, chosen = free_supports.summed(q, n_paths=64), free_supports.best(q)
    assert found.method == "annealed importance sampling, 64 paths a row"
    z = (found.log_sum - wanted.log_sum) / found.error
    assert np.abs(z).max() < 6
    assert found.error.mean() < 0.1
    assert np.abs(found.inclusion - wanted.inclusion).mean() < 0.03
    assert (chosen.value > best.value - 1e-9).mean() > 0.9
    assert (chosen.value < best.value + 1e-9).all()


@pytest.mark.usefixtures("few_columns")
def test_what_is_said_about_a_row_does_not_depend_on_its_company():
    _, _, q = world(0, n_components=6)
    whole, part = free_supports.summed(q, 8), free_supports.summed(q._replace(c=q.c[2:4]), 8)
    np.testing.assert_array_equal(part.log_sum, whole.log_sum[2:4])
    np.testing.assert_array_equal(
        free_supports.best(q._replace(c=q.c[2:4])).Z, free_supports.best(q).Z[2:4]
    )
