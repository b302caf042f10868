"""Tests of exact and estimated sums over supports, and of the search, against enumeration."""

import itertools
import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy import stats
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from appca import AdaptiveFactorAnalysis, FiniteSparseFA, InfiniteSparseFA, NonparametricPPCA
from appca.models import polynomials, set_tree, slot_kernels, supports, threads
from appca.models.set_tree import CollapsedModel
from appca.models.supports import AnnealedPaths, AnnealingSchedule, RowSupports, SupportsOfRows
from tests import oracles
from tests.geweke import broken
from tests.models.gibbs_oracles import pooled_p_value
from tests.models.synthetic import drawn
from tests.references import em_adaptive_fa, gibbs_adaptive_fa, low_rank


def seen_by(Y, W, mu, sigma2):
    return (Y - mu) @ W / sigma2, CollapsedModel(W.T @ W / sigma2, 1.0)


def fixed(Y, c, model, L, n_paths=16):
    """Rows to ask about their supports of L factors."""
    return SupportsOfRows(c, model, L, supports.row_seeds(Y), n_paths)


def base(Y, mu, sigma2):
    """log N(y; mu, sigma2 I), what f(S) leaves out."""
    return -0.5 * (Y.shape[1] * np.log(2 * np.pi * sigma2) + np.square(Y - mu).sum(axis=1) / sigma2)


@pytest.mark.parametrize(
    ("K", "L", "D", "noise"),
    [
        *((4, 2, 6, 0.3), (5, 5, 5, 0.3), (6, 1, 3, 0.3), (7, 3, 4, 0.3), (7, 5, 9, 0.3)),
        (8, 5, 6, 1e-4),  # sums over what is left out would be off by nats
    ],
)
def test_sums_over_all_sets_are_exact(K, L, D, noise, seed):
    Y, W, _, mu = drawn(seed, 70, D, K, L, noise=noise)
    v, rng = noise**2, np.random.default_rng(seed)
    c, model = seen_by(Y, W, mu, v)
    sets = em_adaptive_fa.supports_of(K, L)
    f = em_adaptive_fa.log_joint(Y, W, mu, v, L) + np.log(len(sets)) - base(Y, mu, v)[:, None]
    p = em_adaptive_fa.support_probabilities(Y, W, mu, v, L)
    near, whole = {"rtol": 1e-7, "atol": 1e-7 if noise < 0.1 else 1e-9}, set_tree.sums(c, model, L)
    close(whole.log_sum, np.logaddexp.reduce(f, axis=1), rtol=1e-9)
    moments = em_adaptive_fa.moments(Y, W, mu, v, L, p)
    for sums, dense in zip(whole[3:6], moments, strict=True):
        close(sums, dense, **near)
    counts = rng.integers(1, 4, 70)
    again = set_tree.sums(np.repeat(c, counts, axis=0), model, L)
    weighted = set_tree.sums(c, model, L, weights=counts.astype(float))
    close(weighted.second, again.second, rtol=1e-9, atol=1e-9)
    equal(whole.best, sets[f.argmax(axis=1)])
    close(whole.value, f.max(axis=1), rtol=1e-8, atol=1e-8)
    equal(set_tree.sums(c, model, L, moments=False).log_sum, whole.log_sum)
    repeated, uniforms = np.repeat(c[:1], 4000, axis=0), rng.random(4000)
    many = set_tree.sums(repeated, model, L, uniforms=uniforms).drawn
    drawn_often = (many[:, None] == sets).all(axis=2).mean(axis=0)
    close(drawn_often, p[0], atol=5 * 0.5 / np.sqrt(4000))


def test_blocks_of_rows_change_nothing(seed, monkeypatch):
    Y, W, _, mu = drawn(seed, 150, 6, 7, 4)
    c, model = seen_by(Y, W, mu, 0.09)
    for L in (3, 4):
        whole = set_tree.sums(c, model, L)
        with monkeypatch.context() as patch:
            patch.setattr(set_tree, "LEAST_ROWS_A_THREAD", 7)
            parts = set_tree.sums(c, model, L)
        for one, other in zip(whole[:5], parts[:5], strict=True):
            equal(one, other)
        close(whole.second, parts.second, rtol=1e-10, atol=1e-12)  # a sum of rows


# One likely set a row; a thousand; dozens that no single change connects.
REGIMES = {"clear": (20, 0.1, 1.0, 0.35), "soft": (20, 1.0, 0.5, 0.1), "split": (8, 0.1, 1.0, 2.0)}


@pytest.fixture
def sampled(monkeypatch):
    """Let importance paths answer what enumeration could."""
    monkeypatch.setattr(supports, "MOST_SETS", 10)


def regime_of(regime, seed):
    D, noise, size, near = REGIMES[regime]
    Y, W, _, mu = drawn(seed, 60, D, 12, 6, noise=noise, size=size)
    c, model = seen_by(Y, W, mu, noise**2)
    return near, fixed(Y, c, model, 6), set_tree.sums(c, model, 6)


