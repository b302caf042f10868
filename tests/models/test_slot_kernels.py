"""The compiled search for active sets against dense algebra and enumeration."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy import stats

from appca.models import slot_kernels, supports
from appca.models.set_tree import CollapsedModel
from appca.models.supports import AnnealedPaths, AnnealingSchedule, RowSupports
from tests.geweke import broken
from tests.models.gibbs_oracles import pooled_p_value
from tests.models.synthetic import drawn
from tests.references import em_adaptive_fa, gibbs_adaptive_fa

DRAW = np.array([1.0])


def seen(Y, W, mu, sigma2, members=None, n_active=1, seed=0):
    """Make the kernels' view of rows: (RowSupports, CollapsedModel)."""
    if members is None:
        members = np.full((len(Y), n_active), -1)
    c = (Y - mu) @ W / sigma2
    seeds = supports.draw_seeds(np.random.default_rng(seed), len(Y))
    return RowSupports(c, np.asarray(members), seeds), CollapsedModel(W.T @ W / sigma2, 1.0)


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
    """Estimates by single sweeps from exact draws of one row's support, (n, K), and what is true.

    Many annealed sweeps lead there from the uniform distribution.
    """
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
