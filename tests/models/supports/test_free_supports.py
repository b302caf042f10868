"""Sets of any size, W given: exact sums and estimates against dense densities over all 2^K sets."""

import itertools

import numpy as np
import pytest

from appca.models import free_supports
from appca.models.free_supports import Question
from tests.references import low_rank

SIGMA2, TAU2 = 0.3, 1.4


def world(seed, n_components, n_rows=6, n_features=4, noise=SIGMA2):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_features, n_components))
    weights = rng.uniform(0.1, 0.8, n_components)
    Z = rng.random((n_rows, n_components)) < weights
    X = rng.normal(size=Z.shape) * np.sqrt(TAU2) * Z
    Y = X @ W.T + np.sqrt(noise) * rng.normal(size=(n_rows, n_features))
    return W, Y, Question(Y @ W / noise, W.T @ W / noise, TAU2, weights)


def joint(W, Y, q, noise=SIGMA2):
    """log p(y, z) of every row and set, (n, 2^K), and the sets, (2^K, K)."""
    sets = np.array(list(itertools.product((False, True), repeat=W.shape[1])))
    prior = np.where(sets, np.log(q.weights), np.log1p(-q.weights)).sum(axis=1)
    rows = [low_rank.log_density(Y, W[:, z], 0.0, noise, TAU2) for z in sets]
    return np.array(rows).T + prior, sets


@pytest.mark.parametrize("n_components", [1, 5, 14])  # more columns than features, beyond 12 too
def test_sums_over_all_sets_are_exact(n_components, seed):
    W, Y, q = world(seed, n_components, n_rows=3 if n_components > 12 else 70)
    log_joint, sets = joint(W, Y, q)
    background = low_rank.log_density(Y, W[:, sets[0]], 0.0, SIGMA2, TAU2)
    found, chosen = q._replace(n_paths=4).summed(), q.best()
    log_p = np.logaddexp.reduce(log_joint, axis=1)
    np.testing.assert_allclose(found.log_sum + background, log_p, rtol=0, atol=1e-9)
    posterior = np.exp(log_joint - log_p[:, None])
    np.testing.assert_allclose(found.inclusion, posterior @ sets, rtol=0, atol=1e-9)
    assert (found.error == 0).all()
    assert found.method == f"exact, by enumeration of {2**n_components} sets"
    np.testing.assert_array_equal(chosen.Z, sets[log_joint.argmax(axis=1)])
    np.testing.assert_allclose(chosen.value + background, log_joint.max(axis=1), rtol=0, atol=1e-9)
    H = np.zeros(q.c.shape)
    for z, p in zip(sets, posterior.T, strict=True):
        H[:, z] += p[:, None] * low_rank.scores(Y, W[:, z], 0.0, SIGMA2, TAU2)[0]
    np.testing.assert_allclose(q.expected(), H, rtol=0, atol=1e-9)


def test_sums_hold_where_weights_are_thousands_of_nats_apart(seed):
    W, Y, q = world(seed, 6, n_rows=40, n_features=9, noise=1e-4)
    log_joint, sets = joint(W, Y, q, 1e-4)
    assert np.ptp(log_joint) > 2000
    background = low_rank.log_density(Y, W[:, sets[0]], 0.0, 1e-4, TAU2)
    log_p = np.logaddexp.reduce(log_joint, axis=1) - background
    np.testing.assert_allclose(q._replace(n_paths=4).summed().log_sum, log_p, rtol=1e-9)


def test_sets_are_drawn_from_their_posterior(seed):
    W, Y, q = world(seed, n_components=4, n_rows=3)
    log_joint, sets = joint(W, Y, q)
    wanted = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1)[:, None])
    n = 20_000
    many = q._replace(c=np.repeat(q.c, n, axis=0))
    uniforms = np.random.default_rng(seed).random(len(many.c))
    drawn = many.every_set(uniforms).drawn.reshape(3, n, 4)
    counts = (drawn[:, :, None] == sets).all(axis=3).sum(axis=1)
    expected = n * wanted
    statistic = (np.square(counts - expected) / expected).sum(axis=1)
    assert (statistic < 60).all()  # 15 degrees of freedom; even draws give thousands
    assert (np.square(counts - n / 16) / (n / 16)).sum(axis=1).min() > 1000


def test_scores_are_posterior_means_given_the_set(seed):
    W, Y, q = world(seed, n_components=5)
    Z = np.random.default_rng(seed).random((len(Y), 5)) < 0.5
    H = q.means(Z)
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
        patch.setattr(free_supports, "MOST_COLUMNS", 16)
        return q._replace(n_paths=4).summed(), q.best()


@pytest.mark.usefixtures("few_columns")
def test_estimates_agree_with_enumeration_within_their_errors(seed):
    _, _, q = world(seed, n_components=10, n_rows=40, n_features=8)
    wanted, best = exactly(q)
    found, chosen = q._replace(n_paths=64).summed(), q.best()
    assert found.method == "annealed importance sampling, 64 paths a row"
    z = (found.log_sum - wanted.log_sum) / found.error
    assert np.abs(z).max() < 6
    assert found.error.mean() < 0.1
    assert np.abs(found.inclusion - wanted.inclusion).mean() < 0.03
    assert (chosen.value > best.value - 1e-9).mean() > 0.9
    assert (chosen.value < best.value + 1e-9).all()


@pytest.mark.default_cases(3)
@pytest.mark.usefixtures("few_columns")
@pytest.mark.parametrize("n_paths", [2, 4, 16])
@pytest.mark.parametrize(("n_features", "noise"), [(8, 0.3), (8, 0.01), (20, 0.01)])
def test_stated_errors_are_calibrated_over_many_rows(n_features, noise, n_paths, seed):
    _, _, q = world(seed, 14, n_rows=400, n_features=n_features, noise=noise)
    found, wanted = q._replace(n_paths=n_paths).summed(), exactly(q)[0]
    z = (found.log_sum - wanted.log_sum) / found.error
    assert 0.3 < np.sqrt(np.mean(z**2)) < 1.5
    assert np.mean(np.abs(z) > 3) < 0.05


@pytest.mark.usefixtures("few_columns")
def test_estimates_of_two_streams_have_independent_errors(seed):
    _, _, q = world(seed, 10, n_rows=300, n_features=8)
    wanted = exactly(q)[0].log_sum
    first, second = (
        q._replace(n_paths=8, stream=stream).summed().log_sum - wanted for stream in (0, 1)
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.3


@pytest.mark.usefixtures("few_columns")
def test_what_is_said_about_a_row_does_not_depend_on_its_company():
    _, _, q = world(0, n_components=6)
    whole, part = q._replace(n_paths=8).summed(), q._replace(c=q.c[2:4], n_paths=8).summed()
    np.testing.assert_array_equal(part.log_sum, whole.log_sum[2:4])
    np.testing.assert_array_equal(q._replace(c=q.c[2:4]).best().Z, q.best().Z[2:4])
