"""How long a chain must be to place a quantile: Raftery and Lewis (1992), the paper's choice.

The draws are turned into zeros and ones by whether they lie below their q-quantile. Thinned enough,
that sequence is close to a two-state Markov chain, whose mixing is known in closed form.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST_LENGTH = 10


class Goal(NamedTuple):
    """Estimate the q-quantile to within r of its probability, with probability s."""

    q: float = 0.025
    r: float = 0.005
    s: float = 0.95
    burn_in_error: float = 0.001  # largest distance from the stationary probability after burn-in


DEFAULT = Goal()


class Requirement(NamedTuple):
    """What a chain needs, in sweeps of that chain."""

    thin: int
    burn_in: int
    total: int  # sweeps to keep after burn-in
    least: int  # independent draws would need
    dependence: float  # (burn_in + total) / least; above 5 is a reason to worry
    enough: bool  # whether the chain was at least `least` long, so that the rest can be trusted


def least_draws(goal: Goal = DEFAULT) -> int:
    """Give the number of independent draws that reach the goal: 3,746 for the default one."""
    return math.ceil(goal.q * (1 - goal.q) * (_width(goal) / goal.r) ** 2)


def raftery_lewis(draws: ArrayLike, goal: Goal = DEFAULT) -> Requirement:
    """Judge one chain of a scalar, draws (n,).

    Raises ValueError when the draws are fewer than 10 or never change.
    """
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim != 1 or len(x) < LEAST_LENGTH or x.min() == x.max():
        msg = (
            f"draws must be one chain of at least {LEAST_LENGTH} numbers, not all the same; "
            f"got shape {x.shape}: pass a single quantity of a single chain."
        )
        raise ValueError(msg)
    below = x <= np.quantile(x, goal.q)
    if below.all():  # a discrete quantity may have its smallest value more often than q
        below = x <= x.min()
    thin = thinning(below)
    return required(*transition_rates(below[::thin]), len(x), thin, goal)


def thinning(below: NDArray[np.bool_]) -> int:
    """Find the smallest thinning at which the sequence remembers one step rather than two.

    By BIC: the likelihood ratio statistic of the second-order chain against the first-order one
    has 2 degrees of freedom and must fall below 2 log(n - 2).
    """
    thin = 1
    while True:
        z = below[::thin].astype(np.int64)
        if memory_statistic(z) < 2 * math.log(len(z) - 2):
            return thin
        following = below[:: thin + 1]
        if len(following) < LEAST_LENGTH or following.all() or not following.any():
            return thin  # nothing is left to thin
        thin += 1


def memory_statistic(z: NDArray[np.int64]) -> float:
    """Give G2 = 2 sum n_ijk log(n_ijk n_.j. / (n_ij. n_.jk)) over successive triples of states."""
    n = np.bincount(4 * z[:-2] + 2 * z[1:-1] + z[2:], minlength=8).reshape(2, 2, 2).astype(float)
    expected = (
        n.sum(axis=2, keepdims=True) * n.sum(axis=0) / np.maximum(n.sum(axis=(0, 2)), 1)[:, None]
    )
    seen = n > 0
    return float(2 * (n[seen] * np.log(n[seen] / expected[seen])).sum())


def transition_rates(z: NDArray[np.bool_]) -> tuple[float, float]:
    """Give the rates of leaving state 0 and state 1, (alpha, beta).

    A change that was never seen counts as half a one, or a stuck chain would ask for nothing.
    """
    before, after = z[:-1], z[1:]
    alpha = max((~before & after).sum(), 0.5) / max((~before).sum(), 1)
    beta = max((before & ~after).sum(), 0.5) / max(before.sum(), 1)
    return float(alpha), float(beta)


def required(
    alpha: float, beta: float, n_draws: int, thin: int = 1, goal: Goal = DEFAULT
) -> Requirement:
    """Turn the rates of a two-state chain into burn-in and length.

    The distance from stationarity falls like (1 - alpha - beta)^m, and the mean of n steps has
    variance alpha beta (2 - alpha - beta) / ((alpha + beta)^3 n).
    """
    both, memory = alpha + beta, abs(1 - alpha - beta)
    ratio = goal.burn_in_error * both / max(alpha, beta)
    steps = math.log(ratio) / math.log(memory) if 0 < memory < 1 else 0.0
    variance = alpha * beta * (2 - both) / both**3
    burn_in = math.ceil(steps) * thin
    total = math.ceil(variance * (_width(goal) / goal.r) ** 2) * thin
    least = least_draws(goal)
    return Requirement(thin, burn_in, total, least, (burn_in + total) / least, n_draws >= least)


def _width(goal: Goal) -> float:
    """Half-width of the central s of a standard normal."""
    return NormalDist().inv_cdf((goal.s + 1) / 2)
