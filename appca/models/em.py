"""One exact EM step of aPPCA (the paper's section 4 with X and Z integrated out).

    y_n = W (x_n * z_n) + mu + e_n,  W'W = I,  x_nk ~ N(0, tau2_k),  e_n ~ N(0, sigma2 I),
    z_n uniform over the L-subsets of 1..K

The mean is carried as mu = origin - W shift: the learned mean has that form after every step,
and the fixed ones are shift = 0.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from appca.models import gaussian, subsets
from appca.models.gaussian import Array
from appca.models.rows import Block, Rows, over_blocks

__all__ = ["Settings", "State", "Sums", "expect", "floor_of", "maximise", "step"]

NOISE_FLOOR = 1e-8  # of the mean feature variance: below it sigma2 is rounding, not noise


class State(NamedTuple):
    """Everything an EM step reads and writes."""

    W: Array  # (d, K) orthonormal columns
    shift: Array  # (K,) with mean = origin - W shift
    latent: Array  # (K,) latent variances tau2_k
    noise: float  # sigma2


class Settings(NamedTuple):
    """What stays fixed while EM climbs."""

    n_components: int  # K
    n_active: int  # L
    latent: Literal["shared", "component"] | float  # how latent variances are estimated, or fixed
    learn_mean: bool  # else the mean stays at the origin of the rows
    hard: bool  # rows wholly to their best subset (classification EM) instead of by posterior
    update: Callable[[Array, Array], Array]  # (A, previous W) -> argmax of tr(W'A)
    floor: float  # least variance


class Sums(NamedTuple):
    """Expected sufficient statistics of one pass over the rows."""

    log_likelihood: float  # total, nats
    A: Array  # (d, K) sum of (y - origin) s'
    s: Array  # (K,) sum of s, the posterior means of x * z
    second: Array  # (K,) sum of E[(x z)^2]
    used: Array  # (K,) sum of inclusion probabilities


def floor_of(rows: Rows) -> float:
    """Least variance allowed: a fixed share of the mean feature variance about the origin."""
    n, _ = rows.X.shape
    return float(NOISE_FLOOR * rows.squares.sum() / (n * rows.n_features))


def responsibilities(a: Array, settings: Settings, beta: float) -> tuple[Array, Array]:
    """Log weight (N,) of a row's subsets and inclusion r (N, K); hard: of the best subset alone.

    Tempered passes are soft under both: a hard assignment has no temperature.
    """
    if settings.hard and beta == 1.0:
        active = subsets.top(a, settings.n_active)
        return np.where(active, a, 0.0).sum(axis=1), active.astype(np.float64)
    return subsets.inclusion(a if beta == 1.0 else beta * a, settings.n_active)


def expect(state: State, rows: Rows, settings: Settings, beta: float = 1.0) -> Sums:
    """E step: posterior sums under `state` and its exact log-likelihood.

    r_nk = p(z_nk = 1 | y_n),  s_n = r_n * m_n,  m_nk = tau2_k/(tau2_k + sigma2) p_nk

    With hard assignment the log-likelihood is log p(Y, Z) at the best Z. `beta` below 1 tempers
    the subset logits (annealing); the log-likelihood then means nothing.
    """
    n, K = len(rows.X), state.W.shape[1]
    # Mean of |y - mu|^2. The cross term vanishes: where there is a shift, rows sum to their origin.
    spread = rows.squares.mean() + state.shift @ state.shift
    outside = float(gaussian.background(spread, state.noise, rows.n_features))
    outside -= gaussian.log_binomial(K, settings.n_active)
    sums = Sums(n * outside, np.zeros_like(state.W), np.zeros(K), np.zeros(K), np.zeros(K))
    work = partial(_expect_block, state=state, settings=settings, beta=beta)
    for part in over_blocks(work, rows):
        sums = _added(sums, part)
    return sums


def _added(a: Sums, b: Sums) -> Sums:
    return Sums(
        a.log_likelihood + b.log_likelihood,
        a.A + b.A,
        a.s + b.s,
        a.second + b.second,
        a.used + b.used,
    )


def _expect_block(block: Block, state: State, settings: Settings, beta: float) -> Sums:
    """Add up one block; its log-likelihood lacks what all rows have in common."""
    shrink, v = gaussian.posterior(state.noise, state.latent)
    P = block.times(state.W).astype(np.float64, copy=False) + state.shift
    log_e, r = responsibilities(gaussian.logits(P, state.noise, state.latent), settings, beta)
    P *= shrink
    S = r * P
    used = r.sum(axis=0)
    second = np.einsum("nk,nk->k", S, P) + used * v
    return Sums(float(log_e.sum()), block.transposed_times(S), S.sum(axis=0), second, used)


def maximise(sums: Sums, state: State, rows: Rows, settings: Settings) -> State:
    """M step: joint closed-form update of W, mean, tau2 and sigma2.

    W = argmax tr(W' sum (y - ybar)(s - sbar)'),  mu = ybar - W sbar,
    sigma2 = (sum |y - mu|^2 - 2 tr(W' sum (y - mu) s') + sum E[(x z)^2]) / (N D)

    The origin is ybar whenever the mean is learned, hence sum (y - ybar)(s - sbar)' = A and the
    sums about the new mean need no further pass.
    """
    n = len(rows.X)
    W = settings.update(sums.A, state.W)
    shift = sums.s / n if settings.learn_mean else np.zeros_like(sums.s)
    residual = rows.squares.sum() - 2.0 * np.sum(W * sums.A) - n * (shift @ shift)
    noise = float(residual + sums.second.sum()) / (n * rows.n_features)
    return State(W, shift, update_latent(sums, state, n, settings), max(noise, settings.floor))


def update_latent(sums: Sums, state: State, n: int, settings: Settings) -> Array:
    """tau2 = sum E[(x z)^2] / (N L), or per component / sum r_k; unused components keep theirs."""
    if settings.latent == "shared":
        tau2 = np.full_like(state.latent, sums.second.sum() / (n * settings.n_active))
    elif settings.latent == "component":
        some = sums.used > 1e-9 * n
        tau2 = np.where(some, sums.second / np.where(some, sums.used, 1.0), state.latent)
    else:
        return state.latent
    return np.maximum(tau2, settings.floor)


def step(state: State, rows: Rows, settings: Settings, beta: float = 1.0) -> tuple[float, State]:
    """Log-likelihood of `state` (total, nats) and the state one EM iteration later; pure."""
    sums = expect(state, rows, settings, beta)
    if not math.isfinite(sums.log_likelihood):
        return -math.inf, state
    return sums.log_likelihood, maximise(sums, state, rows, settings)
