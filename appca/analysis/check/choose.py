"""Cross-validation over a grid of K and L: what is measured, in which order, and the measuring.

Every cell (K, L) is fitted from scratch to the rows outside each fold, by the same estimator with
the same settings as a run, and scored on the rows of the fold by its exact likelihood. Nothing is
handed from cell to cell: a start taken from a neighbour would be another fit than the one that
adopting the cell gives. Preprocessing is learned from the training rows alone.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.check.journal import JournalStore
from appca.analysis.keywords import OfModel
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.models.settings.table import MODELS as ALL_MODELS
from appca.models.settings.table import estimator_class
from appca.words.errors import InputError

MODELS = ("aPPCA", "aFA")  # whose held-out likelihood is exact
MOST_CELLS = 600
MOST_ROWS = 6000  # a grid looks at no more rows without being asked
FOLDER = "grids"

Cell = tuple[int, int]  # K, L
Report = Callable[[Cell, int], None]


@dataclass(frozen=True, eq=False)
class GridConfig(OfModel):
    """Everything that decides the numbers of a grid.

    `parameters` are keywords of the estimator, all but K and L; cells with L > K are left out. Of
    more rows than `max_rows` a random sample is used. `random_state` draws it and deals the rows
    out to the folds. Raises InputError for values without meaning, and a grid without a cell or
    with too many.
    """

    dataset: str
    preprocessing: dict[str, Any]
    model: str
    parameters: dict[str, Any]
    components: tuple[int, ...]
    actives: tuple[int, ...]
    n_folds: int = 3
    max_rows: int = MOST_ROWS
    random_state: int = 0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        super().__post_init__()
        if self.model not in MODELS:
            msg = f"A grid needs a model with K and L, {' or '.join(MODELS)}; got “{self.model}”."
            raise InputError(msg)
        for name in ("n_components", "n_active"):
            self.parameters.pop(name, None)
        if self.parameters.get("inference") == "gibbs":
            msg = "A grid fits by EM or hard assignment; got inference “gibbs”."
            raise InputError(msg)
        for name in ("components", "actives"):
            object.__setattr__(self, name, _sizes(name, getattr(self, name)))
        for name, least in (("n_folds", 2), ("max_rows", 4), ("random_state", 0)):
            object.__setattr__(self, name, _whole(name, getattr(self, name), least))
        if not 0 < len(self.cells) <= MOST_CELLS:
            msg = (
                f"A grid must have 1 to {MOST_CELLS} cells with L <= K; these K and L make "
                f"{len(self.cells):,}: choose other ranges."
            )
            raise InputError(msg)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells (K, L), by K, then by L."""
        return tuple(
            (k, active)
            for k in self.components
            for active in self.actives
            if active <= k and self.is_exact(k, active)
        )

    @cached_property
    def baselines(self) -> tuple[Cell, ...]:
        """Cells (q, q) in which every row uses all: PPCA with q components, for each K and L."""
        used = {size for cell in self.cells for size in cell}
        return tuple((q, q) for q in sorted(used))

    def is_exact(self, k: int, active: int) -> bool:
        """Whether the likelihood of a cell is exact."""
        return ALL_MODELS[self.model].can.is_exact(k, active)

    def order(self) -> list[Cell]:
        """Return the cells in the order in which they are measured.

        First PPCA, which is quick and what all else is compared with; then from coarse to fine
        over K, smallest, largest, middle and so on, with all L of a K together. So the whole range
        is seen early, and each cell once it is there is final.
        """
        ranks = {k: place for place, k in enumerate(coarse_to_fine(self.components))}
        rest = [cell for cell in self.cells if cell[0] != cell[1]]
        return [*self.baselines, *sorted(rest, key=lambda cell: (ranks[cell[0]], cell[1]))]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able settings, from which `from_dict` makes an equal config."""
        lists = {"components": list(self.components), "actives": list(self.actives)}
        return super().to_dict() | lists


class HeldOutMeasure(NamedTuple):
    """What one fit says of the rows it has not seen."""

    log_likelihood: float  # nats per row; NaN where the fold cannot carry K components
    error: float  # mean squared reconstruction error a feature, in preprocessed units
    n_iter: int
    stop_reason: str
    seconds: float


class RowFold(NamedTuple):
    """Rows of the data set, ascending."""

    train: np.ndarray  # (n,)
    test: np.ndarray  # (m,)


Measures = dict[tuple[int, int, int], HeldOutMeasure]  # (K, L, fold)


def coarse_to_fine(values: Iterable[int]) -> list[int]:
    """Order ascending values: ends first, then always the middle of the widest gap left."""
    values = list(values)
    order = [0, len(values) - 1][: len(values)]
    while len(order) < len(values):
        there = sorted(order)
        gaps = [(b - a, -a) for a, b in pairwise(there)]
        width, start = max(gaps)
        order.append(-start + width // 2)
    return [values[place] for place in order]


def sample_of(n_rows: int, max_rows: int, random_state: int) -> np.ndarray:
    """Return the rows that are used, ascending: all, or a random sample of `max_rows`."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    drawn = np.random.default_rng(random_state).permutation(n_rows)[:max_rows]
    return np.sort(drawn)


