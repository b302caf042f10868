"""The number of components: its posterior interval holds the truth on data drawn from the prior."""

import numpy as np
import pytest

from appca import FiniteSparseFA, InfiniteSparseFA, NonparametricPPCA
from tests.models.gibbs_oracles import draw_buffet

N, D, K_MAX, NOISE_SD = 80, 10, 9, 0.3


def draw_rows(rng, *, orthonormal):
    """Rows of the model, and how many columns they use.

    The law of Z, on which the number depends, is the prior of the fits below, alpha ~ Gamma(1, 1)
    included: the mean number alpha H_N = 5 alpha runs from none at all to the cut. The variances
    are numbers instead: their priors are made to the measure of the data, and weak.
    """
    alpha = rng.gamma(1.0)
    Z = draw_buffet(rng, alpha, N, K_MAX, labelled=orthonormal)
    W = rng.normal(size=(D, K_MAX))
    if orthonormal:
        W = 2 * np.linalg.qr(W)[0]
    signal = (rng.normal(size=Z.shape) * Z) @ W.T
    return signal + NOISE_SD * rng.normal(size=(N, D)), int(Z.any(axis=0).sum())


@pytest.mark.slow
@pytest.mark.parametrize("model", [NonparametricPPCA, InfiniteSparseFA])
def test_the_interval_holds_the_true_number_in_17_of_20_prior_draws(model, seed):
    held, truths, widths = 0, [], []
    for i in range(20):
        rng = np.random.default_rng([seed, i])
        Y, truth = draw_rows(rng, orthonormal=model is NonparametricPPCA)
        fit = model(K_MAX, mean="zero", burn_in=500, n_draws=1000, random_state=i).fit(Y)
        low, high = np.quantile(fit.posterior_["n_components"], [0.025, 0.975])
        held += low <= truth <= high
        truths.append(truth)
        widths.append(high - low)
    assert held >= 17
    # no interval would do for all of them, and most are short
    assert np.ptp(truths) >= 5
    assert np.median(widths) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("model", [FiniteSparseFA, InfiniteSparseFA])
def test_the_balanced_design_is_recovered_at_the_noise_floor(model):
    rng = np.random.default_rng(0)
    n, d, k = 1000, 50, 10
    W, Z = rng.normal(size=(d, k)), np.argsort(rng.random((n, k)), axis=1) < k // 2
    Y = (rng.normal(size=(n, k)) * Z) @ W.T + 0.1 * rng.normal(size=(n, d))
    fit = model(2 * k, burn_in=150, n_draws=50, random_state=0).fit(Y)
    V = fit.components_ / np.linalg.norm(fit.components_, axis=1, keepdims=True)
    cosine = np.abs(V @ (W / np.linalg.norm(W, axis=0)))
    assert cosine.max(axis=0).min() > 0.999
    error = np.square(Y - fit.inverse_transform(fit.transform(Y))).mean()
    # the least squares fit of five columns leaves 0.01 (1 - 5 / 50)
    assert error == pytest.approx(0.009, rel=0.05)
    assert (fit.allocate(Y)[:, cosine.argmax(axis=0)] == Z).mean() > 0.97
