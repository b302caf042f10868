"""A warm start on the same rows begins at the likelihood the fit before has reached."""

import numpy as np
import pytest

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from tests.models.synthetic import planted


def with_gaps(X, seed):
    Y = X.copy()
    Y[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return Y


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (AdaptivePPCA, {}),
        (AdaptivePPCA, {"mean": "sample", "latent_variance": "component"}),
        (AdaptivePPCA, {"mean": "zero", "accelerate": False}),
        (AdaptivePPCA, {"inference": "hard"}),
        (AdaptivePPCA, {"latent_variance": 1.0}),
        (AdaptiveFactorAnalysis, {}),
        (AdaptiveFactorAnalysis, {"mean": "zero", "loading_variance": 2.0}),
        (AdaptiveFactorAnalysis, {"allocation": "best"}),
    ],
)
def test_on_the_same_rows_the_likelihood_never_falls(kind, settings, seed):
    X = planted(500, 10, 5, 2, seed=seed, noise=0.5, offset=3.0).X
    model = kind(5, 2, random_state=0, tol=1e-8, **settings).fit(X)
    model.components_ = -model.components_[::-1]  # as nothing but a warm start would leave them
    model.latent_variance_ = model.latent_variance_[::-1]
    before, last = model.components_.copy(), model.log_likelihoods_[-1]
    model.set_params(warm_start=True).fit(X)
    assert (model.log_likelihoods_ >= last - 1e-7 * abs(last)).all()
    cosines = np.einsum("kd,kd->k", model.components_, before)
    assert (cosines > 0.9 * np.square(before).sum(axis=1)).all()


def test_the_rows_of_few_iterations_are_gone_on_with_thin_rows_included(seed):
    for n, d in ((60, 100), (400, 8)):
        X = planted(n, d, 4, 2, seed=seed, noise=0.4, offset=2.0).X
        model = AdaptivePPCA(4, 2, random_state=0, max_iter=3)
        with pytest.warns(UserWarning, match="max_iter"):
            model.fit(X)
        last = model.log_likelihoods_[-1]
        for _ in range(3):
            model.set_params(warm_start=True, max_iter=400).fit(X)
            assert model.log_likelihoods_[0] >= last - 1e-7 * abs(last)
            last = model.log_likelihoods_[-1]


def test_a_fit_around_gaps_is_gone_on_with(seed):
    X = with_gaps(planted(300, 8, 4, 2, seed=seed, noise=0.4, offset=2.0).X, seed)
    model = AdaptivePPCA(4, 2, random_state=0).fit(X)
    last = model.log_likelihoods_[-1]
    seen = []
    model.set_params(warm_start=True, callback=seen.append).fit(X)
    assert {progress.stage for progress in seen} == {"fit"}
    assert (model.log_likelihoods_ >= last - 1e-7 * abs(last)).all()