def folds(n_rows: int, n_folds: int, max_rows: int, random_state: int) -> list[RowFold]:
    """Deal the rows that are used out to folds, shuffled; their sizes differ by one row at most.

    Raises InputError when a fold would be left with fewer than two rows to learn from, or with none
    to test on.
    """
    rows = sample_of(n_rows, max_rows, random_state)
    if len(rows) < max(n_folds, 4):
        msg = (
            f"{n_folds} folds need at least {max(n_folds, 4)} rows; got {len(rows)}: choose fewer "
            "folds or more rows."
        )
        raise InputError(msg)
    shuffled = np.random.default_rng([random_state, 1]).permutation(rows)
    parts = [np.sort(part) for part in np.array_split(shuffled, n_folds)]
    return [RowFold(np.setdiff1d(rows, part, assume_unique=True), part) for part in parts]


def measure(
    X: np.ndarray,
    fold: RowFold,
    fitted: Fitted,
    config: GridConfig,
    cell: Cell,
    callback: Callable[[Any], object] | None = None,
) -> HeldOutMeasure:
    """Fit one cell to the training rows of a fold of X (N, D), in data units, and score the others.

    `fitted` is the preprocessing learned from the training rows. `callback` is told each pass of
    EM; an exception from it ends the fit.
    """
    began = time.perf_counter()
    train, test = fitted.transform(X[fold.train]), fitted.transform(X[fold.test])
    most = len(train) - 1 if config.model == "aFA" else min(len(train) - 1, train.shape[1])
    if cell[0] > most:
        return HeldOutMeasure(
            math.nan, math.nan, 0, f"K is above {most}, the most this fold allows", 0.0
        )
    estimator = estimator_of(config.model, config.parameters, cell, callback).fit(train)
    left = test - estimator.inverse_transform(estimator.transform(test))
    return HeldOutMeasure(
        float(estimator.score(test)),
        float(np.square(left, dtype=np.float64).mean()),
        int(estimator.n_iter_),
        str(estimator.stop_reason_),
        round(time.perf_counter() - began, 4),
    )


def estimator_of(
    model: str,
    parameters: Mapping[str, Any],
    cell: Cell,
    callback: Callable[[Any], object] | None = None,
) -> Any:
    """Return the unfitted estimator of a cell."""
    sizes = {"n_components": cell[0], "n_active": cell[1]}
    return estimator_class(model)(**{**parameters, **sizes, "callback": callback})


def fill(
    dataset: Dataset,
    config: GridConfig,
    store: JournalStore,
    report: Report,
    callback: Callable[[Any], object] | None = None,
) -> None:
    """Measure every cell in every fold that the store lacks, and note each at once.

    `report` is told cell and fold before each fit, `callback` each pass of EM; an exception from
    either ends the work.
    """
    split = folds(dataset.n_rows, config.n_folds, config.max_rows, config.random_state)
    store.begin(config.id, config.to_dict())
    done = stored(store, config)
    learned: dict[int, Fitted] = {}
    preprocessing = Preprocessing.from_dict(config.preprocessing)
    for cell in config.order():
        for number, fold in enumerate(split):
            if (*cell, number) in done:
                continue
            report(cell, number)
            if number not in learned:
                learned[number] = preprocessing.fit(dataset.X[fold.train])
            measured = measure(dataset.X, fold, learned[number], config, cell, callback)
            values = [None if isinstance(v, float) and math.isnan(v) else v for v in measured]
            store.append(config.id, [*cell, number, *values])


def stored(store: JournalStore, config: GridConfig) -> Measures:
    """Return what has been measured so far."""
    measures: Measures = {}
    for record in store.records(config.id):
        if len(record) == 3 + len(HeldOutMeasure._fields):
            k, active, fold, *rest = record
            likelihood, error = (math.nan if value is None else value for value in rest[:2])
            measures[k, active, fold] = HeldOutMeasure(likelihood, error, *rest[2:])
    return measures


def steps(config: GridConfig) -> list[tuple[int, int, int]]:
    """Return every (K, L, fold) in the order of measuring."""
    return [(*cell, fold) for cell in config.order() for fold in range(config.n_folds)]


def _sizes(name: str, values: Iterable[int]) -> tuple[int, ...]:
    sizes = sorted({_whole(name, value, 1) for value in values})
    if not sizes:
        msg = f"{name} must name at least one number."
        raise InputError(msg)
    return tuple(sizes)


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        msg = f"{name} must be whole numbers from {least} on; got {value!r:.60}."
        raise InputError(msg)
    return int(value)
