"""What is published of chains: it must not depend on the unit of the data."""

from collections import Counter

import numpy as np
import pytest

from appca import FiniteSparseFA, InfiniteSparseFA, NonparametricPPCA

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
    highest = max(density, key=np.mean)
    counts = [chain.mean() >= highest.mean() - 3 * highest.std() for chain in density]
    numbers, density = numbers[counts], density[counts]
    often = Counter(numbers.ravel().tolist())
    usual = min(number for number in often if often[number] == max(often.values()))
    assert fit.n_components_ == usual
    place = np.where(numbers == usual, density, -np.inf).argmax()
    assert fit.noise_variance_ == fit.posterior_["noise_variance"][counts].ravel()[place]