@pytest.mark.parametrize("regime", REGIMES)
def test_estimated_sums_come_with_an_honest_error(regime, seed, sampled):
    near, rows, exact = regime_of(regime, seed)
    found = rows.summed()
    assert found.method.startswith("annealed importance sampling, 16 paths a row (errors may")
    certain = rows._replace(c=rows.c[:2], seeds=rows.seeds[:2], n_paths=64).summed()
    assert certain.method == "annealed importance sampling, 64 paths a row"
    off = found.log_likelihood - exact.log_sum
    assert np.sqrt(np.mean(off**2)) < near
    assert abs(off.sum()) < 6 * np.sqrt(np.square(found.error).sum()) + 6 * near
    assert np.mean(np.abs(off) < 3 * found.error + 0.05) > (0.75 if regime == "split" else 0.9)
    close(found.inclusion.sum(axis=1), 6.0, rtol=1e-9)
    if regime != "split":
        assert np.sqrt(np.mean((found.inclusion - exact.inclusion) ** 2)) < 0.04
    assert found.inclusion.min() >= 0.0
    assert found.inclusion.max() <= 1.0


@pytest.mark.parametrize("regime", REGIMES)
def test_the_short_way_is_taken_where_pilots_agree_and_is_honest(
    regime, seed, sampled, monkeypatch
):
    near, rows, exact = regime_of(regime, seed)
    monkeypatch.setattr(supports, "MANY", 10)
    taken, annealed = [], supports._annealed

    def hear(rows, pilot, route, *others):
        taken.append((route is supports.SHORT, len(rows.c)))
        return annealed(rows, pilot, route, *others)

    monkeypatch.setattr(supports, "_annealed", hear)
    found = rows.summed()
    (first, short), (second, long) = taken
    assert (first, second, short + long) == (True, False, 60)
    assert long >= 10 if regime == "split" else long <= 5
    off = found.log_likelihood - exact.log_sum
    middle = np.median if regime == "split" else np.mean  # a missed mode weighs much in a mean
    assert np.sqrt(middle(off**2)) < near
    assert np.mean(np.abs(off) < 3 * found.error + 0.05) > (0.75 if regime == "split" else 0.9)


def test_rows_with_many_modes_state_errors_as_large_as_they_are(sampled, monkeypatch):
    """Little noise and fewer features than components: pilots see some of the modes only."""
    Y, W, _, mu = drawn(1, 200, 10, 14, 7, noise=0.1)
    c, model = seen_by(Y, W, mu, 0.01)
    exact = set_tree.sums(c, model, 7).log_sum

    def ratio():
        found = fixed(Y, c, model, 7, 16).summed()
        return np.sqrt(np.mean(np.square((found.log_likelihood - exact) / found.error)))

    assert ratio() < 1.75
    monkeypatch.setattr(supports, "SPLIT", supports.LONG)
    assert ratio() > 2.5


def test_estimates_above_one_give_their_excess_to_those_with_room():
    p = np.array([[1.2, 0.5, 0.3], [1.0, 1.0, 0.0], [0.9, 0.9, 0.2]])
    wanted = [[1.0, 0.5 + 0.2 * 0.5 / 1.2, 0.3 + 0.2 * 0.7 / 1.2], *p[1:]]
    close(supports._capped(p), wanted)


def test_the_search_finds_nearly_every_best_set(seed, sampled):
    Y, W, _, mu = drawn(seed, 200, 20, 12, 6, noise=0.3)
    c, model = seen_by(Y, W, mu, 0.09)
    Z, value = fixed(Y, c, model, 6).best()
    _, most, best, *_ = set_tree.sums(c, model, 6, moments=False)
    assert np.all(value <= most + 1e-8 * np.abs(most))
    assert np.mean(np.all(supports.indicators(best, 12) == Z, axis=1)) > 0.97


def test_sums_above_twelve_factors_are_exact(seed):
    """Where 16 paths are off by 12 times the error they state: little noise, few features."""
    Y, W, _, mu = drawn(seed, 4, 10, 16, 7, noise=0.1)
    c, model = seen_by(Y, W, mu, 0.01)
    found = fixed(Y, c, model, 7, 16).summed()
    assert found.method == "exact, by enumeration of 11440 sets"
    f = em_adaptive_fa.log_joint(Y, W, mu, 0.01, 7) + np.log(11440)
    log_sum = np.logaddexp.reduce(f, axis=1) - base(Y, mu, 0.01)
    close(found.log_likelihood, log_sum, rtol=1e-8)


SIGMA2, TAU2 = 0.3, 1.4


def free_world(seed, n_components, n_rows=6, n_features=4, noise=SIGMA2):
    rng = np.random.default_rng(seed)
    W, weights = rng.normal(size=(n_features, n_components)), rng.uniform(0.1, 0.8, n_components)
    Z = rng.random((n_rows, n_components)) < weights
    X = rng.normal(size=Z.shape) * np.sqrt(TAU2) * Z
    Y = X @ W.T + np.sqrt(noise) * rng.normal(size=(n_rows, n_features))
    return W, Y, SupportsOfRows(Y @ W / noise, CollapsedModel(W.T @ W / noise, 1 / TAU2), weights)


def joint(W, Y, q, noise=SIGMA2):
    """log p(y, z) of every row and set, (n, 2^K), and the sets, (2^K, K)."""
    sets = np.array(list(itertools.product((False, True), repeat=W.shape[1])))
    prior = np.where(sets, np.log(q.prior), np.log1p(-q.prior)).sum(axis=1)
    rows = [low_rank.log_density(Y, W[:, z], 0.0, noise, TAU2) for z in sets]
    return np.array(rows).T + prior, sets


