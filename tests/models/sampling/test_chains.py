"""What is published of chains: it must not depend on the unit of the data."""

from collections import Counter

import numpy as np
import pytest

from appca import AdaptivePPCA, FiniteSparseFA, InfiniteSparseFA, NonparametricPPCA
from appca.models.chains import levels

UNITS = [2.0**-10, 2.0**-5, 1.0, 2.0**5, 2.0**10]  # exact, so that chains make the same draws


def planted(seed=0, n_rows=90, n_features=6, n_components=3):
    rng = np.random.default_rng(seed)
    W = 3 * np.linalg.qr(rng.normal(size=(n_features, n_components)))[0]
    Z = rng.random((n_rows, n_components)) < 0.5
    return (rng.normal(size=Z.shape) * Z) @ W.T + 0.5 * rng.normal(size=(n_rows, n_features))


@pytest.mark.parametrize("kind", [InfiniteSparseFA, FiniteSparseFA, NonparametricPPCA])
def test_the_published_draw_does_not_depend_on_the_unit(kind):
    Y, short = planted(), {"n_chains": 2, "burn_in": 20, "n_draws": 25, "random_state": 0}
    fits = [kind(6, **short).fit(unit * Y) for unit in UNITS]
    for unit, fit in zip(UNITS, fits, strict=True):
        np.testing.assert_allclose(fit.noise_variance_ / unit**2, fits[2].noise_variance_)
        assert fit.n_components_ == fits[2].n_components_
        # another unit adds the same number to every density, however many components there are
        for name in ("log_posterior", "log_joint", "log_likelihood"):
            draws, known = fit.posterior_[name], fits[2].posterior_[name]
            np.testing.assert_allclose(draws - draws[0, 0], known - known[0, 0], atol=1e-5)
        lp = fit.to_arviz().sample_stats["lp"].values
        np.testing.assert_array_equal(lp, fit.posterior_["log_posterior"])


def test_the_published_draw_is_the_densest_of_the_usual_number_of_components():
    Y = 1e-3 * planted(n_rows=60)
    fit = InfiniteSparseFA(6, burn_in=20, n_draws=40, random_state=0).fit(Y)
    numbers, density = fit.posterior_["n_components"], fit.posterior_["log_posterior"]
    counts = fit.chain_levels_.counts
    numbers, density = numbers[counts], density[counts]
    often = Counter(numbers.ravel().tolist())
    usual = min(number for number in often if often[number] == max(often.values()))
    assert fit.n_components_ == usual
    place = np.where(numbers == usual, density, -np.inf).argmax()
    assert fit.noise_variance_ == fit.posterior_["noise_variance"][counts].ravel()[place]


def autoregressive(rng, n_chains, n_draws, memory, sd=14.0):
    """Stationary chains (chain, draw) that remember `memory` of the draw before."""
    chains = np.empty((n_chains, n_draws))
    chains[:, 0] = rng.normal(size=n_chains)
    for i in range(1, n_draws):
        fresh = np.sqrt(1 - memory**2) * rng.normal(size=n_chains)
        chains[:, i] = memory * chains[:, i - 1] + fresh
    return sd * chains


@pytest.mark.parametrize("memory", [0.0, 0.8])
@pytest.mark.parametrize("n_draws", [20, 500])
def test_chains_of_one_level_count_and_their_monte_carlo_error_says_so(memory, n_draws, seed):
    rng = np.random.default_rng(seed)
    counted = [levels(autoregressive(rng, 4, n_draws, memory)).counts.all() for _ in range(200)]
    assert np.mean(counted) > (0.9 if memory and n_draws < 100 else 0.97)


def test_a_peak_thirty_nats_lower_does_not_count_however_wide_the_draws_are(seed):
    density = autoregressive(np.random.default_rng(seed), 6, 500, 0.5)
    density[3:] -= [[31.0], [31.5], [113.0]]
    told = levels(density)
    assert density[0].std() > 11  # three of them are more than the gap
    np.testing.assert_array_equal(told.counts, [True] * 3 + [False] * 3)
    assert told.why.startswith("Averages use 3 of 6 chains: chains 4, 5, 6 had mean log-post")
    assert levels(density[:3]).why.startswith("Averages use all 3 chains: ")


def test_a_gap_of_less_than_three_nats_is_no_lower_peak():
    density = np.tile([0.0, 0.1], (2, 50)) - np.array([[0.0], [2.9]])
    assert levels(density).counts.all()
    assert not levels(density - np.array([[0.0], [0.2]])).counts.all()


def test_of_single_draws_only_those_near_the_highest_count():
    np.testing.assert_array_equal(levels(np.array([[0.0], [-2.0], [-40.0]])).counts, [1, 1, 0])


@pytest.mark.thorough
def test_digits_are_averaged_over_the_chains_of_the_highest_peak_alone():
    from sklearn.datasets import load_digits

    X = load_digits().data[:600] / 16
    model = AdaptivePPCA(5, 2, inference="gibbs", n_chains=6, n_draws=100, random_state=0)
    with pytest.warns(UserWarning, match=r"Averages use \d of 6 chains"):
        model.fit(X)
    told = model.chain_levels_
    assert set(model.query_draws_.chain) == set(np.flatnonzero(told.counts))
    means = model.posterior_["log_posterior"].mean(axis=1)
    assert (means.max() - means[told.counts]).max() < 8
    assert (means.max() - means[~told.counts]).min() > 20
