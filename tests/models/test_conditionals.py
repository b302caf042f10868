"""Tests of all conditionals and scans of Z against joint densities and enumeration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy import stats

from appca.models import conditionals, gibbs_kernels
from appca.models.conditionals import Gamma, InverseGamma
from appca.models.set_tree import CollapsedModel
from appca.models.supports import scores_given
from tests.geweke import broken_kernels
from tests.models import gibbs_oracles as oracle
from tests.references import low_rank

N, D, KK = 6, 4, 3
NOISE, WEAK = InverseGamma(2.0, 1.5), InverseGamma(3.0, 0.7)


@pytest.fixture
def world(seed):
    rng = np.random.default_rng(seed)
    W, Z = rng.normal(size=(D, KK)), rng.random((N, KK)) < 0.6
    Z[0] = True
    X, mu = rng.normal(size=(N, KK)) * Z, rng.normal(size=D)
    return rng, mu + X @ W.T + rng.normal(size=(N, D)), W, X, Z, mu


def same_ratio(given, joint, first, second):
    """Compare log densities, each up to its constant, at two points."""
    assert given(first) - given(second) == pytest.approx(joint(first) - joint(second), abs=1e-10)


def test_variances_have_the_ratios_of_the_joint(world):
    rng, Y, W, X, Z, mu = world
    density = oracle.log_inverse_gamma
    noise = conditionals.noise_variance(NOISE, Y.size, np.square(Y - mu - X @ W.T).sum())
    shared, each = (conditionals.latent_variance(WEAK, X, Z, each) for each in (False, True))
    for given, prior, of_data, points in (
        (noise, NOISE, lambda s: oracle.log_data(Y, W, X, Z, mu, s), (0.7, 1.9)),
        (shared, WEAK, lambda t: oracle.log_scores(X, Z, t), (0.6, 1.7)),
        (each, WEAK, lambda t: oracle.log_scores(X, Z, t), rng.uniform(0.5, 2, (2, KK))),
        (
            *(conditionals.noise_variance(WEAK, W.size, np.square(W).sum()), WEAK),
            *(lambda v: stats.norm.logpdf(W, 0, np.sqrt(v)).sum(), (0.6, 1.7)),
        ),
    ):
        first, second = points
        left = density(first, *given) - density(second, *given)
        right = of_data(first) + density(first, *prior) - of_data(second) - density(second, *prior)
        assert left == pytest.approx(right, abs=1e-10)


@pytest.mark.parametrize("prior_variance", [0.8, np.inf])
def test_mean_has_the_ratios_of_the_joint(world, prior_variance):
    rng, Y, W, X, Z, _ = world
    given = conditionals.mean((Y - X @ W.T).sum(axis=0), len(Y), 0.9, prior_variance)
    same_ratio(
        lambda mu: stats.norm.logpdf(mu, given.mean, np.sqrt(given.variance)).sum(),
        lambda mu: (
            oracle.log_data(Y, W, X, Z, mu, 0.9) - np.square(mu).sum() / (2 * prior_variance)
        ),
        *rng.normal(size=(2, D)),
    )


def test_loadings_have_the_ratios_of_the_joint(world):
    rng, Y, _, X, Z, mu = world
    given = conditionals.loadings((Y - mu).T @ X, X.T @ X, 0.9, 1.4)
    same_ratio(
        lambda W: -0.5 * np.einsum("dk,kj,dj", W - given.mean, given.precision, W - given.mean),
        lambda W: (
            oracle.log_data(Y, W, X, Z, mu, 0.9) + stats.norm.logpdf(W, 0, np.sqrt(1.4)).sum()
        ),
        *rng.normal(size=(2, D, KK)),
    )


def test_scales_have_the_ratios_of_the_joint_along_the_orbit(world):
    _, _, W, X, Z, _ = world
    p, a, b = conditionals.scales(W, X, Z, 1.4, 0.8)

    def joint(k, u):
        c = np.exp(u / 2)
        log_w = stats.norm.logpdf(c * W[:, k], 0, np.sqrt(1.4)).sum()
        log_x = stats.norm.logpdf(X[Z[:, k], k] / c, 0, np.sqrt(0.8)).sum()
        return log_w + log_x + (D - Z[:, k].sum()) * u / 2

    for k in range(KK):
        same_ratio(
            lambda u, k=k: p[k] * u - (a[k] * np.exp(u) + b[k] * np.exp(-u)) / 2,
            lambda u, k=k: joint(k, u),
            *(0.7, -1.1),
        )


def test_alpha_and_weights_have_the_ratios_of_the_joint(world):
    rng, Z = world[0], world[4]
    prior, (pi, other) = Gamma(2.0, 1.3), rng.uniform(0.05, 0.95, (2, KK))
    given = conditionals.alpha_finite(prior, np.log(pi))
    same_ratio(
        lambda a: oracle.log_gamma(a, *given),
        lambda a: stats.beta.logpdf(pi, a / KK, 1).sum() + oracle.log_gamma(a, *prior),
        *(0.7, 2.1),
    )
    weights = conditionals.log_weights(Z.sum(axis=0), N, 1.1, KK)
    same_ratio(
        lambda pi: stats.beta.logpdf(pi, weights.a, weights.b).sum(),
        lambda pi: (
            np.where(Z, np.log(pi), np.log1p(-pi)).sum() + stats.beta.logpdf(pi, 1.1 / KK, 1).sum()
        ),
        *(pi, other),
    )


@pytest.mark.parametrize(("p", "a", "b"), [(2.0, 3.0, 1.0), (-40.0, 0.5, 90.0), (0.0, 1e-3, 1e-3)])
def test_scale_moves_keep_their_density(seed, p, a, b):
    rng, grid = np.random.default_rng(seed), np.linspace(-20, 20, 40_001)
    log_density = p * grid - (a * np.exp(grid) + b * np.exp(-grid)) / 2
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    cdf /= cdf[-1]
    start = np.interp(rng.random(4000), cdf, grid)
    # the orbit seen from a point c: w is c times as long, x is 1 / c times as long
    given = conditionals.LogScale(np.full(4000, p), a * np.exp(start), b * np.exp(-start))
    moved = start + conditionals.draw_log_scales(rng, given)
    assert stats.kstest(moved, lambda u: np.interp(u, grid, cdf)).pvalue > 1e-5
    assert (moved != start).mean() > 0.1


def test_alpha_of_the_truncated_buffet_is_in_detailed_balance(world):
    Z = world[4]
    prior, old, new = Gamma(2.0, 1.3), 3.0, 5.0
    proposal = conditionals.alpha_infinite(prior, int(Z.any(axis=0).sum()), N)
    log_accept = np.log(conditionals.alpha_acceptance(old, new, N, KK))

    def joint(a):
        return oracle.log_truncated_buffet(Z, a) + oracle.log_gamma(a, *prior)

    left = log_accept + oracle.log_gamma(new, *proposal) - oracle.log_gamma(old, *proposal)
    assert left == pytest.approx(joint(new) - joint(old), abs=1e-10)
    # at this alpha the truncation matters, so leaving Q out would show
    assert abs(log_accept) > 0.5


def test_rows_are_drawn_with_the_inverse_of_the_precision(seed):
    rng = np.random.default_rng(seed)
    precision = np.array([[2.0, 0.9, -0.6], [0.9, 1.0, 0.1], [-0.6, 0.1, 1.5]])
    mean = np.tile([1.0, -2.0, 0.5], (40_000, 1))
    rows = conditionals.draw_rows(rng, conditionals.RowNormal(mean, precision))
    wanted = np.linalg.inv(precision)
    # standard error of a covariance entry: sqrt((c_ij^2 + c_ii c_jj) / n)
    error = np.sqrt((wanted**2 + np.outer(wanted.diagonal(), wanted.diagonal())) / len(rows))
    assert (np.abs(np.cov(rows.T) - wanted) < 5 * error).all()
    # the factor of the wrong side has another covariance: the check would see it
    L = np.linalg.cholesky(precision)
    swapped = np.linalg.inv(L.T @ L)
    assert (np.abs(swapped - wanted) > 10 * error).any()
    assert rows.mean(axis=0) == pytest.approx(mean[0], abs=5 * np.sqrt(wanted.max() / len(rows)))


def test_draws_of_variances_and_weights_follow_their_distributions(seed):
    rng, given = np.random.default_rng(seed), InverseGamma(np.full(4000, 3.0), np.full(4000, 2.0))
    drawn = conditionals.draw_inverse_gamma(rng, given)
    assert stats.kstest(drawn, stats.invgamma(3.0, scale=2.0).cdf).pvalue > 1e-5
    for a, b in ((2.5, 1.5), (0.3, 4.0), (1e-4, 1.0)):
        given = conditionals.LogBeta(np.full(4000, a), np.full(4000, b))
        draws = conditionals.draw_log_beta(rng, given)
        assert np.isfinite(draws).all()
        # of log pi, also where pi itself underflows: I_x(a, 1) = x^a
        of_power, of_beta = np.exp(a * draws), stats.beta.cdf(np.exp(draws), a, b)
        assert stats.kstest(of_power if b == 1.0 else of_beta, "uniform").pvalue > 1e-5


def test_prior_densities_agree_with_scipy():
    found = [conditionals.log_density(NOISE, 0.8)]
    found.append(conditionals.log_gamma_density(Gamma(2.0, 1.3), 0.8))
    wanted = [oracle.log_inverse_gamma(0.8, *NOISE), oracle.log_gamma(0.8, 2.0, 1.3)]
    assert found == pytest.approx(wanted, abs=1e-12)


SIGMA2, TAU2 = 0.6, 1.3
VARIANCES = (SIGMA2, TAU2)
LEAST_P = 1e-5


def small_world(seed, n_rows=3, n_components=2, n_features=4):
    rng = np.random.default_rng(seed)
    W, Y = rng.normal(size=(n_features, n_components)), rng.normal(size=(n_rows, n_features)) * 1.5
    Y.flags.writeable = False  # as in a fit, whose kernels are compiled already
    return rng, W, Y


def tableau(W, y, z):
    T, A = np.empty((W.shape[1], W.shape[1] + 1)), gibbs_kernels.precision(W.T @ W, VARIANCES)
    gibbs_kernels.fill(T, A, y @ W / SIGMA2, z, TAU2)
    return T


def log_row(y, W, z):
    return low_rank.log_density(y, W[:, z], 0.0, SIGMA2, TAU2)


def test_gain_is_the_ratio_of_dense_densities_inside_and_outside(seed):
    rng, W, Y = small_world(seed, n_components=5, n_features=4)  # K > D as well
    for y in Y:
        z = rng.random(5) < 0.5
        T = tableau(W, y, z)
        for k in range(5):
            on, off = z.copy(), z.copy()
            on[k], off[k] = True, False
            wanted = log_row(y, W, on) - log_row(y, W, off)
            assert gibbs_kernels.increment(T, k, z[k], TAU2) == pytest.approx(wanted, abs=1e-10)


def test_gains_of_a_set_add_up_to_its_dense_density(seed):
    rng, W, Y = small_world(seed, n_rows=8, n_components=4)
    Z = rng.random((8, 4)) < 0.5
    compiled = gibbs_kernels.support_increments(Z, W.T @ W, Y @ W, VARIANCES)
    gains = scores_given(Y @ W / SIGMA2, Z, CollapsedModel(W.T @ W / SIGMA2, 1.0 / TAU2))[1]
    nobody = np.zeros(4, dtype=bool)
    wanted = [log_row(y, W, z) - log_row(y, W, nobody) for y, z in zip(Y, Z, strict=True)]
    close(gains, wanted, atol=1e-10)
    close(compiled, wanted, atol=1e-10)


@pytest.mark.parametrize("kappa", [0, 1, 3])
def test_gain_of_new_columns_is_the_ratio_of_dense_densities(seed, kappa):
    rng, W, Y = small_world(seed, n_components=4)
    V, z = rng.normal(size=(kappa, 4)), np.array([True, False, True, False])
    with_new = np.hstack([W[:, z], V.T])
    wanted = log_row(Y[0], with_new, np.ones(2 + kappa, dtype=bool)) - log_row(Y[0], W, z)
    T, Wt = tableau(W, Y[0], z), np.ascontiguousarray(W.T)
    found = gibbs_kernels.singletons_increment(T, z, Wt, V, Y[0], VARIANCES)
    assert found == pytest.approx(wanted, abs=1e-10)


def replacement_error(kernels, seed):
    """Log ratio of a replacement against dense densities; columns 1 and 4 are singletons."""
    rng, W, Y = small_world(seed, n_components=5, n_features=4)
    z, others = np.array([True, True, False, True, True]), np.array([1, 0, 2, 2, 0])
    V, kept = rng.normal(size=(2, 4)), W[:, z & (others > 0)]
    wanted = log_row(Y[0], np.hstack([kept, V.T]), np.ones(4, dtype=bool)) - log_row(Y[0], W, z)
    Wt, T = np.ascontiguousarray(W.T), tableau(W, Y[0], z)
    ratio, singletons = kernels.replace_singletons(T, z.copy(), others, V, Y[0], VARIANCES, Wt)
    equal(singletons, z & (others == 0))
    return abs(ratio - wanted)


def test_singletons_are_weighed_against_the_proposal_by_dense_densities(seed, tmp_path):
    assert replacement_error(gibbs_kernels, seed) < 1e-10
    for old, new in (
        ("            z[k] = False\n    if (others", "    if (others"),  # the singletons left in
        ("V, y, v) - before, singletons\n", "V, y, v), singletons\n"),  # the old for nothing
    ):
        kernels = broken_kernels(gibbs_kernels.__name__, old, new, tmp_path, f"broken_{len(new)}")
        assert replacement_error(kernels, seed) > 0.01


def test_scores_are_drawn_from_their_posterior(seed):
    rng, W, Y = small_world(seed, n_components=4, n_features=5)
    z = np.array([True, False, True, True])
    T, x = tableau(W, Y[0], z), np.empty((20_000, 4))
    scratch = np.empty((4, 4))
    for row in x:
        gibbs_kernels.draw_scores(T, z, rng.standard_normal(4), row, scratch)
    active = W[:, z]
    covariance = np.linalg.inv(np.eye(3) / TAU2 + active.T @ active / SIGMA2)
    mean, spread = covariance @ active.T @ Y[0] / SIGMA2, np.sqrt(covariance.diagonal())
    assert (x[:, 1] == 0).all()
    assert (np.abs(x[:, z].mean(axis=0) - mean) < 5 * spread / np.sqrt(len(x))).all()
    error = np.sqrt((covariance**2 + np.outer(spread, spread) ** 2) / len(x))
    assert (np.abs(np.cov(x[:, z].T) - covariance) < 5 * error).all()


def likely(W, Y, variances=VARIANCES):
    """log p(y | z) of the rows of an indicator matrix, summed."""
    return lambda Z: sum(
        low_rank.log_density(y, W[:, z], 0.0, variances[0], TAU2) for y, z in zip(Y, Z, strict=True)
    )


def p_value(rng, states, log_weight, scan, n_draws):
    """P-value of a chi-square test that `scan`, which changes Z in place, keeps exp(log_weight)."""

    def step(rng, Z):
        scan(rng, Z)
        return Z

    states = list(states)
    log_weights = np.array([log_weight(Z) for Z in states])
    return oracle.stationary_p_value(rng, states, log_weights, step, n_draws)


def finite_p_value(seed, kernels, n_draws=30_000):
    rng, W, Y = small_world(seed)
    X, Wt, own, (_, D) = np.empty((3, 2)), np.ascontiguousarray(W.T), likely(W, Y), Y.shape
    centred, none = (Y, np.zeros(D), Y @ W), (np.zeros(3, np.int64), np.empty((0, D)))
    order = np.tile(np.arange(2), (3, 1))

    def scan(rng, Z):
        numbers = (rng.random((3, 3)), rng.normal(size=(3, 2)), order)
        kernels.scan(Z, X, Wt, centred, VARIANCES, 1.2 / 2, none, numbers)

    states = oracle.every_binary_matrix(3, 2)
    return p_value(rng, states, lambda Z: oracle.log_finite(Z, 1.2) + own(Z), scan, n_draws)


def existing_p_value(seed, kernels, n_draws=20_000):
    # two columns that nearly agree, at little noise: they compete, so that the order matters
    W, Y = np.array([[1.0, 0.8, -0.9], [0.2, 0.6, 0.4]]), np.array([[1.2, 0.9]])
    others, variances = np.array([1, 2, 1]), (SIGMA2 / 6, TAU2)
    prior, own = np.log(others) - np.log(3 - others), likely(W, Y, variances)
    A, beta = gibbs_kernels.precision(W.T @ W, variances), Y[0] @ W / variances[0]
    T = np.empty((3, 4))

    def scan(rng, Z):
        gibbs_kernels.fill(T, A, beta, Z[0], TAU2)
        order, uniforms = rng.permutation(3), rng.random(3)
        kernels.visit(T, Z[0], np.zeros(3), prior, 1.0, uniforms, TAU2, order)

    rng, states = np.random.default_rng(seed), oracle.every_binary_matrix(1, 3)
    return p_value(rng, states, lambda Z: own(Z) + (prior * Z).sum(), scan, n_draws)


def by_history(Z):
    """Put the columns into the order of their bits: slots of the infinite model are nameless."""
    return np.ascontiguousarray(Z[:, np.lexsort(Z)[::-1]])


def infinite_p_value(seed, kernels, n_draws=30_000):
    """Z from its prior and W and Y given Z; a whole scan must leave the prior of Z alone.

    Every start is a fresh draw of the joint of Z, W and Y, so that what the scan makes of it must
    be one too. Columns are nameless: the states are the classes of matrices of equal columns.
    """
    rng, alpha, (N, K, D) = np.random.default_rng(seed), 3.0, (3, 3, 2)
    classes = {}
    for Z in oracle.every_binary_matrix(N, K):
        log_p, ordered = oracle.log_truncated_buffet(Z, alpha), by_history(Z)
        total = classes.setdefault(ordered.tobytes(), [ordered, -np.inf])
        total[1] = np.logaddexp(total[1], log_p)
    states, log_weights = zip(*classes.values(), strict=True)
    variances, X = (0.3, TAU2), np.empty((N, K))

    def step(rng, Z):
        Wt = rng.normal(size=(K, D)) * Z.any(axis=0)[:, None]
        signal = (np.sqrt(TAU2) * rng.normal(size=(N, K)) * Z) @ Wt
        Y = signal + np.sqrt(0.3) * rng.normal(size=(N, D))
        Y.flags.writeable = False
        kappa = rng.poisson(alpha / N, N)
        proposal = (kappa, rng.normal(size=(kappa.sum(), D)))
        order = rng.permuted(np.tile(np.arange(K), (N, 1)), axis=1)
        numbers = (rng.random((N, K + 1)), rng.normal(size=(N, K)), order)
        centred = (Y, np.zeros(D), Y @ Wt.T)
        kernels.scan(Z, X, Wt, centred, variances, 0.0, proposal, numbers)
        return by_history(Z)

    return oracle.stationary_p_value(rng, states, np.array(log_weights), step, n_draws)


def scores_p_value(seed, states, log_prior, scan, n_draws, spread=1.5):
    """P-value of a scan of rows whose components are decided by logits alone."""
    rng, states = np.random.default_rng(seed), list(states)
    logits = rng.normal(size=states[0].shape) * spread
    return p_value(
        *(rng, states, lambda Z: log_prior(Z) + (logits * Z).sum()),
        *(lambda rng, Z: scan(rng, Z, logits), n_draws),
    )


def buffet_p_value(seed, kernels, n_draws=30_000):
    def scan(rng, Z, logits):
        kernels.scan_columns(Z, logits, 0.0, np.log(1.4 / 3), rng.random((3, 4)))

    states, prior = oracle.every_binary_matrix(3, 3), lambda Z: oracle.log_truncated_buffet(Z, 1.4)
    return scores_p_value(seed, states, prior, scan, n_draws)


def beta_bernoulli_p_value(seed, kernels, n_draws=30_000):
    def scan(rng, Z, logits):
        kernels.scan_columns(Z, logits, 1.2 / 2, 0.0, rng.random((3, 2)))

    states, prior = oracle.every_binary_matrix(3, 2), lambda Z: oracle.log_finite(Z, 1.2)
    return scores_p_value(seed, states, prior, scan, n_draws)


def swap_p_value(seed, draw_order, n_draws=30_000):
    def scan(rng, Z, logits):
        gibbs_kernels.scan_swaps(Z, logits, draw_order(rng), rng.random((1, 3)))

    states = (Z for Z in oracle.every_binary_matrix(1, 5) if Z.sum() == 3)
    return scores_p_value(seed, states, lambda Z: 0.0, scan, n_draws, 0.5)


SCANS = {
    "finite": finite_p_value,
    "shared columns": existing_p_value,
    "beta-bernoulli": beta_bernoulli_p_value,
    "truncated": buffet_p_value,
    "swaps": lambda seed, _kernels: swap_p_value(seed, lambda rng: rng.permutation(3)[None]),
    "infinite": infinite_p_value,
}
THOROUGH = pytest.mark.thorough  # of which `test_gibbs` has the whole sweep


@pytest.mark.parametrize("name", [*list(SCANS)[:-1], pytest.param("infinite", marks=THOROUGH)])
def test_a_scan_keeps_the_posterior_of_z(name, seed):
    assert SCANS[name](seed, gibbs_kernels) > LEAST_P


def test_swaps_in_the_order_of_the_paper_do_not(seed):
    assert swap_p_value(seed, lambda _rng: np.arange(3)[None]) < LEAST_P


BROKEN_SCANS = {
    "odds with N - 1 - m": (finite_p_value, "np.log(N - others)", "np.log(N - 1 - others)"),
    "column order that depends on the state": (
        existing_p_value,
        "    for k in order:\n",
        "    for k in np.argsort(-1.0 * z):\n",
    ),
    "kept singletons deleted": (
        infinite_p_value,
        "                z |= singletons",
        "                singletons &= False",
    ),
    "at most one new column a row": (
        buffet_p_value,
        "t = draw_size(table[u], u, log_rate, U[n, K])",
        "t = min(draw_size(table[u], u, log_rate, U[n, K]), 1)",
    ),
    "unused columns not weighed by their places": (
        buffet_p_value,
        "t * log_rate + lgamma(u - t + 1.0) + last[t]",
        "t * log_rate + last[t]",
    ),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", BROKEN_SCANS)
def test_a_broken_scan_does_not_keep_the_posterior_of_z(name, seed, tmp_path):
    """Few draws show a gross fault; the last look has as many as the sound scans are held to."""
    p_value, old, new = BROKEN_SCANS[name]
    kernels = broken_kernels(gibbs_kernels.__name__, old, new, tmp_path, "broken_scan")
    with np.errstate(divide="ignore"):
        assert any(p_value(seed, kernels, n) < LEAST_P for n in (1000, 4000, 30_000))


def test_log_priors_of_z_agree_with_their_definitions(seed):
    rng = np.random.default_rng(seed)
    Z = rng.random((5, 4)) < 0.4
    Z[:, 2] = False
    labelled = conditionals.log_buffet(Z, 1.7, labelled=True)
    assert labelled == pytest.approx(oracle.log_truncated_buffet(Z, 1.7), abs=1e-10)
    finite = conditionals.log_beta_bernoulli(Z, 1.7)
    assert finite == pytest.approx(oracle.log_finite(Z, 1.7), abs=1e-10)
    total = [oracle.log_truncated_buffet(Z, 1.7) for Z in oracle.every_binary_matrix(2, 3)]
    assert np.exp(total).sum() == pytest.approx(1.0, abs=1e-12)


def test_the_number_of_columns_is_poisson_with_mean_alpha_times_the_harmonic_number():
    alpha, (N, K) = 0.8, (3, 4)
    number = np.zeros(K + 1)
    for Z in oracle.every_binary_matrix(N, K):
        number[Z.any(axis=0).sum()] += np.exp(conditionals.log_buffet(Z, alpha, labelled=True))
    poisson = stats.poisson.pmf(np.arange(K + 1), alpha * (1 + 1 / 2 + 1 / 3))
    close(number, poisson / poisson.sum(), rtol=1e-10)


@pytest.mark.parametrize("finite", [True, False])
def test_new_rows_expect_what_the_prior_of_one_more_row_says(finite, seed):
    rng, alpha = np.random.default_rng(seed), 1.7
    Z = rng.random((6, 4)) < 0.4
    Z[0] = True  # the buffet expects nothing of a column that is not there
    log_prior = oracle.log_finite if finite else oracle.log_truncated_buffet
    expected = conditionals.expected_beta_bernoulli if finite else conditionals.expected_buffet
    for k in range(4):
        with_row, without_row = np.zeros((2, 7, 4), dtype=bool)
        with_row[:6], without_row[:6] = Z, Z
        with_row[6, k] = True
        log_odds = log_prior(with_row, alpha) - log_prior(without_row, alpha)
        assert expected(Z, alpha)[k] == pytest.approx(1 / (1 + np.exp(-log_odds)), abs=1e-12)
