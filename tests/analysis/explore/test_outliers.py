"""T2 and Q: dense linear algebra by another route, and their quantiles on rows from the model."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from appca import AdaptivePPCA
from appca.analysis.fitted import DescribedRows, FittedModel
from appca.analysis.new_rows import verdict
from appca.analysis.rows import Distances, distances, limits_of
from appca.data.preprocessing import Preprocessing
from tests.fitted_runs import fitted_run

D, K, NOISE = 12, 5, 0.3
LEVELS = 0.95, 0.99, 0.999
TAU2 = np.array([4.0, 3.0, 2.0, 1.5, 1.0])


def run_of(W, active, Y, tau2=TAU2, noise=NOISE):
    """A run whose rows have the given sets: posterior means one row at a time."""
    scores, error = np.zeros(active.shape), np.empty(len(Y))
    for n, (y, S) in enumerate(zip(Y, active, strict=True)):
        A = W[S]
        C = A.T * tau2[S] @ A + noise * np.eye(W.shape[1])  # covariance of y
        scores[n, S] = tau2[S] * (A @ np.linalg.solve(C, y))
        error[n] = np.mean((y - scores[n] @ W) ** 2)
    rows = {"scores": scores, "error": error}
    return fitted_run(active, **rows, components=W, noise_variance=noise, latent_variance=tau2)


def drawn(rng, W, n, sizes=(2,)):
    active = np.zeros((n, K), dtype=bool)
    for row in active:
        row[rng.permutation(K)[: rng.choice(sizes)]] = True
    x = rng.normal(size=(n, K)) * np.sqrt(TAU2) * active
    return active, x @ W + rng.normal(size=(n, W.shape[1])) * np.sqrt(NOISE)


def orthonormal(rng):
    return np.linalg.qr(rng.normal(size=(D, K)))[0].T


@pytest.mark.parametrize("how", ["orthogonal", "leaning", "coinciding"])
def test_both_statistics_split_the_mahalanobis_distance_of_the_row(seed, how):
    rng = np.random.default_rng(seed)
    W = orthonormal(rng) if how == "orthogonal" else rng.normal(size=(K, D))
    W[1] = W[0] if how == "coinciding" else W[1]
    active, Y = drawn(rng, W, 40, sizes=(0, 1, 2, 4))
    found = distances(run_of(W, active, Y))
    for n, (y, S) in enumerate(zip(Y, active, strict=True)):
        A = W[S]
        C = A.T * TAU2[S] @ A + NOISE * np.eye(D)
        onto = np.linalg.pinv(A) @ A  # projector on the row's subspace
        off = y - onto @ y
        np.testing.assert_allclose(found.q[n], off @ off / NOISE, rtol=1e-9)
        whole = y @ np.linalg.solve(C, y)
        np.testing.assert_allclose(found.t2[n] + found.q[n], whole, rtol=1e-9)
        rank = np.linalg.matrix_rank(A) if S.any() else 0
        assert (found.inside[n], found.outside[n]) == (rank, D - rank)


@pytest.mark.parametrize("how", ["orthogonal", "leaning", "fitted"])
def test_rows_drawn_from_the_model_have_chi_square_statistics(seed, how):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(K, D)) if how == "leaning" else orthonormal(rng)
    found = distances(run_of(W, *drawn(rng, W, 1500)))
    if how == "fitted":
        Z = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])[rng.integers(3, size=3000)]
        Y = 100 * (rng.normal(size=(3000, 3)) * Z) @ W[:3] + rng.normal(size=(3000, D)) * 0.1
        found = distances(described_by(Y))
    n = len(found.t2)
    assert kstest(found.t2, chi2(2).cdf).pvalue > 1e-5
    assert kstest(found.q, chi2(D - 2).cdf).pvalue > 1e-5
    for level in LEVELS:
        above = (found.over(limits_of(found, level)) > 1).sum(axis=0)
        assert (np.abs(above - n * (1 - level)) < 5 * np.sqrt(n * level * (1 - level))).all()


def scaled_rows(rng, n=900, d=40):
    """Rows of which every tenth is bright; row 7 is a dark one, off every subspace."""
    W = np.linalg.qr(rng.normal(size=(d, d)))[0]
    Z = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])[rng.integers(3, size=n)]
    bright = np.arange(n) % 10 == 0
    Y = 10 * (rng.normal(size=(n, 3)) * Z) @ W[:3] + rng.normal(size=(n, d))
    Y *= np.sqrt(np.where(bright, 2.14, 0.49))[:, None]
    Y[7] += 25 * W[5]
    return Y, bright


def described_by(Y, **settings):
    model = AdaptivePPCA(n_components=3, n_active=2, random_state=0, **settings).fit(Y)
    rows = DescribedRows.from_description(model.describe(Y))
    return FittedModel.from_estimator(model, Preprocessing().fit(Y)).with_rows(rows)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("inference", ["em", "gibbs"])
def test_a_row_that_is_only_bright_is_not_unusual_where_rows_have_scales(inference, seed):
    Y, bright = scaled_rows(np.random.default_rng(seed))
    plain = verdict(distances(described_by(Y)), None)
    assert bright[plain.order[1:41]].mean() > 0.9
    how = {"burn_in": 20, "n_draws": 20} if inference == "gibbs" else {}
    scaled = distances(described_by(Y, row_scale="learned", inference=inference, **how))
    told = verdict(scaled, None)
    assert told.order[0] == 7
    assert told.ratios[7, 1] > 1.5
    assert 0.0 < bright[told.order[1:101]].mean() < 0.5
    others = np.arange(900) != 7
    assert kstest(scaled.t2[others], chi2(2).cdf).pvalue > 1e-5
    assert kstest(scaled.q[others], chi2(38).cdf).pvalue > 1e-5


@pytest.mark.parametrize(("by_feature", "d"), [(False, 4), (False, 12), (True, 6)])
def test_limits_with_row_scales_have_their_level(seed, by_feature, d):
    rng = np.random.default_rng(seed)
    values, p = np.array([0.1, 0.5, 2.0, 10.0]), np.array([0.2, 0.4, 0.3, 0.1])
    noise = np.ones(d) if by_feature else 0.3
    W = np.linalg.qr(rng.normal(size=(d, 2)))[0].T
    u = rng.choice(values, 40_000, p=p)
    x = rng.normal(size=(40_000, 2)) * np.sqrt([3.0, 1.0])
    Y = np.sqrt(u)[:, None] * (x @ W + np.sqrt(noise) * rng.normal(size=(40_000, d)))
    # The posterior by its definition: covariances as matrices, scales one by one.
    C = W.T * [3.0, 1.0] @ W + np.diag(np.broadcast_to(noise, d))
    R = np.einsum("nd,de,ne->n", Y, np.linalg.inv(C), Y)
    weight = p * values ** (-d / 2) * np.exp(-R[:, None] / (2 * values))
    scale = weight @ values / weight.sum(axis=1)
    scores = Y @ np.linalg.solve(C, W.T * [3.0, 1.0])
    run = fitted_run(
        np.ones((40_000, 2), bool),
        scores=scores,
        error=np.square(Y - scores @ W).mean(axis=1),
        components=W,
        noise_variance=noise,
        latent_variance=np.array([3.0, 1.0]),
        row_scales=scale,
        row_scale_values=values,
        row_scale_probabilities=p,
    )
    found = distances(run)
    for level in (0.5, *LEVELS):
        beyond = (found.over(limits_of(found, level)) > 1).mean(axis=0)
        tolerance = 0.003 * (1 - level) / 0.05 + 4 * np.sqrt(level * (1 - level) / 40_000)
        assert (np.abs(beyond[: 1 if by_feature else 2] - (1 - level)) < tolerance).all(), level


def test_limits_of_the_data_flag_the_share_asked_for(seed):
    rng = np.random.default_rng(seed)
    W = orthonormal(rng)
    active, Y = drawn(rng, W, 2000, sizes=(1, 3))
    heavy = Y * np.exp(rng.normal(size=(2000, 1)))  # not Gaussian at all
    found = distances(run_of(W, active, heavy))
    assert (found.over(limits_of(found, 0.99)) > 1).mean() > 0.1
    rows = np.flatnonzero(active[:, 0])
    limits = limits_of(found, 0.95, Distances(*(of_all[rows] for of_all in found[:4])))
    flagged = found.over(limits)[rows] > 1
    assert (np.abs(flagged.mean(axis=0) - 0.05) < 1.5 / len(rows)).all()


def test_rows_without_components_or_without_rest_are_never_flagged_for_it():
    active = np.array([[False] * 3, [True] * 3])
    Y = np.array([[1.0, 2.0, 3.0], [9.0, 9.0, 9.0]])
    found = distances(run_of(np.eye(3), active, Y, tau2=np.ones(3)))
    share = found.over(limits_of(found, 0.99))
    assert (share[[0, 1], [0, 1]] == 0).all()
    assert (share[[0, 1], [1, 0]] > 1).all()


def test_with_noise_per_feature_t2_is_in_noise_units_and_q_says_nothing(seed):
    rng = np.random.default_rng(seed)
    V, psi = orthonormal(rng), rng.uniform(0.2, 3.0, D)
    active, Y = drawn(rng, V, 30)
    plain = run_of(V, active, Y, noise=1.0)
    W = V * np.sqrt(psi)
    rows = {"scores": plain.scores, "error": plain.error}
    run = fitted_run(active, **rows, components=W, noise_variance=psi, latent_variance=TAU2)
    found = distances(run)
    np.testing.assert_allclose(found.t2, distances(plain).t2, rtol=1e-6)
    assert not found.outside.any()
    assert np.isinf(limits_of(found, 0.99)[:, 1]).all()
