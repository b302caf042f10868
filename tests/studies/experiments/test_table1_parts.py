"""Parts of table 1: recovery of factors, the oracle, and the paper's printed numbers."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from appca.data.sources import draw_synthetic
from appca.models.draws import match
from appca.studies.table1 import (
    COLUMNS,
    PRINTED,
    errors,
    law_of,
    oracle,
    posterior_mean,
    printed,
    read,
    recovery,
)

K, L, D, SD = 4, 2, 6, 0.3


def log_prior(design: str, law, pattern: np.ndarray) -> float:
    if design == "balanced":
        return -np.log(6) if pattern.sum() == L else -np.inf
    if design in {"subspace", "single"}:
        at = np.flatnonzero((law.patterns == pattern).all(axis=1))
        return np.log(law.frequency[at[0]]) if len(at) else -np.inf
    pi = np.clip(law.popularity, 1e-6, 1 - 1e-6)
    return float(np.log(np.where(pattern, pi, 1 - pi)).sum())


@pytest.mark.parametrize("design", ["sparse", "dense", "subspace", "balanced", "single"])
def test_the_oracle_sums_over_every_set_the_design_allows(seed, design):
    rng = np.random.default_rng(seed)
    sizes = {"n_rows": 40, "n_features": D, "n_components": K, "n_active": L}
    truth = draw_synthetic(rng, design, **sizes, noise_sd=SD)
    law = law_of(design, truth.Z, L)
    patterns = np.array(list(itertools.product([False, True], repeat=K)))
    with np.errstate(divide="ignore"):
        joint = np.stack(
            [
                log_prior(design, law, pattern)
                + multivariate_normal.logpdf(
                    truth.Y, cov=(truth.W * pattern) @ truth.W.T + SD**2 * np.eye(D)
                )
                for pattern in patterns
            ]
        )
    told = oracle(truth.Y, truth, law)
    np.testing.assert_allclose(told.log_likelihood, logsumexp(joint, axis=0), rtol=1e-8)
    np.testing.assert_array_equal(told.Z, patterns[joint.argmax(axis=0)])
    assert told.method.startswith("exact")


def test_the_posterior_mean_is_ridge_regression_on_the_row_s_own_factors(seed):
    rng = np.random.default_rng(seed)
    truth = draw_synthetic(
        rng, "dense", n_rows=30, n_features=D, n_components=K, n_active=L, noise_sd=SD
    )
    H = posterior_mean(truth.Y, truth.W, truth.Z, SD)
    for y, z, h in zip(truth.Y, truth.Z, H, strict=True):
        W = truth.W[:, z]
        covariance = W @ W.T + SD**2 * np.eye(D)
        np.testing.assert_allclose(h[z], W.T @ np.linalg.solve(covariance, y), atol=1e-9)
        assert not h[~z].any()


def by_trying_all(truth: np.ndarray, found: np.ndarray) -> float:
    """Largest mean |cos| over all one-to-one pairings of K true with at least K found columns."""
    unit = [W / np.linalg.norm(W, axis=1, keepdims=True) for W in (truth, found)]
    cosine = np.abs(unit[0] @ unit[1].T)
    places = range(len(truth))
    return max(
        np.mean([cosine[i, p[i]] for i in places])
        for p in itertools.permutations(range(len(found)), len(truth))
    )


@pytest.mark.parametrize(("K", "M"), [(1, 1), (2, 4), (4, 4), (3, 5)])
def test_matching_is_the_best_of_all_permutations(seed, K, M):
    rng = np.random.default_rng(seed)
    truth, found = rng.standard_normal((K, 6)), rng.standard_normal((M, 6))
    left, right, _, cosine = match(truth, found)
    assert sorted(left) == list(range(K))
    assert len(set(right)) == K
    assert cosine.mean() == pytest.approx(by_trying_all(truth, found), abs=1e-12)


def test_order_sign_and_length_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    W, Z = rng.standard_normal((4, 7)), rng.random((50, 4)) < 0.5
    order = rng.permutation(4)
    found = (W * np.array([-2.0, 0.1, 3.0, -1.0])[:, None])[order]
    told = recovery(W, Z, found, Z[:, order])
    assert told.cosine_mean == pytest.approx(1.0)
    assert told.cosine_least == pytest.approx(1.0)
    assert told.z_right == 1.0


def test_wrong_indicators_surplus_factors_and_missing_ones_are_counted():
    W = np.eye(3)
    Z = np.zeros((10, 3), dtype=bool)
    Z[:, :2] = True
    flipped = Z.copy()
    flipped[0, 0] = False
    assert recovery(W, Z, W, flipped).z_right == pytest.approx(1 - 1 / 30)
    surplus = np.column_stack([Z, np.ones(10, dtype=bool)])
    wide = np.vstack([np.eye(3, 5), np.eye(5)[4]])
    told = recovery(np.eye(3, 5), Z, wide, surplus)
    assert told.z_right == pytest.approx(1 - 10 / 40)
    only = recovery(W, Z, W[:1], Z[:, :1])
    assert (only.cosine_mean, only.cosine_least) == (0.5, 0.0)
    assert only.z_right == pytest.approx(1 - 10 / 30)


def test_factors_that_no_or_hardly_any_row_uses_are_not_judged():
    W, Z = np.eye(3), np.zeros((1000, 3), dtype=bool)
    Z[:, 0] = True
    Z[:9, 1] = True  # 0.9% of the rows; the third is used by none
    found = np.array([[1.0, 0, 0], [0, 1, 1]])
    told = recovery(W, Z, found, Z[:, :2])
    assert told.cosine_least == 1.0
    assert told.z_right == 1.0


def test_errors_are_means_over_all_entries():
    Y = np.array([[1.0, -2.0], [0.0, 5.0]])
    assert errors(Y, np.zeros((2, 2))) == (2.0, 7.5)
    rng = np.random.default_rng(0)
    noise = 0.1 * rng.standard_normal((1000, 400))
    told = errors(noise, np.zeros_like(noise))
    assert told.absolute == pytest.approx(0.1 * np.sqrt(2 / np.pi), rel=5e-3)
    assert told.squared == pytest.approx(0.01, rel=1e-2)


BY_HAND = {
    "FA": ".012 .014 .012 .014 .012 .015 .088 .099 .012 .014",
    "fsFA": ".014 .018 .015 .018 .016 .018 .090 .101 .014 .019",
    "isFA": ".023 .042 .021 .042 .024 .046 .073 .970 .045 .075",
    "aFA Gibbs": ".014 .019 .012 .019 .013 .021 .047 .056 .015 .019",
    "aFA EM": ".011 .013 .011 .013 .012 .014 .034 .044 .012 .014",
}


def test_the_printed_numbers_are_those_of_the_paper():
    assert {name: [f"{v:.3f}"[1:] for v in row] for name, row in PRINTED.items()} == {
        name: line.split() for name, line in BY_HAND.items()
    }
    assert COLUMNS[6] == ("balanced", 10)


def test_the_slip_is_read_as_a_tenth_and_nothing_else_is_changed():
    assert read("isFA", "balanced", 20) == 0.097
    changed = [
        (name, place)
        for name in PRINTED
        for place in COLUMNS
        if read(name, *place) != printed(name, *place)
    ]
    assert changed == [("isFA", ("balanced", 20))]
    assert read(None, "balanced", 20) is None