@pytest.mark.parametrize("n_components", [1, 5, 14])  # more columns than features, beyond 12 too
def test_sums_over_sets_of_any_size_are_exact(n_components, seed):
    W, Y, q = free_world(seed, n_components, n_rows=3 if n_components > 12 else 70)
    log_joint, sets = joint(W, Y, q)
    background = low_rank.log_density(Y, W[:, sets[0]], 0.0, SIGMA2, TAU2)
    found, (Z, value) = q._replace(n_paths=4).summed(), q.best()
    log_p = np.logaddexp.reduce(log_joint, axis=1)
    close(found.log_likelihood + background, log_p, rtol=0, atol=1e-9)
    posterior = np.exp(log_joint - log_p[:, None])
    close(found.inclusion, posterior @ sets, rtol=0, atol=1e-9)
    assert (found.error == 0).all()
    assert found.method == f"exact, by enumeration of {2**n_components} sets"
    equal(Z, sets[log_joint.argmax(axis=1)])
    close(value + background, log_joint.max(axis=1), rtol=0, atol=1e-9)
    H = np.zeros(q.c.shape)
    for z, p in zip(sets, posterior.T, strict=True):
        H[:, z] += p[:, None] * low_rank.scores(Y, W[:, z], 0.0, SIGMA2, TAU2)[0]
    close(q.expected(), H, rtol=0, atol=1e-9)


def test_sums_hold_where_weights_are_thousands_of_nats_apart(seed):
    W, Y, q = free_world(seed, 6, n_rows=40, n_features=9, noise=1e-4)
    log_joint, sets = joint(W, Y, q, 1e-4)
    assert np.ptp(log_joint) > 2000
    background = low_rank.log_density(Y, W[:, sets[0]], 0.0, 1e-4, TAU2)
    log_p = np.logaddexp.reduce(log_joint, axis=1) - background
    close(q._replace(n_paths=4).summed().log_likelihood, log_p, rtol=1e-9)


def test_sets_are_drawn_from_their_posterior(seed):
    W, Y, q = free_world(seed, n_components=4, n_rows=3)
    log_joint, sets = joint(W, Y, q)
    wanted, n = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1)[:, None]), 20_000
    many = q._replace(c=np.repeat(q.c, n, axis=0))
    uniforms = np.random.default_rng(seed).random(len(many.c))
    drawn = many.every_set(uniforms=uniforms).drawn.reshape(3, n, 4)
    counts, expected = (drawn[:, :, None] == sets).all(axis=3).sum(axis=1), n * wanted
    statistic = (np.square(counts - expected) / expected).sum(axis=1)
    assert (statistic < 60).all()  # 15 degrees of freedom; even draws give thousands
    assert (np.square(counts - n / 16) / (n / 16)).sum(axis=1).min() > 1000


@pytest.fixture
def few_columns(monkeypatch):
    """Estimate where enumeration would still be possible, so that both can be compared."""
    monkeypatch.setattr(supports, "MOST_COLUMNS", 3)


def exactly(q):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supports, "MOST_COLUMNS", 16)
        return q._replace(n_paths=4).summed(), q.best()


@pytest.mark.usefixtures("few_columns")
def test_estimates_agree_with_enumeration_within_their_errors(seed):
    _, _, q = free_world(seed, n_components=10, n_rows=40, n_features=8)
    wanted, (_, best) = exactly(q)
    found, (_, value) = q._replace(n_paths=64).summed(), q.best()
    assert found.method == "annealed importance sampling, 64 paths a row"
    z = (found.log_likelihood - wanted.log_likelihood) / found.error
    assert np.abs(z).max() < 6
    assert found.error.mean() < 0.1
    assert np.abs(found.inclusion - wanted.inclusion).mean() < 0.03
    assert (value > best - 1e-9).mean() > 0.9
    assert (value < best + 1e-9).all()


@pytest.mark.usefixtures("few_columns")
@pytest.mark.parametrize(
    ("n_features", "noise", "n_paths"), [(8, 0.3, 2), (8, 0.01, 4), (20, 0.01, 16)]
)
def test_stated_errors_are_calibrated_over_many_rows(n_features, noise, n_paths, seed):
    _, _, q = free_world(seed, 14, n_rows=400, n_features=n_features, noise=noise)
    found, wanted = q._replace(n_paths=n_paths).summed(), exactly(q)[0]
    z = (found.log_likelihood - wanted.log_likelihood) / found.error
    assert 0.3 < np.sqrt(np.mean(z**2)) < 1.5
    assert np.mean(np.abs(z) > 3) < 0.05


