"""Priors that are parameters: one that is sharp enough decides, whatever the data say."""

import numpy as np
import pytest

from appca import (
    AdaptiveFactorAnalysis,
    AdaptivePPCA,
    FiniteSparseFA,
    InfiniteSparseFA,
    NonparametricPPCA,
)
from tests.models.sampling.test_chains import planted

SHORT = {"n_chains": 2, "burn_in": 3, "n_draws": 4, "random_state": 0}
SURE = 1e9
GIBBS = {"n_active": 1, "inference": "gibbs", "max_iter": 3}
MODELS = {
    AdaptivePPCA: GIBBS,
    AdaptiveFactorAnalysis: GIBBS,
    NonparametricPPCA: {},
    FiniteSparseFA: {},
    InfiniteSparseFA: {},
}
VARIANCES = {"noise": "noise_variance", "latent": "latent_variance", "loading": "loading_variance"}


def cases():
    for model, given in MODELS.items():
        priors = [prior for prior in VARIANCES if f"{prior}_shape" in model().get_params()]
        assert priors[0] == "noise"
        assert len(priors) == 2
        yield from ((model, given, prior) for prior in priors)


@pytest.mark.filterwarnings("ignore:max_components")
@pytest.mark.parametrize(("model", "given", "prior"), list(cases()))
@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_a_sharp_prior_of_a_variance_decides(model, given, prior, unit):
    """InvGamma(a, b v) with a mean of b v / (a - 1) and a coefficient of variation of a^-1/2."""
    Y = unit * planted(n_rows=40)
    v = np.square(Y - Y.mean(axis=0)).mean()
    priors = {f"{prior}_shape": SURE, f"{prior}_scale": 0.3 * SURE}
    fit = model(3, **given, **priors, **SHORT).fit(Y)
    np.testing.assert_allclose(fit.posterior_[VARIANCES[prior]], 0.3 * v, rtol=1e-3)


@pytest.mark.filterwarnings("ignore:max_components")
@pytest.mark.parametrize("model", [NonparametricPPCA, FiniteSparseFA, InfiniteSparseFA])
def test_a_sharp_prior_of_the_concentration_decides(model):
    fit = model(3, alpha_shape=0.7 * SURE, alpha_rate=SURE, **SHORT).fit(planted(n_rows=40))
    np.testing.assert_allclose(fit.posterior_["alpha"][:, 1:], 0.7, rtol=1e-3)


@pytest.mark.parametrize("name", ["noise_shape", "noise_scale", "loading_scale", "alpha_rate"])
def test_a_prior_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match=f"^{name} must be a number above 0; got 0.$"):
        InfiniteSparseFA(3, **{name: 0}).fit(planted())


@pytest.mark.parametrize("model", [NonparametricPPCA, FiniteSparseFA, InfiniteSparseFA])
def test_a_bound_that_every_draw_reaches_is_said(model):
    with pytest.warns(UserWarning, match=r"^max_components=1 is reached in every draw, so"):
        model(1, **SHORT).fit(planted(n_rows=40))
