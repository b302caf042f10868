"""The protocol of the likelihood benchmark, and its tables on made-up rows."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

from appca.models.variants.em import PSI_FLOOR
from benchmarks import densities, densities_reading


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((2, 6))
    return rng.standard_normal((300, 2)) @ W + rng.standard_normal((300, 6)) * 0.6


def test_factor_analysis_with_the_floor_is_scikit_learns_where_the_floor_is_below(X):
    one, other = densities.FlooredFactorAnalysis(2).fit(X), FactorAnalysis(2, tol=1e-8).fit(X)
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), atol=0.02)


def test_no_noise_variance_is_below_the_floor(X):
    X[:, 0] = 2.0 * X[:, 1]  # a factor that is a feature
    least = PSI_FLOOR * X.var(axis=0)
    analysis = densities.FlooredFactorAnalysis(2).fit(X)
    assert (analysis.model.noise_variance_ >= least * (1 - 1e-9)).all()
    assert analysis.model.noise_variance_[0] == pytest.approx(least[0])
    mixture = densities.FlooredMixture(2, 2, noise="diagonal", random_state=0).fit(X)
    assert (mixture.noise_variance_ >= least * (1 - 1e-9)).all()
    shared = densities.FlooredMixture(2, 5, random_state=0).fit(X)
    assert shared.noise_variance_.min() >= least.mean() * (1 - 1e-9)


def test_every_row_is_held_out_once_and_judged_by_rows_of_other_folds(X, monkeypatch):
    fitted = []

    class Normal:
        n_parameters_ = 7

        def fit(self, rows):
            fitted.append(rows)
            self.normal = multivariate_normal(rows.mean(axis=0), np.cov(rows.T))

        def score_samples(self, rows):
            return self.normal.logpdf(rows)

    class Nothing:
        def fit(self, rows):
            return self

        def transform(self, rows):
            return rows

    X[:, 3] *= 1e-3  # below 5% of the mean variance
    monkeypatch.setattr(densities, "methods", lambda *_: [densities.Method("normal", Normal)])
    one = densities.judged("wine", 0, X, Nothing(), 0.05)
    assert [rows.shape for rows in fitted] == [(200, 5)] * 3
    kept = X[:, [0, 1, 2, 4, 5]]
    for fold in range(3):
        train, test = kept[one.fold != fold], kept[one.fold == fold]
        wanted = multivariate_normal(train.mean(axis=0), np.cov(train.T)).logpdf(test)
        np.testing.assert_allclose(one.nats[one.fold == fold], wanted)
    found = {"normal": one, **dict.fromkeys(densities.REFERENCES, one)}
    beyond = densities.line("normal", found)["beyond"]["aPPCA"]
    assert (beyond["mean"], beyond["error"], beyond["folds"]) == (0.0, 0.0, [0.0, 0.0, 0.0])


def test_new_rows_take_the_place_of_those_of_the_same_data():
    rows = [
        {"data": data, "features": features, "nats": 0.0}
        for features in ("5%", "varying")
        for data in ("digits", "wine")
    ]
    new = [{"data": "wine", "features": "5%", "nats": 1.0}]
    merged = densities.merged(rows, new)
    assert [row["nats"] for row in merged] == [0.0, 1.0, 0.0, 0.0]
    assert [row["data"] for row in merged] == ["digits", "wine"] * 2


def made_up(data, nats, certainty=0.9):
    """Rows of a data set whose likelihoods are `nats` by method."""
    methods = densities_reading.PAPER, *densities_reading.OURS, *densities_reading.SHARED
    ours = dict.fromkeys(methods, 0.0) | nats
    return [
        {
            "data": data,
            "features": "5%",
            "rows": 100,
            "D": 5,
            "K": 3,
            "L": 2,
            "method": method,
            "parameters": 10,
            "nats": value,
            "certainty": None if method in nats and method not in methods else certainty,
            "used": 2.0,
            "beyond": {m: {"mean": value - ours[m], "error": 0.5} for m in methods},
            "fit_s": 0.1,
        }
        for method, value in ours.items()
    ]


def test_a_model_is_ahead_where_it_clears_every_rival_by_two_standard_errors():
    asked = dict.fromkeys(densities_reading.ASKED, 1.0)
    rows = made_up("near", asked | {"V + A + B": 1.9}) + made_up("far", asked | {"V + A + B": 2.1})
    rows += made_up("one", asked | {"V + A + B": 2.1, "PPCA, K": 1.2})
    judged = densities_reading.verdicts(rows)
    assert [v.clear("V + A + B") for v in judged] == [False, True, False]
    first, second, third = densities_reading.sentences(rows)
    assert "V + A + B on 1, V + A + B + C on 0 data sets of 3" in first
    assert "on 1 of 3, all but near, one." in first
    assert second.endswith("on 1 of 3 (far).")
    assert third.endswith("3 of 3.")
    text = densities_reading.summary(rows)
    assert "| far | V + A + B | +1.1 ± 0.5 |" in text
    assert "| near (3, 2) | 0" not in text


def test_both_choices_of_features_are_counted():
    asked = dict.fromkeys(densities_reading.ASKED, 1.0)
    rows = made_up("far", asked | {"V + A + B": 2.1})
    every = made_up("far", asked | {"V + A + B": 2.1}) + made_up("near", asked | {"V + A + B": 1.9})
    rows += [row | {"features": "varying"} for row in every]
    text = densities_reading.reading(rows)
    assert [line for line in text if line.startswith("With every feature but")] == [text[3]]
    assert "1 of 1, all but none." in text[0]
    assert "1 of 2, all but near." in text[4]


def test_features_that_vary_in_one_row_are_left_out_for_all(X):
    X[:, 2], X[:, 4] = np.arange(300) == 7, np.arange(300) % 100 == 7
    assert densities.kept(X, 1e-9).tolist() == [True, True, False, True, True, True]