@pytest.mark.usefixtures("few_columns")
def test_estimates_of_two_streams_have_independent_errors(seed):
    _, _, q = free_world(seed, 10, n_rows=300, n_features=8)
    wanted = exactly(q)[0].log_likelihood
    first, second = (
        q._replace(n_paths=8, stream=stream).summed().log_likelihood - wanted for stream in (0, 1)
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.3


WIDTH, ROWS = 37, 30  # an odd number of features, and rows for several of each kind of remainder


def model_of(kind, k, n_active, dtype):
    """A model as if it had been fitted."""
    rng, ones = np.random.default_rng(k), np.ones(k)
    C = rng.standard_normal((k, WIDTH))
    C = np.linalg.qr(C.T)[0].T if kind is NonparametricPPCA else C
    arrays = {"components": C, "mean": rng.standard_normal(WIDTH)}
    arrays = {name: values.astype(dtype) for name, values in arrays.items()}
    arrays |= {"noise_variance": np.array(0.7), "latent_variance": ones, "scale": ones}
    arrays |= {"explained_variance": ones}
    if n_active:
        return kind(k, n_active, n_paths=4).restore(arrays | {"n_active": np.array(n_active)})
    free = {"n_components": np.array(k), "weights": np.full(k, 0.4), "alpha": np.array(1.0)}
    keywords = {} if kind is NonparametricPPCA else {"n_paths": 4}
    return kind(k, **keywords).restore(arrays | free)


def rows_about(model, dtype):
    rng = np.random.default_rng(1)
    H = rng.standard_normal((ROWS, len(model.components_))) * (
        rng.random(model.components_.shape[0]) < 0.5
    )
    noise = 0.8 * rng.standard_normal((ROWS, WIDTH))
    return (model.mean_ + H @ model.components_ + noise).astype(dtype)


def joined(parts, order=None):
    told = [part[: part._fields.index("method")] for part in parts]
    columns = [np.concatenate(column) for column in zip(*told, strict=True)]
    return columns if order is None else [column[np.argsort(order)] for column in columns]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "k", "n_active"),
    [
        (AdaptiveFactorAnalysis, 17, 8),  # 24,310 sets: by importance sampling
        (AdaptiveFactorAnalysis, 8, 3),  # 56 sets: exactly
        (InfiniteSparseFA, 18, None),  # more than 16 columns: by importance sampling
        (FiniteSparseFA, 17, None),
        (InfiniteSparseFA, 9, None),  # 512 sets: exactly
        (NonparametricPPCA, 9, None),
    ],
)
def test_a_row_alone_in_twos_or_among_others_is_told_the_same(
    kind, k, n_active, dtype, seed, monkeypatch
):
    model = model_of(kind, k, n_active, dtype)
    X, order = rows_about(model, dtype), np.random.default_rng(seed).permutation(ROWS)
    wanted = joined([model.describe(X)])
    for cores in (1, 2):
        monkeypatch.setattr(threads, "cores", lambda cores=cores: cores)
        with threadpool_limits(cores):
            many = np.concatenate([X] * 20)  # enough for blocks that are shared out
            others = {
                "alone": joined([model.describe(X[i : i + 1]) for i in range(ROWS)]),
                "in twos": joined([model.describe(X[i : i + 2]) for i in range(0, ROWS, 2)]),
                "in sevens": joined([model.describe(X[i : i + 7]) for i in range(0, ROWS, 7)]),
                "together": joined([model.describe(X)]),
                "permuted": joined([model.describe(X[order])], order),
                "among many": [column[-ROWS:] for column in joined([model.describe(many)])],
            }
        for name, found in others.items():
            for field, a, b in zip(model.describe(X)._fields, found, wanted, strict=False):
                equal(a, b, err_msg=f"{field}, {name}, {cores} threads")


DRAW = np.array([1.0])


def seen(Y, W, mu, sigma2, members=None, n_active=1, seed=0):
    """Make the kernels' view of rows: (RowSupports, CollapsedModel)."""
    if members is None:
        members = np.full((len(Y), n_active), -1)
    c, model = seen_by(Y, W, mu, sigma2)
    seeds = supports.draw_seeds(np.random.default_rng(seed), len(Y))
    return RowSupports(c, np.asarray(members), seeds), model


def log_sums(Y, W, mu, sigma2, L):
    """Log sums over all sets (N,) of what the kernels weigh a set by, by dense densities."""
    exact = em_adaptive_fa.log_likelihoods(Y, W, mu, sigma2, L)
    background = stats.multivariate_normal.logpdf(Y, mu, sigma2 * np.eye(Y.shape[1]))
    return exact + np.log(math.comb(W.shape[1], L)) - background


@pytest.mark.parametrize(("K", "L"), [(5, 2), (7, 7), (6, 5), (4, 1), (23, 11), (40, 9)])
def test_exchanges_lead_where_a_new_beginning_does(K, L, seed):
    Y, W, _, mu = drawn(seed, 1, 2 * K, K, L)
    at, model = seen(Y, W, mu, 0.09)
    rng = np.random.default_rng(seed)
    w, again = slot_kernels.row_state(K, L), slot_kernels.row_state(K, L)
    log_det = slot_kernels.build(random_members(rng, 1, K, L)[0], model, at.c[0], w)
    for _ in range(30 if K > L else 0):
        log_det += slot_kernels.exchange(rng.integers(L), rng.integers(K - L), model.A, w)
    wanted = slot_kernels.build(w.members.copy(), model, at.c[0], again)
    assert log_det == pytest.approx(wanted, rel=1e-9)
    close(w.mean, again.mean, rtol=1e-7, atol=1e-9)
    order, other = (np.argsort(one.candidates[: K - L]) for one in (w, again))
    for name in ("candidates", "schur", "resid", "table"):
        one, fresh = getattr(w, name)[..., order], getattr(again, name)[..., other]
        close(one, fresh, rtol=1e-7, atol=1e-9, err_msg=name)
    half = np.arange(K)[None] < K - np.arange(L)[:, None]
    half[:, : K - L] = False
    whole, fresh = w.table[:, :K], again.table[:, :K]
    close(whole[half], fresh[half], rtol=1e-7, atol=1e-9)


def random_members(rng, N, K, L):
    return np.argsort(rng.random((N, K)), axis=1)[:, :L]


