"""What chains of factor analysis know of the rows by sums, against whole arrays."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from appca.models import conditionals, row_sums
from appca.models.products import data_of
from appca.models.rows import about, centre_of

N, D, K = 700, 9, 3


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def seen(request, seed):
    """A state of a chain, what it is to rows far from zero, and the rows about their origin."""
    rng = np.random.default_rng(seed)
    X = (100.0 + rng.standard_normal((N, D))).astype(request.param)
    origin = centre_of(X)
    state = SimpleNamespace(
        W=rng.standard_normal((D, K)),
        X=rng.standard_normal((N, K)) * (rng.random((N, K)) < 0.5),
        mu=0.3 * rng.standard_normal(D),
        sigma2=0.7,
    )
    data = data_of(about(X, origin))
    Y = X.astype(np.float64) - origin.astype(np.float64)
    return data, row_sums.look(data, state), Y


def test_projections_and_residual_are_those_of_the_centred_rows(seen):
    _, found, Y = seen
    state = found.state
    np.testing.assert_allclose(found.P, (Y - state.mu) @ state.W, rtol=1e-12, atol=1e-11)
    residual = Y - state.mu - state.X @ state.W.T
    assert found.squares == pytest.approx(np.square(residual).sum(), rel=1e-12)


def test_a_residual_of_nothing_is_not_negative():
    rng = np.random.default_rng(0)
    S, W = rng.standard_normal((50, 2)), rng.standard_normal((4, 2))
    data = data_of(about(S @ W.T, None))
    squares = row_sums.residual_squares(data, row_sums.crossed(data, S), W, np.zeros(4))
    assert 0.0 <= squares < 1e-12 * data.squares


def test_the_background_is_the_density_without_factors(seen):
    data, found, Y = seen
    wanted = stats.norm.logpdf(Y, found.state.mu, np.sqrt(found.state.sigma2)).sum()
    assert row_sums.background_of(data, found.state) == pytest.approx(wanted, rel=1e-12)


def test_loadings_given_sums_are_the_conditional_of_the_loadings(seen):
    data, found, Y = seen
    state = found.state
    mine = row_sums.loadings(row_sums.crossed(data, state.X), state.mu, 0.7, 1.3)
    R = Y - state.mu
    whole = conditionals.loadings(R.T @ state.X, state.X.T @ state.X, 0.7, 1.3)
    np.testing.assert_allclose(mine.mean, whole.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mine.precision, whole.precision, rtol=1e-12)
