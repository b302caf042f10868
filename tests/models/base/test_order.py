"""Components in another order: the same model, whose queries answer in that order."""

import numpy as np
import pytest

from appca import AdaptiveFactorAnalysis, AdaptivePPCA, NonparametricPPCA
from appca.data.sources import load

X = load("wine").X.astype(np.float64)
X = (X - X.mean(axis=0)) / X.std(axis=0)
DRAWS = {"n_chains": 2, "burn_in": 3, "n_draws": 4, "random_state": 0}
SHORT = {"n_components": 4, "n_active": 2, "random_state": 0}
MODELS = {
    "EM": lambda: AdaptivePPCA(**SHORT),
    "Gibbs": lambda: AdaptivePPCA(**SHORT | DRAWS, inference="gibbs"),
    "factors": lambda: AdaptiveFactorAnalysis(**SHORT, n_init=1, max_iter=20),
    "growing": lambda: NonparametricPPCA(max_components=6, **DRAWS),
}


@pytest.fixture(params=MODELS, scope="module")
def fitted(request):
    return MODELS[request.param]().fit(X)


def test_queries_answer_in_the_new_order_and_arrays_are_permuted_to_the_bit(fitted):
    before = {name: np.array(value) for name, value in fitted.fitted_arrays().items()}
    draws = {name: np.array(value) for name, value in getattr(fitted, "posterior_", {}).items()}
    said = fitted.describe(X)
    K = len(fitted.components_)
    order, signs = np.roll(np.arange(K), 1), np.where(np.arange(K) % 2, 1, -1)
    assert fitted.reorder(order, signs) is fitted
    now = fitted.describe(X)
    np.testing.assert_array_equal(fitted.components_, before["components"][order] * signs[:, None])
    for name in ("latent_variance", "explained_variance", "scale"):
        np.testing.assert_array_equal(getattr(fitted, f"{name}_"), before[name][order])
    np.testing.assert_allclose(now.scores, said.scores[:, order] * signs, atol=1e-12)
    np.testing.assert_allclose(now.inclusion, said.inclusion[:, order], atol=1e-12)
    np.testing.assert_allclose(now.log_likelihood, said.log_likelihood, rtol=1e-12)
    assert np.array_equal(now.active, said.active[:, order])
    assert set(getattr(fitted, "posterior_", {})) == set(draws)
    for name, values in draws.items():
        seen = fitted.posterior_[name]
        if name == "components":
            np.testing.assert_array_equal(seen[:, :, :K], values[:, :, order] * signs[:, None])
        elif name in ("Z_mean", "weights"):
            np.testing.assert_array_equal(seen[:, :, :K], values[:, :, order])
        elif name == "X_mean":
            np.testing.assert_array_equal(seen[:, :, :K], values[:, :, order] * signs)
        elif name in ("log_posterior", "mean", "noise_variance"):
            np.testing.assert_array_equal(seen, values)
    back = np.argsort(order)
    fitted.reorder(back, signs[back])
    for name, value in fitted.fitted_arrays().items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize(
    ("order", "signs"), [([0, 1, 2], None), ([0, 1, 2, 2], None), ([3, 2, 1, 0], [1, 1, 0, 1])]
)
def test_what_is_no_order_is_refused_in_a_sentence(order, signs):
    model = MODELS["EM"]().fit(X)
    with pytest.raises(ValueError, match="order must have each number from 0 to 3 once, and signs"):
        model.reorder(order, signs)