@pytest.mark.parametrize(("K", "L", "D"), [(5, 2, 4), (7, 7, 9), (6, 5, 3), (4, 1, 2), (9, 4, 20)])
def test_moments_and_values_are_those_of_dense_algebra(K, L, D, seed):
    Y, W, _, mu = drawn(seed, 12, D, K, L)
    start = random_members(np.random.default_rng(seed), 12, K, L)
    at, model = seen(Y, W, mu, 0.09, start)
    members, found = supports.search(at, np.empty(0), model)
    equal(members, start)
    p = em_adaptive_fa.certain(members, K)
    _, H, second = em_adaptive_fa.moments(Y, W, mu, 0.09, L, p)
    close(found.H, H, rtol=1e-7, atol=1e-9)
    close(found.second, second, rtol=1e-7, atol=1e-7)
    dense = em_adaptive_fa.log_joint(Y, W, mu, 0.09, L)[p == 1] + np.log(p.shape[1])
    background = stats.multivariate_normal.logpdf(Y, mu, 0.09 * np.eye(D))
    close(found.value, dense - background, rtol=1e-8, atol=1e-8)


def test_a_slot_is_scored_as_the_joint_density_says(seed):
    Y, W, _, mu = drawn(seed, 4, 6, 7, 3)
    rng = np.random.default_rng(seed)
    members = random_members(rng, 4, 7, 3)
    at, model = seen(Y, W, mu, 0.09)
    for y, c, own in zip(Y, at.c, members, strict=True):
        for slot in range(3):
            w = slot_kernels.row_state(7, 3)
            slot_kernels.build(own, model, c, w)
            slot_kernels.score_replacements(slot, 4, model.prior, w)
            w.candidates[4] = own[slot]
            factors, log_weights = w.candidates[:5].copy(), w.increment[:5]
            candidates, joint = gibbs_adaptive_fa.slot(y, own, slot, W, mu, 0.09)
            order = np.argsort(factors)
            equal(factors[order], candidates)
            gap = log_weights[order] - joint
            close(gap - gap[0], 0.0, atol=1e-10)


def test_a_search_that_keeps_goes_back_from_where_it_is_worse(seed):
    Y, W, _, mu = drawn(seed, 100, 8, 10, 4, noise=0.5)
    at, model = seen(Y, W, mu, 0.25, n_active=4, seed=seed)
    members, found = supports.search(at, np.full(20, math.inf), model)
    tried = supports.search(at._replace(members=members), DRAW, model)[1]
    kept_members, kept = supports.search(at._replace(members=members), DRAW, model, keep=True)
    assert np.any(tried.value < found.value - 1.0)
    assert np.all(kept.value >= found.value - 1e-9 * np.abs(found.value))
    back = np.isclose(kept.value, found.value, rtol=1e-12)
    equal(np.sort(kept_members[back], axis=1), np.sort(members[back], axis=1))
    equal(at.members, -1)  # what is passed in stays as it was


def test_a_rows_own_seed_depends_on_the_row_alone(seed):
    rng = np.random.default_rng(seed)
    for dtype in (np.float64, np.float32):
        X = rng.standard_normal((50, 7)).astype(dtype)
        seeds = supports.row_seeds(X)
        assert len(np.unique(seeds)) == 50
        equal(supports.row_seeds(X[::-3]), seeds[::-3])
        nudged = X.copy()
        nudged[0, 3] = np.nextafter(nudged[0, 3], dtype(9.0))
        assert supports.row_seeds(nudged)[0] != seeds[0]


def uncompiled(tmp_path, stem, old="", new=""):
    """Import the kernels as plain Python, `old` replaced by `new`; give their search for draws."""
    source, plain = "appca.models.numeric_kernels", "tests.uncompiled"
    kernels = broken("appca.models.slot_kernels", source, plain, tmp_path, f"{stem}_uncompiled")
    if old:
        kernels = broken(kernels.__name__, old, new, tmp_path, f"{stem}_broken")

    def search(at, betas, model):
        w = kernels.row_state(at.c.shape[1], at.members.shape[1])
        ended = np.empty_like(at.members)
        with np.errstate(over="ignore"):  # the generator is arithmetic modulo 2^64
            for i, c in enumerate(at.c):
                w.stream[0] = at.seeds[i]
                kernels.build(at.members[i], model, c, w)
                for beta in betas:
                    kernels.sweep(beta, model, w)
                ended[i] = w.members
        return ended

    return search


CONTROLS = {
    "increment_without_determinant": ("0.5 * (fit[i] - increment[i])", "0.5 * fit[i]"),
    "signal_halved": ("0.5 * (fit[i] - increment[i])", "0.5 * (0.5 * fit[i] - increment[i])"),
    "factor_left_in": ("s = max(w.schur[i] + a * a * schur, prior)", "s = max(w.schur[i], prior)"),
    "slots_in_sorted_order": (
        "    for slot in w.order:\n        modes",
        "    for place in range(len(w.order)):\n"
        "        slot = np.argsort(w.members)[place]\n        modes",
    ),
}


def after_a_sweep(search, n, seed, *, flat=False):
    """Start one row n times from its exact posterior, sweep once; p-value of the sets it is in."""
    Y, W, _, mu = drawn(3, 1, 4, 5, 3, noise=1.0, size=0.0 if flat else 0.8)
    sets = em_adaptive_fa.supports_of(5, 3)
    posterior = em_adaptive_fa.support_probabilities(Y, W, mu, 1.0, 3)[0]
    assert posterior.max() < 0.5  # or the test could not see much
    rng = np.random.default_rng(seed)
    members = sets[rng.choice(len(sets), n, p=posterior)]
    at, model = seen(np.repeat(Y, n, axis=0), W, mu, 1.0, members, seed=seed)
    ended = np.sort(search(at, DRAW, model), axis=1)
    index = {tuple(S): i for i, S in enumerate(sets.tolist())}
    counts = np.bincount([index[tuple(S)] for S in ended.tolist()], minlength=len(sets))
    return pooled_p_value(counts, n * posterior)


