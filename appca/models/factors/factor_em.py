"""One EM step of adaptive factor analysis (docs/mathematics.md 3.3).

The paper's algorithm 1, corrected:

    y_n = W (x_n * z_n) + mu + e_n,  x_nk ~ N(0, 1),  e_n ~ N(0, sigma2 I),  w_dk ~ N(0, sigma2_W),
    z_n uniform over the L-subsets of 1..K;  W is any D x K matrix

The factor variance is 1 because W carries the scale. The mean is mu = origin - W shift, as in `em`.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.rows.observations import Rows, project, transposed_product
from appca.models.supports import enumeration, row_blocks
from appca.models.supports.fixed_size_supports import ANNEALED, MANY
from appca.models.supports.row_supports import CollapsedModel, Members, RowSupports

PRIOR = 1.0  # 1 / tau2
MODE = np.array([math.inf])
DRAW = np.array([1.0])
# Share of rows, the worst explained ones, that search anew in every pass: not with many slots and
# factors, where single changes lead from any set to nearly the best (MNIST, K = 100, L = 50: four
# searches gained 0.1 of 1664 nats per row) and searches are dear.
WORST = 0.05
MAX_LOG_CHANGE = 1.0  # most sigma2 may change ahead of EM, in logs


class FactorState(NamedTuple):
    """Everything an EM step reads and writes."""

    W: Array  # (d, K)
    shift: Array  # (K,) with mean = origin - W shift
    noise: float  # sigma2


class FactorSettings(NamedTuple):
    """What stays fixed over the iterations of EM."""

    n_active: int  # L
    loading_variance: float  # sigma2_W; infinite: no prior on W
    learn_mean: bool  # else the mean stays at the origin of the rows
    floor: float  # least variance


class FactorStatistics(NamedTuple):
    """Expected sufficient statistics of one pass over the rows."""

    log_likelihood: float  # total, nats, with log p(W) if W has a prior
    B: Array  # (d, K) sum of (y - origin) E[x z]'
    s: Array  # (K,) sum of E[x z]
    second: Array  # (K, K) sum of E[(x z)(x z)']
    used: Array  # (K,) sum of inclusion probabilities


class ProjectedData(NamedTuple):
    """The rows as W sees them."""

    c: NDArray[np.float64]  # (N, K) W'(y - mu) / sigma2
    background: NDArray[np.float64]  # (N,) log density of a row that no factor explains
    model: CollapsedModel


def coefficients(state: FactorState, rows: Rows) -> ProjectedData:
    """Project the rows: all that their sets depend on.

    |y - mu|^2 = |y - origin|^2 + 2 shift'W'(y - origin) + |W shift|^2
    """
    G = (state.W.T @ state.W).astype(np.float64, copy=False)
    P = project(rows, state.W).astype(np.float64, copy=False)
    toward = G @ state.shift
    squares = rows.squares + 2.0 * (P @ state.shift) + state.shift @ toward
    background = gaussian.background(squares, state.noise, rows.n_features)
    return ProjectedData(
        (P + toward) / state.noise, background, CollapsedModel(G / state.noise, PRIOR)
    )


def expect_all(state: FactorState, rows: Rows, settings: FactorSettings) -> FactorStatistics:
    """E step over every set: exact posterior sums and the exact log-likelihood."""
    seen = coefficients(state, rows)
    t = enumeration.table(seen.model, settings.n_active)
    supports = enumeration.posterior(t, seen.c, rows.weights)
    total = float(rows.weighted(seen.background + supports.log_sum).sum())
    used = rows.weighted(supports.inclusion).sum(axis=0)
    return _sums(total, supports.H, supports.second, used, (state, rows, settings))


def expect_sets(
    rng: np.random.Generator,
    state: FactorState,
    rows: Rows,
    settings: FactorSettings,
    chosen: tuple[Members, Array | None],
    betas: Array = MODE,
) -> tuple[FactorStatistics, Members, Array]:
    """E step of classification EM: choose one support a row, then expect; for log p(Y, Z).

    `chosen` are members (N, L) so far (negative: none), and the log p(y_n | S_n) of the last pass;
    the rows where it was lowest are searched with annealing, because a support that explains its
    row badly is often a local mode of single changes. `betas` are of the sweeps over each row, see
    `row_blocks.search`: once to the mode; `DRAW` draws from the posterior by one Gibbs sweep.
    Returns statistics, members, and log p(y_n | S_n).
    """
    seen = coefficients(state, rows)
    members, log_conditional = chosen
    seeds = row_blocks.seeds(rng, len(members))
    few_slots = seen.c.shape[1] * members.shape[1] <= MANY
    if log_conditional is not None and betas is MODE and few_slots:
        order = np.argsort(log_conditional)
        counted = np.cumsum(rows.weighted(np.ones(rows.n))[order])
        worst = order[: int(np.searchsorted(counted, WORST * rows.mass)) + 1]
        few = RowSupports(seen.c[worst], members[worst], seeds[worst])
        members = members.copy()
        members[worst] = row_blocks.search(few, ANNEALED, seen.model, keep=True)[0]
    at = RowSupports(seen.c, members, seeds)
    members, moments = row_blocks.search(at, betas, seen.model, weights=rows.weights)
    log_conditional = seen.background + moments.value
    counts = rows.weighted(np.ones(members.shape))
    used = np.bincount(members.ravel(), counts.ravel(), minlength=len(seen.model.A))
    context, total = (state, rows, settings), float(rows.weighted(log_conditional).sum())
    return _sums(total, moments.H, moments.second, used, context), members, log_conditional


def _sums(
    total: float,
    H: Array,
    second: Array,
    used: Array,
    context: tuple[FactorState, Rows, FactorSettings],
) -> FactorStatistics:
    """Complete the sums: the prior of Z and of W, and what needs the rows; H (N, K) is E[x z]."""
    state, rows, settings = context
    K = state.W.shape[1]
    total -= rows.mass * gaussian.log_binomial(K, settings.n_active)
    H = rows.weighted(H)
    v = settings.loading_variance
    if math.isfinite(v):
        total -= 0.5 * rows.n_features * K * math.log(2.0 * math.pi * v)
        total -= 0.5 * float(np.square(state.W).sum()) / v
    return FactorStatistics(total, transposed_product(rows, H), H.sum(axis=0), second, used)


def maximise(
    sums: FactorStatistics, state: FactorState, rows: Rows, settings: FactorSettings
) -> FactorState:
    """M step: W, mean and sigma2 in closed form; monotone.

    With s = E[x z], bars for averages and M = sum E[(s - sbar)(s - sbar)'] over rows,

        W = B (M + sigma2/sigma2_W I)^-1,   mu = ybar - W sbar,
        sigma2 = (sum |y - ybar|^2 - 2 tr(W'B) + tr(W'W M)) / (N D).

    Without a prior on W, it is then stretched by the root of the factor variance that would have
    fitted best, tr sum E[(x z)(x z)'] / (N L): parameter expansion (Liu, Rubin and Wu 1998), which
    needs fewer iterations. A factor that no row uses keeps its column.
    """
    n = rows.mass
    mean = sums.s / n if settings.learn_mean else np.zeros_like(sums.s)
    M = sums.second - n * np.outer(mean, mean)
    free = not math.isfinite(settings.loading_variance)
    ridge = 0.0 if free else state.noise / settings.loading_variance
    some = sums.used > 1e-9 * n if free else np.ones(len(M), dtype=bool)
    W = state.W.copy()
    left = M[np.ix_(some, some)] + ridge * np.eye(int(some.sum()))
    W[:, some] = scipy.linalg.solve(left, sums.B[:, some].T, assume_a="pos").T
    squares = rows.total - 2.0 * np.sum(W * sums.B) + np.sum((W.T @ W) * M)
    noise = max(float(squares) / (n * rows.n_features), settings.floor)
    if free:
        stretch = math.sqrt(float(np.trace(sums.second)) / (n * settings.n_active))
        W, mean = W * stretch, mean / stretch
    return FactorState(W, mean, noise)


def extend(
    before: FactorState, now: FactorState, beta: float, settings: FactorSettings
) -> FactorState:
    """Take a momentum step, theta = now + beta (now - before), sigma2 in logs."""
    change = beta * math.log(now.noise / before.noise)
    noise = now.noise * math.exp(min(max(change, -MAX_LOG_CHANGE), MAX_LOG_CHANGE))
    W = now.W + beta * (now.W - before.W)
    shift = now.shift + beta * (now.shift - before.shift)
    return FactorState(W, shift, max(noise, settings.floor))
