"""Default fits against the best of many random starts, each a fit of its own."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models import climb


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("kind", "n", "k", "n_active", "init"),
    [(AdaptivePPCA, 200, 8, 2, "random"), (AdaptiveFactorAnalysis, 300, 6, 3, "random")],
)
def test_default_fits_of_few_rows_lose_nothing_to_random_starts(kind, n, k, n_active, init):
    X = load_digits().data[:n] / 16.0
    default = kind(k, n_active, random_state=0).fit(X).score(X)
    random = [kind(k, n_active, init=init, random_state=s).fit(X).score(X) for s in range(1, 11)]
    assert default > max(random) - 0.02


def test_more_random_rotations_climb_only_where_they_are_cheap(monkeypatch):
    X = load_digits().data[:200] / 16.0
    seen = []
    AdaptivePPCA(8, 2, random_state=0, callback=seen.append).fit(X)
    assert "screening 34 of 34: random rotation" in {progress.stage for progress in seen}
    monkeypatch.setattr(climb, "FEW_SUMS", 200 * 8 * 2 - 1)
    seen.clear()
    AdaptivePPCA(8, 2, random_state=0, callback=seen.append).fit(X)
    assert "screening 9 of 9: random rotation" in {progress.stage for progress in seen}


def test_factors_are_screened_from_several_starts_and_the_best_goes_on():
    X = load_digits().data[:300] / 16.0
    seen = []
    model = AdaptiveFactorAnalysis(6, 3, random_state=0, callback=seen.append).fit(X)
    stages = list(dict.fromkeys(progress.stage for progress in seen))
    assert stages[:3] == [
        "screening 1 of 26: ica",
        "screening 2 of 26: pca",
        "screening 3 of 26: random rotation",
    ]
    assert stages[-2:] == ["screening 26 of 26: random", "fit"]
    ends = {progress.stage: progress.log_likelihood for progress in seen}
    assert ends["fit"] >= max(ends.values()) - 1e-9
    powers = model.explained_variance_
    assert (np.diff(powers) <= 0).all()


@pytest.mark.thorough
def test_many_rows_screen_factors_on_a_sample_and_a_stop_leaves_a_complete_fit():
    rng = np.random.default_rng(0)
    Z = np.argsort(rng.random((9_000, 5)), axis=1) < 2
    X = (Z * rng.standard_normal((9_000, 5))) @ rng.standard_normal((5, 8))
    X += 0.1 * rng.standard_normal(X.shape) + 3.0
    seen = []
    model = AdaptiveFactorAnalysis(5, 2, random_state=0, callback=seen.append).fit(X)
    assert {"refinement on 2,500 rows", "fit"} <= {progress.stage for progress in seen}
    assert "screening 2 of 26: pca" in {progress.stage for progress in seen}
    alone = AdaptiveFactorAnalysis(5, 2, init="ica", random_state=0).fit(X)
    assert model.score(X) > alone.score(X) - 1e-3

    def stop(progress):
        if progress.stage.startswith("screening 3"):
            raise StopIteration

    stopped = AdaptiveFactorAnalysis(5, 2, random_state=0, callback=stop).fit(X)
    assert stopped.stop_reason_ == "stopped by the callback"
    assert stopped.n_iter_ == 1
    assert np.isfinite(stopped.score(X))


def test_fits_whose_supports_are_too_many_to_sum_cheaply_start_as_before():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12)) @ rng.standard_normal((12, 12))
    auto = AdaptiveFactorAnalysis(11, 5, random_state=0, max_iter=20)
    ica = AdaptiveFactorAnalysis(11, 5, init="ica", random_state=0, max_iter=20)
    for model in (auto, ica):
        model.fit(X)
    np.testing.assert_array_equal(auto.components_, ica.components_)


@pytest.mark.parametrize("kind", [AdaptivePPCA, AdaptiveFactorAnalysis])
def test_a_component_that_hardly_any_row_uses_is_warned_of(kind):
    """One row of 3,000 lies far out along a feature of its own, and gets a component for it."""
    rng = np.random.default_rng(0)
    X = 0.1 * rng.standard_normal((3000, 6))
    X[np.arange(3000), np.arange(3000) % 2] += rng.choice([-5.0, 5.0], 3000)
    X[0] = [0.0, 0.0, 0.0, 0.0, 0.0, 20.0]
    init = np.eye(6)[[0, 1, 5]] * 5.0
    with pytest.warns(UserWarning, match="under 0.1% of rows use: [123] of 3"):
        model = kind(3, 1, init=init, mean="zero", random_state=0).fit(X)
    assert (model.inclusion_probabilities(X).mean(axis=0) < 1e-3).sum() == 1