@pytest.mark.parametrize("flat", [False, True])
def test_a_sweep_of_draws_leaves_the_exact_posterior_alone(seed, flat):
    p = after_a_sweep(lambda *at: supports.search(*at)[0], 100_000, seed, flat=flat)
    assert p > 1e-4


def test_the_compiled_kernels_do_what_their_source_says(seed, tmp_path):
    Y, W, _, mu = drawn(seed, 30, 4, 6, 3)
    at, model = seen(Y, W, mu, 0.09, n_active=3, seed=seed)
    slow = uncompiled(tmp_path, "source")(at, np.array([1.0, 0.5, math.inf]), model)
    equal(slow, supports.search(at, np.array([1.0, 0.5, math.inf]), model)[0])


@pytest.mark.parametrize("name", CONTROLS)
def test_the_invariance_test_sees_kernels_broken_on_purpose(name, tmp_path):
    search = uncompiled(tmp_path, name, *CONTROLS[name])
    assert after_a_sweep(search, 4_000, 0, flat=name == "slots_in_sorted_order") < 1e-8


def few_paths(kernels, seed):
    """Sums by four paths over the exact one, again and again, and the share resampled."""
    n, noise = 20_000, 0.35
    Y, W, _, mu = drawn(4, 1, 6, 6, 3, noise=1.0)
    at, model = seen(np.repeat(Y, n, axis=0), W, mu, noise**2, n_active=3, seed=seed)
    exact = log_sums(Y[:1], W, mu, noise**2, 3)
    r = np.tile(np.random.default_rng(41).uniform(0.05, 0.95, 6), (n, 1))
    families = np.empty((n, 4), np.int64)
    out = AnnealedPaths(np.empty((n, 4)), np.empty((n, 4, 6)), families)
    betas = np.array([0.1, 0.12, 0.3, 1.0])
    room = slot_kernels.row_state(6, 3), kernels.walkers(4, 6, 3), np.zeros((7, 4))
    kernels.importance(at, r, AnnealingSchedule(betas, 0), model, out, room)
    resampled = (families != np.arange(4)).any(axis=1).mean()
    return np.exp(out.log_weights - exact).mean(axis=1), resampled


def bias(ratio):
    return abs(ratio.mean() - 1.0) / (ratio.std() / np.sqrt(len(ratio)))


def test_resampled_paths_sum_over_all_sets_without_bias(seed):
    ratio, resampled = few_paths(slot_kernels, seed)
    assert resampled > 0.5
    assert bias(ratio) < 5


def inclusion_after(kernels, seed):
    """Estimates (n, K) by annealed sweeps from exact draws of a row's support, and the truth."""
    n = 20_000
    Y, W, _, mu = drawn(3, 1, 4, 5, 3, noise=1.0, size=0.8)
    at, model = seen(np.repeat(Y, n, axis=0), W, mu, 1.0, n_active=3, seed=seed)
    p = em_adaptive_fa.support_probabilities(Y, W, mu, 1.0, 3)
    out = AnnealedPaths(np.empty((n, 1)), np.empty((n, 1, 5)), np.empty((n, 1), np.int64))
    room = slot_kernels.row_state(5, 3), kernels.walkers(1, 5, 3), np.zeros((6, 4))
    route = AnnealingSchedule(np.linspace(0.0, 1.0, 30), 1)
    kernels.importance(at, np.full((n, 5), 0.5), route, model, out, room)
    return out.inclusion[:, 0], em_adaptive_fa.moments(Y, W, mu, 1.0, 3, p)[0][0]


@pytest.mark.thorough
def test_a_sweep_estimates_inclusion_without_bias_and_better_than_its_support(seed, tmp_path):
    found, exact = inclusion_after(slot_kernels, seed)
    error = found.std(axis=0) / np.sqrt(len(found))
    assert np.abs((found.mean(axis=0) - exact) / error).max() < 5
    assert np.all(found.var(axis=0) < 0.5 * exact * (1.0 - exact))
    close(found.sum(axis=1), 3.0)
    wrong = broken(
        slot_kernels.__name__, "draw_slot(slot, 1.0,", "draw_slot(slot, 0.9,", tmp_path, "odds"
    )
    found, _ = inclusion_after(wrong, seed)
    assert np.abs((found.mean(axis=0) - exact) / error).max() > 7


def test_the_start_of_a_path_is_an_exact_draw(seed):
    """With beta 1 at once the weight is exp f(S) / q(S) of the start, whose mean is the sum."""
    Y, W, _, mu = drawn(seed, 1, 6, 5, 2, noise=2.0, size=0.3)
    at, model = seen(np.repeat(Y, 20, axis=0), W, mu, 4.0, n_active=2, seed=seed)
    r = np.tile(np.random.default_rng(seed).uniform(0.1, 0.9, 5), (20, 1))
    paths = supports.importance(at, r, 1000, AnnealingSchedule(np.array([1.0]), 0), model)
    ratio = np.exp(paths.log_weights - log_sums(Y, W, mu, 4.0, 2))
    equal(paths.families[0], np.arange(1000))  # nothing to resample for
    assert abs(ratio.mean() - 1.0) < 5 * ratio.std() / np.sqrt(ratio.size)


