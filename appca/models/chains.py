"""The one loop of sampling: several chains, burn-in, thinning, traces and running means.

All chains advance together, one sweep at a time, so that a run stopped early has draws from every
chain and nothing but shorter traces.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from appca.models.loop import STOPPED, Callback, watcher

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = [
    "Chains",
    "Measures",
    "Sampler",
    "Schedule",
    "generators",
    "load_arviz",
    "sample",
    "to_arviz",
]

S = TypeVar("S")
Draws = dict[str, NDArray[Any]]

# Averages over the draws of a chain, (chain, N, K); everything else has the axes (chain, draw).
RUNNING = ("Z_mean", "X_mean")


class Schedule(NamedTuple):
    """How many sweeps are made, and which are kept."""

    n_chains: int
    burn_in: int  # sweeps thrown away
    n_draws: int  # kept draws a chain
    thin: int  # sweeps for one kept draw

    @property
    def n_sweeps(self) -> int:
        """Sweeps of one chain in all."""
        return self.burn_in + self.n_draws * self.thin


class Measures(NamedTuple):
    """Two numbers looked at after every sweep, nats."""

    log_likelihood: float  # everything integrated out that can be
    log_posterior: float  # the same with the priors; the best draw is the one that maximises it


class Sampler(NamedTuple, Generic[S]):
    """A model as the loop sees it."""

    sweep: Callable[[np.random.Generator, S], S]
    measure: Callable[[S], Measures]
    record: Callable[[S], Draws]  # what a kept draw keeps
    average: Callable[[S], Draws]  # what is only kept as a running mean


class Chains(NamedTuple, Generic[S]):
    """What the chains have seen."""

    posterior: Draws  # (chain, draw, ...); the running means are (chain, ...)
    best: S  # the kept draw of largest posterior density
    log_likelihoods: NDArray[np.float64]  # (chain, sweep), burn-in included
    stop_reason: str


class Keeper(Generic[S]):
    """Collects the kept draws of one chain."""

    def __init__(self, sampler: Sampler[S]) -> None:
        self.sampler = sampler
        self.draws: list[Draws] = []
        self.totals: Draws = {}
        self.best: tuple[float, S] | None = None

    def keep(self, state: S, measures: Measures) -> None:
        """Add a draw."""
        kept = self.sampler.record(state)
        kept["log_likelihood"] = np.asarray(measures.log_likelihood)
        kept["log_posterior"] = np.asarray(measures.log_posterior)
        self.draws.append(kept)
        for name, value in self.sampler.average(state).items():
            self.totals[name] = self.totals.get(name, np.zeros(value.shape)) + value
        if self.best is None or measures.log_posterior > self.best[0]:
            self.best = measures.log_posterior, state


def generators(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """Make one generator a chain from any generator, also from one that cannot spawn."""
    return [np.random.default_rng(seed) for seed in rng.integers(2**63, size=n)]


def sample(
    rngs: Sequence[np.random.Generator],
    starts: Sequence[S],
    sampler: Sampler[S],
    schedule: Schedule,
    callback: Callback | None = None,
) -> Chains[S]:
    """Run the chains to the end of the schedule or until the callback raises StopIteration.

    The callback sees the mean log-likelihood of the chains once a sweep. A run stopped during
    burn-in keeps the last state of each chain as its only draw.
    """
    states = list(starts)
    keepers = [Keeper(sampler) for _ in states]
    trace = np.empty((len(states), schedule.n_sweeps))
    burn_in = watcher(callback, "burn-in", schedule.n_sweeps)
    draws = watcher(callback, "draws", schedule.n_sweeps)
    reason = f"made all {schedule.n_sweeps} sweeps of every chain"
    measures: list[Measures] = []
    for sweep in range(1, schedule.n_sweeps + 1):
        states = [sampler.sweep(rng, state) for rng, state in zip(rngs, states, strict=True)]
        measures = [sampler.measure(state) for state in states]
        trace[:, sweep - 1] = [m.log_likelihood for m in measures]
        after = sweep - schedule.burn_in
        if after > 0 and after % schedule.thin == 0:
            for keeper, state, m in zip(keepers, states, measures, strict=True):
                keeper.keep(state, m)
        watch = draws if after > 0 else burn_in
        if watch(sweep, float(trace[:, sweep - 1].mean())):
            trace, reason = trace[:, :sweep], STOPPED
            break
    if not keepers[0].draws:
        for keeper, state, m in zip(keepers, states, measures, strict=True):
            keeper.keep(state, m)
    return Chains(_stack(keepers), _best(keepers), trace, reason)


def _stack(keepers: Sequence[Keeper[S]]) -> Draws:
    names = keepers[0].draws[0]
    posterior = {
        name: np.stack([np.stack([d[name] for d in keeper.draws]) for keeper in keepers])
        for name in names
    }
    for name in keepers[0].totals:
        posterior[name] = np.stack([k.totals[name] / len(k.draws) for k in keepers])
    return posterior


def _best(keepers: Sequence[Keeper[S]]) -> S:
    candidates = [keeper.best for keeper in keepers if keeper.best is not None]
    return max(candidates, key=lambda candidate: candidate[0])[1]


def load_arviz() -> Any:
    """Import ArviZ, whose 0.23 announces its successor in a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def to_arviz(posterior: Draws) -> "InferenceData":
    """Hand the draws to ArviZ; the running means go to its group of constants."""
    arviz = load_arviz()
    densities = {"log_likelihood": "lp_collapsed", "log_posterior": "lp"}
    draws = {k: v for k, v in posterior.items() if k not in RUNNING and k not in densities}
    data: InferenceData = arviz.from_dict(
        posterior=draws,
        sample_stats={new: posterior[old] for old, new in densities.items()},
        constant_data={name: posterior[name] for name in RUNNING},
        dims={name: ["chain", "row", "component"] for name in RUNNING}
        | {"components": ["component", "feature"], "mean": ["feature"]},
    )
    return data
