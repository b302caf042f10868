"""Which model describes unseen rows best: the variants of adaptive PPCA and its rivals, held out.

All methods are fitted to the same rows and features and scored on the same held-out rows, so that
differences are taken row by row and have a standard error. Features with less than 5% of the mean
variance are left out for all of them: where a feature hardly varies, a noise variance of its own
makes a density arbitrarily large, which says nothing about the model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.check import rivals
from appca.analysis.check.choose import sample_of
from appca.analysis.check.journal import JournalStore
from appca.analysis.check.rivals import Cap, RivalProjection, Split, TimeUp
from appca.analysis.keywords import OfModel
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.words.errors import InputError

FOLDER = "models"
MOST_ROWS = 3000
LEAST_ROWS = 20
HELD_OUT = 0.3
LEAST_VARIANCE = 0.05  # of a feature, as a share of the mean variance
SECONDS = 120.0  # of a method; a fit that can stop early keeps what it has
CLEAR = 2.0  # standard errors of the paired difference
PAPER = "paper"  # the key of the variant without extensions
SWITCHES: dict[str, dict[str, str]] = {  # each extension of the paper's model, and its setting
    "noise": {"noise": "feature"},
    "scale": {"row_scale": "learned"},
    "number": {"n_active": "learned"},
}
VARIANTS = tuple(
    "+".join(name for name, on in zip(SWITCHES, chosen, strict=True) if on) or PAPER
    for chosen in product((True, False), repeat=len(SWITCHES))
)

Method = Callable[[Split, Cap, rivals.Report], RivalProjection]


@dataclass(frozen=True, eq=False)
class ModelsConfig(OfModel):
    """Everything that decides the numbers of a comparison of models.

    `parameters` are keywords of `AdaptivePPCA`; each variant sets sizes and extensions. Of more
    rows than `max_rows` a random sample is used. `random_state` draws it and the rows held out.
    """

    dataset: str
    preprocessing: dict[str, Any]
    parameters: dict[str, Any]
    n_components: int
    n_active: int
    max_rows: int = MOST_ROWS
    random_state: int = 0
    model: str = "aPPCA"

    def __post_init__(self) -> None:
        """Leave out the settings that the variants have themselves."""
        super().__post_init__()
        varied = {"n_components", "inference", *(name for on in SWITCHES.values() for name in on)}
        for name in varied & set(self.parameters):
            del self.parameters[name]


class HeldOutFit(NamedTuple):
    """What one method says of the rows held out."""

    log_likelihood: np.ndarray | None  # (m,) nats; None where the method has no density
    n_parameters: int
    seconds: float
    note: str  # why it is not to be relied on; empty where it is


class Ranked(NamedTuple):
    """A method beside the paper's model."""

    key: str
    nats: float  # mean held-out log-likelihood less that of the paper's model, a row
    error: float  # standard error of the mean paired difference
    fit: HeldOutFit


class ModelAdvice(NamedTuple):
    """The variant to take, and what it is compared with."""

    key: str
    is_best: bool  # clears every other variant by two standard errors
    best_rival: Ranked | None
    lead: float  # over the best rival, nats a row
    lead_error: float


def variant_settings(key: str, n_active: int) -> dict[str, Any]:
    """Return the settings of `AdaptivePPCA` that make a variant."""
    settings: dict[str, Any] = {"noise": "shared", "row_scale": "none", "n_active": n_active}
    for name in key.split("+"):
        settings |= SWITCHES.get(name, {})
    return settings


def methods(config: ModelsConfig) -> dict[str, Method]:
    """Return the methods, key to function, the paper's model first and rivals last."""
    from appca.models.adaptive_ppca import AdaptivePPCA
    from appca.models.ppca import PPCA

    K, L = config.n_components, config.n_active
    variants: dict[str, Method] = {
        key: partial(
            rivals.ours,
            AdaptivePPCA,
            {**config.parameters, "n_components": K, **variant_settings(key, L)},
        )
        for key in reversed(VARIANTS)
    }
    return variants | {
        "ppca": partial(rivals.ours, PPCA, {"n_components": K, "random_state": 0}),
        "fa": partial(rivals.factor_analysis, K),
        "mixture": partial(rivals.mixture, K, L),
        "mixture_diagonal": partial(rivals.mixture, K, L, noise="diagonal"),
        "common": partial(rivals.mixture, K, K, loadings="common"),
        "common_diagonal": partial(rivals.mixture, K, K, loadings="common", noise="diagonal"),
    }


