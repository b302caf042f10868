"""Draws of chains, the choice of chains to average over, and label-free summaries of Z.

Components swap names and signs between draws, so draws must be aligned before averaging entries.
"""

import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from appca.words import naming_extra

Draws = dict[str, NDArray[Any]]

# Averages over the draws of a chain, (chain, N, K); all other arrays have the axes (chain, draw).
RUNNING = ("Z_mean", "X_mean")


class Measures(NamedTuple):
    """Measures of a state after every sweep."""

    log_likelihood: float  # nats, with as many variables as possible integrated out
    log_posterior: float  # nats, the same plus the log priors
    number: int = 0  # number of components, if it changes the number of parameters


LEAST_GAP = 3.0  # in nats: a mode e^3 times as probable dominates
BEYOND_ERROR = 0.999  # probability that Monte Carlo error causes no such gap
LEAST_DRAWS = 4  # minimum number of draws per chain to estimate an error


class ChainLevels(NamedTuple):
    """The chains to average over, selected by their mean log-posteriors."""

    mean: NDArray[np.float64]  # (chain,) nats
    allowed: NDArray[np.float64]  # (chain,) maximum gap to the highest chain, in nats
    counts: NDArray[np.bool_]  # (chain,)

    @property
    def why(self) -> str:
        """A sentence that names the chains in use and the reason."""
        n, lower = len(self.mean), np.flatnonzero(~self.counts)
        gap = self.mean.max() - self.mean
        if not len(lower):
            return (
                f"Averages use all {n} chains: their mean log-posteriors are at most "
                f"{gap.max():.1f} nats apart, and Monte Carlo error explains up to "
                f"{self.allowed.max():.1f}."
            )
        names = ", ".join(map(str, lower + 1))
        return (
            f"Averages use {n - len(lower)} of {n} chains: "
            f"{'chain' if len(lower) == 1 else 'chains'} {names} had mean log-posteriors at least "
            f"{gap[lower].min():.0f} nats below the highest, and Monte Carlo error explains "
            f"{self.allowed[lower].max():.1f} at most."
        )


def levels(log_posterior: NDArray[np.float64]) -> ChainLevels:
    """Compare the levels of chains, log_posterior (chain, draw), with their Monte Carlo errors.

    A chain is at a lower mode if its mean is below the highest mean by more than 3 nats and more
    than the errors of both means explain (Student's t over batches).
    """
    n_chains, n = log_posterior.shape
    mean, variance, freedom = log_posterior.mean(axis=1), np.zeros(n_chains), 1
    if n >= LEAST_DRAWS:
        size = math.isqrt(n)
        batches = n // size
        parts = log_posterior[:, n - size * batches :].reshape(n_chains, batches, size)
        variance, freedom = parts.mean(axis=2).var(axis=1, ddof=1) / batches, batches - 1
    error = np.sqrt(variance + variance[mean.argmax()])
    allowed = np.maximum(LEAST_GAP, stdtrit(freedom, BEYOND_ERROR) * error)
    return ChainLevels(mean, allowed, mean >= mean.max() - allowed)


class Chains(NamedTuple):
    """Draws and traces of all chains."""

    posterior: Draws  # (chain, draw, ...); the running means are (chain, ...)
    best: Any  # see `DrawStore.best`
    log_likelihoods: NDArray[np.float64]  # (chain, sweep), including burn-in
    stop_reason: str


class DrawStore:
    """Collects the kept draws of all chains in their final arrays."""

    def __init__(self, n_chains: int, n_draws: int) -> None:
        self.shape, self.kept = (n_chains, n_draws), 0  # draws of every chain
        self.draws: Draws = {}  # (chain, draw, ...), and sums (chain, ...)
        # by chain and number of components: number of draws, and the draw of highest density
        self.counts: Counter[tuple[int, int]] = Counter()
        self.highest: dict[tuple[int, int], tuple[float, Any]] = {}

    def keep(self, states: list[Any], measures: list[Measures], records: list[Draws]) -> None:
        """Add a draw of every chain."""
        for chain, (state, of) in enumerate(zip(states, measures, strict=True)):
            densities = {"log_likelihood": of.log_likelihood, "log_posterior": of.log_posterior}
            for name, value in (records[chain] | densities).items():
                new, running = np.asarray(value), name in RUNNING
                if name not in self.draws:
                    shape = *self.shape[: 1 if running else 2], *new.shape
                    self.draws[name] = np.zeros(shape, new.dtype)
                if running:
                    self.draws[name][chain] += new
                else:
                    self.draws[name][chain, self.kept] = new
            place = chain, of.number
            self.counts[place] += 1
            if place not in self.highest or of.log_posterior >= self.highest[place][0]:
                self.highest[place] = of.log_posterior, state
        self.kept += 1

    @property
    def best(self) -> Any:
        """Draw of highest density with the modal number of components; others are incomparable."""
        good = levels(self.draws["log_posterior"][:, : self.kept]).counts
        frequent: Counter[int] = Counter()
        for (chain, number), count in self.counts.items():
            frequent[number] += count * int(good[chain])
        usual = min(frequent, key=lambda number: (-frequent[number], number))
        tops = [top for place, top in self.highest.items() if place[1] == usual and good[place[0]]]
        return max(tops, key=lambda top: top[0])[1]

    def posterior(self) -> Draws:
        """Return the draws and the running means."""
        for name in RUNNING:
            self.draws[name] /= self.kept
        return {k: v if k in RUNNING else v[:, : self.kept] for k, v in self.draws.items()}


@naming_extra()
def load_arviz() -> Any:
    """Import ArviZ without the warning of 0.23 about its successor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def to_arviz(posterior: Mapping[str, NDArray[Any]]) -> Any:
    """Convert draws for ArviZ; running means and thinned components become constant data."""
    densities = {"log_likelihood": "lp_collapsed", "log_posterior": "lp"}
    n_draws, names = posterior["log_posterior"].shape[1], {*RUNNING, *densities}
    dims = {name: ["chain", "row", "component"] for name in RUNNING}
    dims |= {"components": ["component", "feature"], "mean": ["feature"]}
    if posterior.get("components", posterior["log_posterior"]).shape[1] != n_draws:
        names.add("components")
        dims["components"] = ["chain", "thinned_draw", "component", "feature"]
    return load_arviz().from_dict(
        posterior={k: v for k, v in posterior.items() if k not in names},
        sample_stats={new: posterior[old] for old, new in densities.items()},
        constant_data={name: posterior[name] for name in names - densities.keys()},
        dims=dims,
    )


def netcdf_bytes(posterior: Mapping[str, NDArray[Any]]) -> bytes:
    """Write draws as NetCDF; more strongly thinned components have an axis ``thinned_draw``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "draws.nc"
        to_arviz(posterior).to_netcdf(str(file))
        return file.read_bytes()


N_PAIRS = 20
IN_USE = 0.05  # a component is in use if at least this share of rows uses it


def in_use(occupancies: ArrayLike, n_rows: int, share: float = IN_USE) -> NDArray[np.intp]:
    """Count the components (..., K) that at least one row, and a `share` of all, use: (...)."""
    return np.asarray((np.asarray(occupancies) >= max(share * n_rows, 1)).sum(axis=-1))


@cache
def row_pairs(n_rows: int) -> NDArray[np.int64]:
    """Return fixed random pairs of distinct rows, (N_PAIRS, 2)."""
    rng = np.random.default_rng(0)
    first = rng.integers(n_rows, size=N_PAIRS)
    second = (first + 1 + rng.integers(n_rows - 1, size=N_PAIRS)) % n_rows
    return np.stack([first, second], axis=1)