# Probabilities below this are left out on purpose (polynomials.LEAST_WEIGHT).
NOTHING = 1e-45
ROUTES = {"tables": 10**9, "points": 0}  # components up to which there are tables


@pytest.fixture(params=ROUTES)
def route(request, monkeypatch):
    """Each way, whatever K is."""
    monkeypatch.setattr(polynomials, "LARGEST_FOR_COLUMNS", ROUTES[request.param])
    monkeypatch.setattr(polynomials, "MOST_ENTRIES", 0)
    return request.param


@st.composite
def wide_problems(draw):
    """Logits over thousands of nats, with ties, at any K that has tables, and any L."""
    n_columns = draw(st.integers(1, polynomials.LARGEST_FOR_COLUMNS))
    values = st.one_of(
        st.floats(-5000, 5000, allow_subnormal=False), st.floats(-3, 3), st.integers(-2, 2)
    )
    logits = draw(arrays(np.float64, (3, n_columns), elements=values.map(float)))
    return logits, draw(st.integers(0, n_columns))


def log_error(logits):
    """What rounding the logits alone may do to a sum of them."""
    return 1e-12 * max(1.0, np.abs(logits).max())


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0, 4000.0])
@pytest.mark.parametrize("n_columns", range(1, 8))
def test_sums_and_inclusion_equal_enumeration(route, seed, n_columns, scale):
    a = np.random.default_rng(seed).standard_normal((6, n_columns)) * scale
    for n_active in range(n_columns + 1):
        log_e, r = polynomials.inclusion(a, n_active)
        expected_log_e, expected_r = oracles.inclusion(a, n_active)
        nothing = NOTHING if route == "tables" else log_error(a)
        close(r, expected_r, rtol=1e-12, atol=nothing)
        close(log_e, expected_log_e, rtol=0, atol=log_error(a))
        log_e = polynomials.inclusion(a, n_active, wanted=False)[0]
        close(log_e, expected_log_e, rtol=0, atol=log_error(a))


def test_small_probabilities_keep_their_digits_in_tables(seed):
    for step in (0.3, 1.0, 4.0, 15.0, 40.0):
        a = -step * np.arange(12.0) + np.random.default_rng(seed).uniform(0, 0.1, (2, 12))
        for n_active in (1, 5, 6, 11):
            _, r = polynomials.inclusion(a, n_active)
            close(r, oracles.inclusion(a, n_active)[1], rtol=1e-12, atol=NOTHING)


@pytest.mark.parametrize(("n_columns", "n_active"), [(40, 3), (100, 50), (60, 58), (1000, 480)])
def test_large_problems_equal_integer_arithmetic(seed, n_columns, n_active):
    a, columns, expected_log_e, expected_r = oracles.large_problem(seed, n_columns, n_active)
    log_e, r = polynomials.inclusion(a, n_active)
    close(r[0, columns], expected_r, rtol=0, atol=1e-12)
    assert log_e[0] == pytest.approx(expected_log_e, rel=1e-13)
    log_sum = polynomials.inclusion(a, n_active, wanted=False)[0]
    assert log_sum[0] == pytest.approx(expected_log_e, rel=1e-13)


@pytest.mark.parametrize("scale", [0.01, 1.0, 5.0, 100.0, 5000.0])
@pytest.mark.parametrize(("n_columns", "n_active"), [(30, 1), (90, 45), (300, 120), (300, 295)])
def test_points_equal_tables(seed, n_columns, n_active, scale, monkeypatch):
    a = np.random.default_rng(seed).standard_normal((20, n_columns)) * scale
    a[10:] = np.round(a[10:])  # with ties
    log_e, r = polynomials.by_points(a, n_active)
    monkeypatch.setattr(polynomials, "LARGEST_FOR_COLUMNS", n_columns)
    expected_log_e, expected_r = polynomials.inclusion(a, n_active)
    close(r, expected_r, rtol=0, atol=log_error(a))
    close(log_e, expected_log_e, rtol=1e-13, atol=log_error(a))
    close(r.sum(axis=1), n_active, rtol=1e-12)


def test_few_points_are_enough_for_any_variance():
    size, turn, phase = polynomials.points(np.geomspace(1e-6, 1e4, 3200), 10**5, 5 * 10**4)
    assert 10 < len(turn) <= 40
    close(np.cos(phase), np.cos(5 * 10**4 * turn), atol=1e-9)
    assert (size % 2 == 1).all()


def test_what_is_no_number_is_not_hidden(route, seed):
    a = np.random.default_rng(seed).standard_normal((3, 30))
    a[1, 4] = np.nan
    log_e, r = polynomials.inclusion(a, 7)
    assert math.isnan(log_e.sum())
    assert np.isfinite(log_e[[0, 2]]).all()
    assert np.isfinite(r[[0, 2]]).all()


def test_a_row_comes_out_the_same_in_any_company(route, seed, monkeypatch):
    a = np.random.default_rng(seed).standard_normal((100, 9)) * np.logspace(-2, 3, 100)[:, None]
    log_e, r = polynomials.inclusion(a, 4)
    monkeypatch.setattr(polynomials, "TABLE_FLOATS", 2**9)
    monkeypatch.setattr(polynomials, "MOST_NUMBERS", 2**9)
    equal(polynomials.inclusion(a[::-1], 4)[1][::-1], r)
    alone = [polynomials.inclusion(row[None], 4) for row in a]
    close(np.concatenate([one[1] for one in alone]), r, rtol=1e-13)
    close(np.concatenate([one[0] for one in alone]), log_e, rtol=1e-14)


