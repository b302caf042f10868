"""Whether other starts, or other rows, give the same components.

One model is fitted once as a run would fit it (the reference), and again from random starts, or to
random halves of the rows. Each further fit's components are matched to the reference's by absolute
cosine; all fits are scored on the same rows. Preprocessing is learned once, from all the rows that
are used, because components in different coordinates could not be compared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.check.choose import MODELS, MOST_ROWS, estimator_of, sample_of
from appca.analysis.check.journal import JournalStore
from appca.analysis.fitted import FittedModel
from appca.analysis.keywords import OfModel
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.words.errors import InputError

FOLDER = "stability"
WAYS = ("starts", "halves")
MOST_REPEATS = 100
_SEED_STEP = 1000  # seeds of the repeats lie apart from those a person tries one by one


@dataclass(frozen=True, eq=False)
class StabilityConfig(OfModel):
    """Everything that decides the numbers; InputError for values without meaning.

    K and L are among the `parameters`. By the way "starts" the random start differs from fit to
    fit, by "halves" the half of the rows. All else is as in a grid.
    """

    dataset: str
    preprocessing: dict[str, Any]
    model: str
    parameters: dict[str, Any]
    way: str = "starts"
    repeats: int = 8
    max_rows: int = MOST_ROWS
    random_state: int = 0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        super().__post_init__()
        if self.model not in MODELS or self.way not in WAYS:
            msg = (
                f"Stability needs a model out of {', '.join(MODELS)} and a way out of "
                f"{', '.join(WAYS)}; got “{self.model}” and “{self.way}”."
            )
            raise InputError(msg)
        if not 2 <= self.repeats <= MOST_REPEATS:
            msg = f"repeats must lie between 2 and {MOST_REPEATS}; got {self.repeats}."
            raise InputError(msg)

    @property
    def cell(self) -> tuple[int, Any]:
        """K and L; "learned" where L is."""
        return int(self.parameters["n_components"]), self.parameters["n_active"]


class Stability(NamedTuple):
    """Of the fits so far; K components in the order of the reference."""

    reference: float  # log-likelihood of the reference, nats per row
    log_likelihoods: np.ndarray  # (repeat,) nats per row, on the same rows
    cosines: np.ndarray  # (repeat, K) absolute cosine to the reference


def run(
    dataset: Dataset,
    config: StabilityConfig,
    store: JournalStore,
    report: Callable[[int], None],
    callback: Callable[[Any], object] | None = None,
) -> None:
    """Fit what the store lacks, and note each fit at once.

    `report` is told before each fit how many have been made, the reference counting as one, and
    `callback` each pass of EM; an exception from either ends the work.
    """
    from appca.models.sampling.query_draws import match

    X = dataset.X[sample_of(dataset.n_rows, config.max_rows, config.random_state)]
    Y = Preprocessing.from_dict(config.preprocessing).fit(X).transform(X)
    store.begin(config.id, config.to_dict())
    done = {int(record[0]) for record in store.records(config.id)}
    if set(range(config.repeats + 1)) <= done:
        return
    report(0)
    reference = estimator_of(config.model, config.parameters, config.cell, callback).fit(Y)
    if 0 not in done:
        ones = [1.0] * config.cell[0]
        store.append(config.id, [0, float(reference.score(Y)), *ones])
    for repeat in range(1, config.repeats + 1):
        if repeat in done:
            continue
        report(repeat)
        parameters, rows = variant(config, repeat, len(Y))
        again = estimator_of(config.model, parameters, config.cell, callback).fit(Y[rows])
        cosine = match(reference.components_, again.components_).cosine
        cosines = [float(value) for value in cosine]
        store.append(config.id, [repeat, float(again.score(Y)), *cosines])


def resampled(
    dataset: Dataset, fitted: FittedModel, model: str, parameters: dict[str, Any], repeats: int
) -> np.ndarray:
    """Return components (1, repeat, K, D') of fits by EM to rows drawn with replacement.

    The bootstrap: each fit starts from the fitted components and sees as many rows as there are.
    """
    Y = fitted.preprocessing.transform(dataset.X)
    start = {"init": fitted.components.astype(np.float64), "n_init": 1}
    cell = len(fitted.components), parameters["n_active"]
    drawn = np.random.default_rng(0).integers(0, len(Y), (repeats, len(Y)))
    fits = (estimator_of(model, parameters | start, cell).fit(Y[rows]) for rows in drawn)
    return np.stack([fit.components_ for fit in fits])[None]


def variant(config: StabilityConfig, repeat: int, n_rows: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return the settings and the rows of one further fit."""
    seed = config.random_state + _SEED_STEP * repeat
    rows = np.arange(n_rows)
    if config.way == "starts":
        return config.parameters | {"init": "random", "n_init": 1, "random_state": seed}, rows
    drawn = np.random.default_rng(seed).permutation(n_rows)[: max(2, (n_rows + 1) // 2)]
    return config.parameters, np.sort(drawn)


def stored(store: JournalStore, config: StabilityConfig) -> Stability | None:
    """Return the fits so far; None before the reference and one more are there."""
    K = config.cell[0]
    records = {int(record[0]): record[1:] for record in store.records(config.id)}
    numbers = [records[r] for r in range(1, config.repeats + 1) if len(records.get(r, ())) == K + 1]
    if not numbers or 0 not in records:
        return None
    values = np.array(numbers, dtype=np.float64)
    return Stability(float(records[0][0]), values[:, 0], values[:, 1:])
