"""Full conditionals of the Gibbs samplers, log priors of Z, and weights of new rows.

A conditional is a function that returns the *parameters* of a distribution, so that tests can
compare densities without drawing (Grosse and Duvenaud 2014). The equations are those of the paper's
appendix B, corrected. "The buffet" is the Indian buffet process conditioned on at most K used
columns. Orthonormal columns have labelled positions; other pairs (z_k, w_k) are an unordered set.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln, pdtr

Array = NDArray[np.float64]
Indicators = NDArray[np.bool_]

LEAST_WEIGHT = 1e-12  # weight of a draw's only column if no row uses it
SCALE_TAIL = 5.0  # degrees of freedom of the scale proposal, whose tails must be heavy


class Gamma(NamedTuple):
    """Density proportional to ``x ** (shape - 1) * exp(-rate * x)``."""

    shape: float
    rate: float


class InverseGamma(NamedTuple):
    """Density proportional to ``x ** (-shape - 1) * exp(-rate / x)``; entries may be arrays."""

    shape: float | Array
    rate: float | Array


class Normal(NamedTuple):
    """Independent normal entries with a common variance."""

    mean: Array
    variance: float


class RowNormal(NamedTuple):
    """Independent normal rows that share a precision matrix."""

    mean: Array  # (R, Q)
    precision: Array  # (Q, Q)


class LogBeta(NamedTuple):
    """Beta variables, of which only logarithms are needed."""

    a: Array  # (K,)
    b: Array  # (K,)


class LogScale(NamedTuple):
    """Density proportional to exp(p u - (a e^u + b e^-u) / 2) of u = log c^2, for every column."""

    p: Array  # (K,)
    a: Array  # (K,)
    b: Array  # (K,)


def noise_variance(prior: InverseGamma, n_entries: int, squares: float) -> InverseGamma:
    """Return p(sigma2 | Y, W, X, Z), given the number and the sum of squares of residuals.

    Given the entries of W instead of residuals, this is p(sigma2_W | W).
    """
    return InverseGamma(prior.shape + n_entries / 2, prior.rate + squares / 2)


def latent_variance(prior: InverseGamma, X: Array, Z: Indicators, each: bool) -> InverseGamma:
    """Return p(tau2 | X, Z), from active entries only; with `each`, one tau2 per component."""
    axis = 0 if each else None
    count, squares = Z.sum(axis=axis), np.square(X).sum(axis=axis, where=Z)
    return InverseGamma(prior.shape + count / 2, prior.rate + squares / 2)


def mean(total: Array, n_rows: float, sigma2: float, prior_variance: float) -> Normal:
    """Return p(mu | rest) from the sum (D,) of Y - (X*Z) W' over rows, with weights 1 / u."""
    precision = n_rows / sigma2 + 1 / prior_variance
    return Normal(total / sigma2 / precision, 1 / precision)


def loadings(cross: Array, second: Array, sigma2: float, sigma2_W: float) -> RowNormal:
    """Return p(W | rest) of independent rows, S = X*Z: cross = (Y - mu)'S, second = S'S."""
    precision = second / sigma2 + np.eye(len(second)) / sigma2_W
    return RowNormal(np.asarray(np.linalg.solve(precision, cross.T / sigma2).T), precision)


def scales(W: Array, X: Array, Z: Indicators, sigma2_W: float, tau2: float) -> LogScale:
    """Return the density of u = log c^2 along the orbits w_k -> c w_k, x_k -> x_k / c.

    p = (D - m_k) / 2 from the volume of the map, a = |w_k|^2 / sigma2_W, b = |x_k|^2 / tau2.
    """
    p = (len(W) - Z.sum(axis=0)) / 2
    a, b = np.square(W).sum(axis=0) / sigma2_W, np.square(X).sum(axis=0) / tau2
    return LogScale(p, np.asarray(a), np.asarray(b))


def shares(counts: NDArray[np.intp]) -> Array:
    """Return the parameters of p(shares | counts), a Dirichlet; the prior is uniform."""
    return np.asarray(1.0 + counts, np.float64)


def log_weights(m: NDArray[np.int64], n_rows: int, alpha: float, n_components: int) -> LogBeta:
    """Return p(pi_k | Z) of the finite model: Beta(m_k + alpha/K, N - m_k + 1)."""
    return LogBeta(np.asarray(m + alpha / n_components), np.asarray(n_rows - m + 1.0))


def alpha_finite(prior: Gamma, log_pi: Array) -> Gamma:
    """Return p(alpha | pi) over all K columns; pi_k has density (alpha/K) pi^(alpha/K - 1)."""
    K = len(log_pi)
    return Gamma(prior.shape + K, prior.rate - float(log_pi.sum()) / K)


def alpha_infinite(prior: Gamma, n_used: int, n_rows: int) -> Gamma:
    """Return p(alpha | Z) of the untruncated buffet (appendix B)."""
    return Gamma(prior.shape + n_used, prior.rate + harmonic(n_rows))


def alpha_acceptance(old: float, new: float, n_rows: int, max_components: int) -> float:
    """Return Q(old) / Q(new); the bound on K gives Q(alpha) = P(Poisson(alpha H_N) <= K_max)."""
    H = harmonic(n_rows)
    return float(pdtr(max_components, old * H) / pdtr(max_components, new * H))


def log_density(prior: InverseGamma, x: float | Array) -> float:
    """Return the log density of an inverse gamma prior at x, summed if x is an array."""
    shape, rate = prior.shape, prior.rate
    return float(np.sum(shape * np.log(rate) - gammaln(shape) - (shape + 1) * np.log(x) - rate / x))


