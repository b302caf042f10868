"""The oracle against dense normal densities summed over every set."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from appca.data.sources.designs import draw_synthetic
from appca.studies.experiments.table1 import law_of, oracle, posterior_mean

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