def split_of(dataset: Dataset, config: ModelsConfig) -> Split:
    """Draw the rows, hold out three in ten, and drop features that hardly vary.

    Raises InputError when there are too few rows, or too few features vary.
    """
    rows = sample_of(dataset.n_rows, config.max_rows, config.random_state)
    if len(rows) < LEAST_ROWS:
        msg = f"Comparing models needs at least {LEAST_ROWS} rows; these data have {len(rows)}."
        raise InputError(msg)
    order = np.random.default_rng([config.random_state, 2]).permutation(rows)
    n_test = round(HELD_OUT * len(rows))
    train, test = dataset.take(np.sort(order[n_test:])), dataset.X[np.sort(order[:n_test])]
    fitted = Preprocessing.from_dict(config.preprocessing).fit(train.X)
    X = fitted.transform(train.X)
    variances = X.var(axis=0, dtype=np.float64)
    vary = variances >= LEAST_VARIANCE * variances.mean()
    most = min(len(X) - 1, int(vary.sum()) - 1)
    if config.n_components > most:
        msg = (
            f"Comparing models with K = {config.n_components} needs more rows or features that "
            f"vary: at most K = {most} here. Choose a smaller K."
        )
        raise InputError(msg)
    return Split(X[:, vary], fitted.transform(test)[:, vary], train, config.preprocessing)


def fill(
    dataset: Dataset,
    config: ModelsConfig,
    store: JournalStore,
    report: Callable[[str, float], object],
    clock: Callable[[], Cap] = lambda: Cap(SECONDS),
) -> None:
    """Measure every method that the store lacks, and store each result at once.

    `report` is told the method and the share done; an exception from it ends the work.
    """
    store.begin(config.id, config.to_dict())
    done, todo = stored(store, config), methods(config)
    split = split_of(dataset, config)
    for place, (key, fit) in enumerate(todo.items()):
        if key in done:
            continue

        def passed(share: float, key: str = key, place: int = place) -> None:
            report(key, (place + share) / len(todo))

        try:
            made = fit(split, clock(), passed)
        except (TimeUp, ValueError, np.linalg.LinAlgError) as error:
            made = RivalProjection(np.empty((0, 0)), 0.0, note=str(error) or "out of time")
        density = made.log_likelihood
        values = None if density is None or not np.isfinite(density).all() else density.tolist()
        store.append(
            config.id, [key, values, made.n_parameters or 0, round(made.seconds, 3), made.note]
        )


def stored(store: JournalStore, config: ModelsConfig) -> dict[str, HeldOutFit]:
    """Return what has been measured so far, key to result."""
    return {
        key: HeldOutFit(None if values is None else np.array(values), *rest)
        for key, values, *rest in store.records(config.id)
    }


def ranked(fits: dict[str, HeldOutFit]) -> list[Ranked]:
    """Return the methods with a density, best first, relative to the paper's model."""
    densities = {key: fit for key, fit in fits.items() if fit.log_likelihood is not None}
    if PAPER not in densities:
        return []
    lines = [Ranked(key, *difference(fit, densities[PAPER]), fit) for key, fit in densities.items()]
    return sorted(lines, key=lambda line: -line.nats)


def difference(first: HeldOutFit, second: HeldOutFit) -> tuple[float, float]:
    """Return the mean of the rows' differences in log-likelihood, and its standard error."""
    gaps = np.asarray(first.log_likelihood) - np.asarray(second.log_likelihood)
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps)))


def advise(lines: list[Ranked]) -> ModelAdvice | None:
    """Return the variant to take: the best, or of those as good as it the one of fewest parameters.

    As good is a variant that the best does not clear by two standard errors of the paired
    difference. None before a variant has been measured.
    """
    variants = [line for line in lines if line.key in VARIANTS]
    if not variants:
        return None
    best = variants[0]

    def is_as_good(line: Ranked) -> bool:
        lead, error = difference(best.fit, line.fit)
        return lead <= CLEAR * error

    level = [line for line in variants if is_as_good(line)]
    chosen = min(level, key=lambda line: line.fit.n_parameters)
    others = [line for line in lines if line.key not in VARIANTS]
    lead = difference(chosen.fit, others[0].fit) if others else (np.nan, np.nan)
    return ModelAdvice(chosen.key, len(level) == 1, others[0] if others else None, *lead)