def log_gamma_density(prior: Gamma, x: float) -> float:
    """Return the log density of a gamma prior at x."""
    terms = prior.shape * np.log(prior.rate) - gammaln(prior.shape) - prior.rate * x
    return float(terms + (prior.shape - 1) * np.log(x))


def harmonic(n: int) -> float:
    """Return H_n = 1 + 1/2 + ... + 1/n, the expected number of columns per unit of alpha."""
    return float((1 / np.arange(1, n + 1)).sum())


def draw_inverse_gamma(rng: Generator, law: InverseGamma) -> Array:
    """Draw from (an array of) inverse gamma distributions."""
    return np.asarray(law.rate / rng.gamma(law.shape))


def draw_normal(rng: Generator, law: Normal) -> Array:
    """Draw independent normal entries."""
    return np.asarray(law.mean + np.sqrt(law.variance) * rng.standard_normal(law.mean.shape))


def draw_rows(rng: Generator, law: RowNormal) -> Array:
    """Draw independent rows e inv(L) with precision L L', e standard normal."""
    L = np.linalg.cholesky(law.precision)
    return np.asarray(law.mean + np.linalg.solve(L.T, rng.standard_normal(law.mean.shape).T).T)


def draw_log_beta(rng: Generator, law: LogBeta) -> Array:
    """Draw log beta variables; log G(a) = log G(a + 1) + log(U) / a does not underflow."""
    log_first = np.log(rng.gamma(law.a + 1)) + np.log1p(-rng.random(law.a.shape)) / law.a
    return np.asarray(log_first - np.logaddexp(log_first, np.log(rng.gamma(law.b))))


def draw_categories(rng: Generator, p: Array) -> NDArray[np.intp]:
    """Draw a column index (N,) from each row of probabilities (N, J)."""
    reached = np.cumsum(p, axis=1) > rng.random((len(p), 1)) * p.sum(axis=1, keepdims=True)
    return np.asarray(reached.argmax(axis=1))


def draw_log_scales(rng: Generator, law: LogScale) -> Array:
    """Update u from 0 by a Metropolis-Hastings step with a Student proposal at the mode."""
    p, a, b = law
    root = np.sqrt(p * p + a * b)
    mode = np.where(p >= 0, np.log((p + root) / a), np.log(b / (root + np.abs(p))))
    width = 1 / np.sqrt(root)
    new = mode + width * rng.standard_t(SCALE_TAIL, mode.shape)

    def log_ratio(u: Array) -> Array:
        offered = -(SCALE_TAIL + 1) / 2 * np.log1p(np.square((u - mode) / width) / SCALE_TAIL)
        with np.errstate(over="ignore"):
            return np.asarray(p * u - (a * np.exp(u) + b * np.exp(-u)) / 2 - offered)

    accepted = np.log1p(-rng.random(new.shape)) < log_ratio(new) - log_ratio(np.zeros_like(new))
    return np.asarray(np.where(accepted, new, 0.0))


def draw_alpha_truncated(rng: Generator, prior: Gamma, alpha: float, Z: Indicators) -> float:
    """Update alpha of the buffet conditioned on at most Z.shape[1] columns."""
    n_rows, max_components = Z.shape
    law = alpha_infinite(prior, int(Z.any(axis=0).sum()), n_rows)
    new = float(rng.gamma(law.shape) / law.rate)
    return new if rng.random() < alpha_acceptance(alpha, new, n_rows, max_components) else alpha


def draw_alpha_finite(rng: Generator, prior: Gamma, alpha: float, Z: Indicators) -> float:
    """Update alpha of the finite model: draw pi given Z, then alpha given pi."""
    n_rows, n_components = Z.shape
    weights = log_weights(Z.sum(axis=0), n_rows, alpha, n_components)
    law = alpha_finite(prior, draw_log_beta(rng, weights))
    return float(rng.gamma(law.shape) / law.rate)


def log_buffet(Z: Indicators, alpha: float, labelled: bool) -> float:
    """Return log P(Z | alpha) of the buffet with at most K columns.

    P(Z) = alpha^K+ e^(-alpha H_N) prod (m_k - 1)! (N - m_k)! / N! / Q(alpha), times
    (K - K+)! / K! for `labelled` positions.
    """
    N, K = Z.shape
    m = Z.sum(axis=0)
    m, H = m[m > 0], harmonic(N)
    total = len(m) * np.log(alpha) - alpha * H - np.log(pdtr(K, alpha * H))
    total += (gammaln(m) + gammaln(N - m + 1) - gammaln(N + 1)).sum()
    if labelled:
        total += gammaln(K - len(m) + 1) - gammaln(K + 1)
    return float(total)


def log_beta_bernoulli(Z: Indicators, alpha: float) -> float:
    """Return log P(Z | alpha) with pi_k ~ Beta(alpha / K, 1) integrated out."""
    N, K = Z.shape
    m, a = Z.sum(axis=0), alpha / K
    each = np.log(a) + gammaln(m + a) + gammaln(N - m + 1) - gammaln(N + 1 + a)
    return float(each.sum())


def expected_buffet(Z: Indicators, _alpha: float) -> Array:
    """Return the probability m_k / (N + 1) that a new row uses column k."""
    return np.asarray(Z.sum(axis=0) / (len(Z) + 1))


def expected_beta_bernoulli(Z: Indicators, alpha: float) -> Array:
    """Return the probability (m_k + alpha/K) / (N + 1 + alpha/K) that a new row uses column k."""
    a = alpha / Z.shape[1]
    return np.asarray((Z.sum(axis=0) + a) / (len(Z) + 1 + a))