@given(wide_problems())
def test_top_is_the_heaviest_subset_and_ties_go_to_lower_columns(problem):
    a, n_active = problem
    active = polynomials.top(a, n_active)
    by_rank = np.argsort(-a, axis=1, kind="stable")[:, :n_active]
    expected = np.zeros(a.shape, dtype=bool)
    np.put_along_axis(expected, by_rank, True, axis=1)
    equal(active, expected)


def subset_z(active, logits, n_active):
    """Largest |z| of the frequency of any subset against its probability."""
    _, p = oracles.subset_probabilities(logits, n_active)
    codes = active @ (1 << np.arange(len(logits)))
    names = [sum(1 << k for k in subset) for subset in oracles.subsets_of(len(logits), n_active)]
    frequency = np.array([(codes == name).mean() for name in names])
    return np.abs((frequency - p) / np.sqrt(p * (1 - p) / len(active))).max()


def successive(rng, logits, n_active):
    """Draw members one after the other without replacement: near, but another distribution."""
    noisy = logits + rng.gumbel(size=logits.shape)
    return polynomials.top(noisy, n_active)


@pytest.mark.parametrize("n_active", [1, 2, 4])
def test_draws_have_the_frequencies_of_every_subset(route, seed, n_active):
    rng, logits = np.random.default_rng(seed), np.array([0.0, 2.5, -1.0, 0.7, 0.7])
    a = np.tile(logits, (20_000, 1))
    active = polynomials.draw(rng, a, n_active)
    assert (active.sum(axis=1) == n_active).all()
    assert subset_z(active, logits, n_active) < 5
    if n_active == 2:
        assert subset_z(successive(rng, a, n_active), logits, n_active) > 10


def test_draws_on_large_problems_have_the_inclusion_frequencies(seed):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal(60)
    active = polynomials.draw(rng, np.tile(logits, (5_000, 1)), 25)
    r = polynomials.inclusion(logits[None], 25)[1][0]
    assert (active.sum(axis=1) == 25).all()
    error = np.sqrt(r * (1 - r) / len(active))
    unusual = np.abs(active.mean(axis=0) - r) > 5 * error + 5 / len(active)
    assert not unusual.any()


@given(wide_problems(), st.integers(0, 2**32))
def test_a_draw_always_has_the_right_size_and_never_an_impossible_member(problem, seed):
    a, n_active = problem
    active = polynomials.draw(np.random.default_rng(seed), a, n_active)
    _, r = polynomials.inclusion(a, n_active)
    assert (active.sum(axis=1) == n_active).all()
    assert (r[active] > 1e-12).all()
    assert (r[~active] < 1 - 1e-12).all()


@pytest.mark.parametrize("number", [0.0, np.nextafter(1.0, 0.0)])
def test_the_ends_of_the_unit_interval_still_give_subsets_of_the_right_size(seed, number):
    stuck = SimpleNamespace(random=lambda shape: np.full(shape, number))
    sizes = np.geomspace(0.1, 3000, 200)[:, None]
    a = np.random.default_rng(seed).standard_normal((200, 11)) * sizes
    for n_active in (1, 5, 10):
        assert (polynomials.draw(stuck, a, n_active).sum(axis=1) == n_active).all()


@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0, 3000.0])
@pytest.mark.parametrize("K", [1, 2, 5, 9])
def test_sums_inclusion_and_sizes_equal_enumeration(K, spread, seed):
    rng = np.random.default_rng(seed)
    a, rho = spread * rng.standard_normal((70, K)), rng.dirichlet(np.ones(K + 1))
    every = np.array(list(product([False, True], repeat=K)))
    counts = np.log([math.comb(K, n) for n in every.sum(axis=1)])
    weights = a @ every.T + np.log(rho[every.sum(axis=1)]) - counts
    total = logsumexp(weights, axis=1)
    p = np.exp(weights - total[:, None])
    log_sum, r, sizes = polynomials.over_supports(a, rho)
    close(log_sum, total, rtol=1e-12, atol=1e-11)
    close(r, p @ every, atol=1e-10)
    by_size = np.eye(K + 1)[every.sum(axis=1)]
    close(sizes, p @ by_size, atol=1e-10)
    chosen, value = polynomials.best(a, rho)
    equal(chosen, every[weights.argmax(axis=1)])
    close(value, weights.max(axis=1), rtol=1e-12)
    close(polynomials.log_weight(a, chosen, rho), value, rtol=1e-12)


def test_a_size_that_is_nearly_certain_gives_the_sums_of_fixed_size(seed):
    a, rho = 5.0 * np.random.default_rng(seed).standard_normal((60, 8)), np.full(9, 1e-30)
    rho[3] = 1.0
    log_e, r = polynomials.inclusion(a, 3)
    log_sum, r_sizes, sizes = polynomials.over_supports(a, rho)
    close(log_sum, log_e - np.log(56), rtol=1e-9)
    close(r_sizes, r, atol=1e-8)
    close(sizes[:, 3], 1.0)


def test_many_components_neither_overflow_nor_vanish(seed):
    rng = np.random.default_rng(seed)
    rho = rng.dirichlet(np.ones(301))
    for a in (np.zeros((3, 300)), 1e4 * rng.standard_normal((3, 300))):
        log_sum, r, sizes = polynomials.over_supports(a, np.maximum(rho, 1e-10))
        assert np.isfinite(log_sum).all()
        close(r.sum(axis=1), sizes @ np.arange(301), rtol=1e-9)
