"""The sampling loop of all Gibbs samplers, and label-free summaries of Z.

Chains advance together, so that a stopped run has draws of every chain. Components swap names and
signs between draws, which must be aligned before entries are averaged.
"""

import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from appca.models.loop import STOPPED, Callback, Progress, watcher
from appca.models.settings import OVERDISPERSED
from appca.words import naming_extra

S = TypeVar("S")
Indicators = NDArray[np.bool_]
Draws = dict[str, NDArray[Any]]
Place = tuple[int, int]  # number of a chain, and `Measures.number` of some of its draws

# Averages over the draws of a chain, (chain, N, K); everything else has the axes (chain, draw).
RUNNING = ("Z_mean", "X_mean")


class Measures(NamedTuple):
    """Measures of a state after every sweep."""

    log_likelihood: float  # nats, as much as possible integrated out
    log_posterior: float  # nats, the same with the priors
    number: int = 0  # of components, if it decides about the number of parameters


LEAST_GAP = 3.0  # nats: a peak that is e^3 times as high hides the other
BEYOND_ERROR = 0.999  # probability that Monte Carlo error of a mean makes no such gap
LEAST_DRAWS = 4  # of a chain, to know the error of its mean


class ChainLevels(NamedTuple):
    """The chains that averages count, by their mean log-posteriors."""

    mean: NDArray[np.float64]  # (chain,) nats
    allowed: NDArray[np.float64]  # (chain,) nats below the highest chain that it may be
    counts: NDArray[np.bool_]  # (chain,)

    @property
    def why(self) -> str:
        """A sentence for people."""
        n, lower = len(self.mean), np.flatnonzero(~self.counts)
        gap = self.mean.max() - self.mean
        if not len(lower):
            return (
                f"Averages use all {n} chains: their mean log-posteriors are at most "
                f"{gap.max():.1f} nats apart, of which Monte Carlo error explains up to "
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

    A chain is on a lower peak if its mean is further below the highest one than the errors of both
    explain, by Student's t over batches, and more than 3 nats.
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


class Sampler(NamedTuple, Generic[S]):
    """A model, for the loop."""

    look: Callable[[Any], S]  # a state with its products with the data
    sweep: Callable[[Generator, S], S]
    measure: Callable[[S], Measures]
    record: Callable[[S], Draws]  # of a kept draw
    average: Callable[[S], Draws]  # of running means


class Chains(NamedTuple, Generic[S]):
    """Draws and traces of all chains."""

    posterior: Draws  # (chain, draw, ...); the running means are (chain, ...)
    best: S  # see `DrawStore.best`
    log_likelihoods: NDArray[np.float64]  # (chain, sweep), burn-in included
    stop_reason: str


class DrawStore(Generic[S]):
    """Collects the kept draws of all chains in their final arrays."""

    def __init__(self, sampler: Sampler[S], starts: Sequence[S], n_draws: int) -> None:
        self.sampler = sampler
        self.shape = len(starts), n_draws
        self.draws: Draws = {}  # (chain, draw, ...)
        self.totals: Draws = {}  # (chain, ...)
        self.kept = 0  # draws of every chain
        self.counts: Counter[Place] = Counter()
        self.highest: dict[Place, tuple[float, S]] = {}  # the densest draw

    def keep(self, states: Sequence[S], measures: Sequence[Measures]) -> None:
        """Add a draw of every chain."""
        for chain, (state, measured) in enumerate(zip(states, measures, strict=True)):
            densities = zip(Measures._fields[:2], map(np.asarray, measured[:2]), strict=True)
            for name, value in (self.sampler.record(state) | dict(densities)).items():
                self._place(self.draws, name, value, self.shape)[chain, self.kept] = value
            for name, value in self.sampler.average(state).items():
                self._place(self.totals, name, value, self.shape[:1])[chain] += value
            place = chain, measured.number
            self.counts[place] += 1
            if place not in self.highest or measured.log_posterior >= self.highest[place][0]:
                self.highest[place] = measured.log_posterior, state
        self.kept += 1

    @property
    def best(self) -> S:
        """The densest draw of the most frequent number; others' densities differ in unit."""
        good = levels(self.draws["log_posterior"][:, : self.kept]).counts
        frequent: Counter[int] = Counter()
        for (chain, number), count in self.counts.items():
            frequent[number] += count * int(good[chain])
        usual = min(frequent, key=lambda number: (-frequent[number], number))
        tops = [top for place, top in self.highest.items() if place[1] == usual and good[place[0]]]
        return max(tops, key=lambda top: top[0])[1]

    @staticmethod
    def _place(where: Draws, name: str, value: NDArray[Any], shape: tuple[int, ...]) -> Any:
        if name not in where:
            where[name] = np.zeros((*shape, *value.shape), value.dtype)
        return where[name]

    def posterior(self) -> Draws:
        """Return the draws and the running means."""
        means = {name: np.divide(sums, self.kept, sums) for name, sums in self.totals.items()}
        return {name: draws[:, : self.kept] for name, draws in self.draws.items()} | means


# (rng, callback, whether far from where the first chain starts) -> state, why its fit ended
Start = Callable[[Generator, Callback | None, bool], tuple[Any, str]]


def initial_states(
    rngs: Sequence[Generator], sampler: Sampler[S], start: Start, callback: Any, *, n_fits: int
) -> tuple[list[S], bool]:
    """Make the states that chains start from; and whether the callback has stopped that.

    Chains after so many fits share those there are or, after a single one, start far from it.
    """
    states: list[S] = []

    def hear(progress: Progress) -> None:
        stage = f"chain {len(states) + 1} of {n_fits}: {progress.stage}"
        callback(progress._replace(stage=stage))

    for rng in rngs[:n_fits]:
        state, reason = start(rng, hear if n_fits > 1 and callback is not None else callback, False)
        states.append(sampler.look(state))
        if reason == STOPPED:
            break
    return states, reason == STOPPED


def sample(
    rng: Generator,
    model: Any,
    sampler: Sampler[S],
    start: Start,
    callback: Callback | None,
    *,
    origin: Any,
    apart: bool = True,
) -> Chains[S]:
    """Run the chains of an estimator, or until the callback raises StopIteration.

    Chains start far from the first one, with `apart` each from its own fit, or from one fit. A run
    stopped in burn-in keeps the last state of each, one stopped before a single sweep. Drawn means
    are about `origin` (D,).
    """
    rngs = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=model.n_chains)]
    far = getattr(model, "chain_starts", OVERDISPERSED) == OVERDISPERSED
    n_fits = len(rngs) if apart and not far else 1
    begun, stopped = initial_states(rngs, sampler, start, callback, n_fits=n_fits)
    if far and not stopped:
        begun += [sampler.look(start(rng, None, True)[0]) for rng in rngs[1:]]
    states = [begun[i % len(begun)] for i in range(len(rngs))]
    burn_in, n_draws, thin = model.burn_in, model.n_draws, model.thin
    if stopped:
        burn_in, n_draws, thin, callback = 0, 1, 1, None
    n_sweeps = burn_in + n_draws * thin
    store = DrawStore(sampler, states, n_draws)
    trace = np.empty((len(states), n_sweeps))
    watches = [watcher(callback, stage, n_sweeps) for stage in ("burn-in", "draws")]
    reason = f"made all {n_sweeps} sweeps of every chain"
    measures: list[Measures] = []
    for sweep in range(1, n_sweeps + 1):
        states = [sampler.sweep(rng, state) for rng, state in zip(rngs, states, strict=True)]
        measures = [sampler.measure(state) for state in states]
        trace[:, sweep - 1] = [m.log_likelihood for m in measures]
        if sweep > burn_in and (sweep - burn_in) % thin == 0:
            store.keep(states, measures)
        if watches[sweep > burn_in](sweep, float(trace[:, sweep - 1].mean())):
            trace, reason = trace[:, :sweep], STOPPED
            break
    if not store.kept:
        store.keep(states, measures)
    posterior = store.posterior()
    posterior["mean"] += origin  # in place: draws of wide rows are large
    return Chains(posterior, store.best, trace, STOPPED if stopped else reason)


