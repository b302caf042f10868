"""scikit-learn's estimator checks, by default for one configuration per class; a pipeline."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import appca
from appca import (
    PPCA,
    AdaptiveFactorAnalysis,
    AdaptivePPCA,
    FiniteSparseFA,
    InfiniteSparseFA,
    NonparametricPPCA,
    PearsonResiduals,
)

CHAIN = {"n_chains": 1, "burn_in": 2, "n_draws": 2}
ESTIMATORS = [
    AdaptivePPCA(2, 1, init="pca", random_state=0),
    PPCA(2),
    AdaptiveFactorAnalysis(2, 1, init="ica"),
    *(kind(2, **CHAIN) for kind in (NonparametricPPCA, FiniteSparseFA, InfiniteSparseFA)),
    PearsonResiduals(theta=100.0),
]
OTHERS = [
    AdaptivePPCA(2, 1, inference="gibbs", max_iter=20, **CHAIN),
    AdaptiveFactorAnalysis(2, 1, allocation="best"),
    AdaptiveFactorAnalysis(2, 1, inference="gibbs", **CHAIN),
]


def refused(estimator):
    """Checks that are expected to fail, with the reason: those that want weights, of chains."""
    if getattr(estimator, "inference", "em") != "gibbs":
        return {}
    names = ("s_pandas_series", "s_not_an_array", "s_list", "s_shape", "s_not_overwritten")
    names += ("_equivalence_on_dense_data",)
    return {f"check_sample_weight{name}": "chains take no weights" for name in names}


@pytest.mark.default_cases(100)
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.thorough
@parametrize_with_checks(OTHERS, expected_failed_checks=refused)
def test_scikit_learn_contract_of_other_configurations(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS[:2], ids=lambda model: type(model).__name__)
def test_it_works_in_a_pipeline_under_a_grid_search(estimator, seed):
    X = np.random.default_rng(seed).standard_normal((60, 5)) * np.arange(1, 6)
    name = f"{type(estimator).__name__.lower()}__n_components"
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    search = GridSearchCV(pipeline, {name: [1, 2]}, cv=2).fit(X)
    assert search.best_params_[name] in (1, 2)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_an_unknown_public_name_lists_those_there_are():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'; it has PPCA, Adaptive"):
        appca.Nothing  # noqa: B018