@naming_extra()
def load_arviz() -> Any:
    """Import ArviZ, whose 0.23 announces its successor in a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def to_arviz(posterior: Draws) -> Any:
    """Hand the draws to ArviZ; the running means go to its group of constants."""
    arviz = load_arviz()
    densities = {"log_likelihood": "lp_collapsed", "log_posterior": "lp"}
    draws = {k: v for k, v in posterior.items() if k not in RUNNING and k not in densities}
    data: Any = arviz.from_dict(
        posterior=draws,
        sample_stats={new: posterior[old] for old, new in densities.items()},
        constant_data={name: posterior[name] for name in RUNNING},
        dims={name: ["chain", "row", "component"] for name in RUNNING}
        | {"components": ["component", "feature"], "mean": ["feature"]},
    )
    return data


def netcdf_bytes(posterior: Mapping[str, NDArray[Any]]) -> bytes:
    """Write draws as NetCDF; components that are thinned more have an axis ``thinned_draw``."""
    draws, name = dict(posterior), "components"
    thinned = None
    if name in draws and draws[name].shape[1] != np.shape(draws["log_posterior"])[1]:
        thinned = draws.pop(name)
    data: Any = to_arviz(draws)
    if thinned is not None:
        data.constant_data[name] = (("chain", "thinned_draw", "component", "feature"), thinned)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "draws.nc"
        data.to_netcdf(str(file))
        return file.read_bytes()


N_PAIRS = 20
IN_USE = 0.05  # share of the rows from which a component counts as used


def in_use(occupancies: ArrayLike, n_rows: int, share: float = IN_USE) -> NDArray[np.intp]:
    """Count the components (...) that at least a share of the rows, and any, use: (..., K)."""
    counts = np.asarray(occupancies)
    return np.asarray((counts >= max(share * n_rows, 1)).sum(axis=-1))


@cache
def row_pairs(n_rows: int) -> NDArray[np.int64]:
    """Name pairs of different rows (N_PAIRS, 2), the same ones every time."""
    rng = np.random.default_rng(0)
    first = rng.integers(n_rows, size=N_PAIRS)
    second = (first + 1 + rng.integers(n_rows - 1, size=N_PAIRS)) % n_rows
    return np.stack([first, second], axis=1)
