"""Choose K and L by held-out likelihood, and measure the stability of components.

One model is fitted once as a run would fit it (the reference), and again from random starts, or to
random halves of the rows. Each further fit's components are matched to the reference's by absolute
cosine; all fits are scored on the same rows. Preprocessing is learned once, from all the rows that
are used, because components in different coordinates could not be compared.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.fitted import FittedModel, OfModel
from appca.analysis.journal import JournalStore
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.models.settings import MODELS as ALL_MODELS
from appca.models.settings import estimator_class
from appca.words import InputError, fixed

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


Floats = np.ndarray


class GridTable(NamedTuple):
    """A grid as arrays; cells not measured in all folds are NaN."""

    components: tuple[int, ...]
    actives: tuple[int, ...]
    log_likelihood: Floats  # (nK, nL, fold) held-out nats per row
    error: Floats  # (nK, nL, fold) held-out mean squared error a feature
    baseline: dict[int, Floats]  # q -> (fold,) log-likelihood of PPCA with q components


class MeanDifference(NamedTuple):
    """A mean over folds and its standard error."""

    mean: Floats
    standard_error: Floats


class Advice(NamedTuple):
    """What is advised."""

    cell: Cell | None  # over all
    budgets: dict[int, int]  # L -> K, the elbow or the peak


def table(config: GridConfig, measures: Measures) -> GridTable:
    """Arrange what has been measured."""
    shape = (len(config.components), len(config.actives), config.n_folds)
    log_likelihood, error = np.full(shape, np.nan), np.full(shape, np.nan)
    for i, k in enumerate(config.components):
        for j, active in enumerate(config.actives):
            means_of_cell = _of_all_folds(config, measures, (k, active))
            if means_of_cell is not None and active <= k:
                log_likelihood[i, j], error[i, j] = means_of_cell
    baseline = {}
    for q, _ in config.baselines:
        means_of_cell = _of_all_folds(config, measures, (q, q))
        if means_of_cell is not None:
            baseline[q] = np.array(means_of_cell[0])
    return GridTable(config.components, config.actives, log_likelihood, error, baseline)


def over_folds(values: Floats) -> MeanDifference:
    """Average (..., fold) over folds; the standard error has one degree less than folds."""
    n_folds = values.shape[-1]
    return MeanDifference(values.mean(axis=-1), values.std(axis=-1, ddof=1) / np.sqrt(n_folds))


def best_of(log_likelihood: Floats) -> tuple[int, ...] | None:
    """Return the place of the largest mean of (..., fold), None where all are NaN."""
    means = log_likelihood.mean(axis=-1)
    if np.isnan(means).all():
        return None
    return tuple(int(place) for place in np.unravel_index(np.nanargmax(means), means.shape))


def near(log_likelihood: Floats) -> np.ndarray:
    """Mark, (...) bool, what of (..., fold) is within a standard error of the best, and the best.

    Cells are compared fold by fold.
    """
    place = best_of(log_likelihood)
    if place is None:
        return np.zeros(log_likelihood.shape[:-1], dtype=bool)
    behind = over_folds(log_likelihood[place] - log_likelihood)
    return behind.mean <= behind.standard_error  # NaN compares as False; 0 <= 0 at the best itself


def gain(grid: GridTable) -> Floats:
    """Log-likelihood of every cell over that of PPCA with L components, (nK, nL, fold)."""
    values: Floats = grid.log_likelihood - _baseline(grid, grid.actives)[None]
    return values


def closed(grid: GridTable) -> Floats:
    """Share of the gap between PPCA with L and with K components a cell closes, (nK, nL, fold).

    Above 1 the cell is better than PPCA with all K. NaN at K = L and where PPCA with K is no
    better than with L on the held-out rows: there is no gap then.
    """
    of_l, of_k = _baseline(grid, grid.actives)[None], _baseline(grid, grid.components)[:, None]
    gap = of_k - of_l
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(gap > 0, (grid.log_likelihood - of_l) / gap, np.nan)


def closed_on_average(grid: GridTable) -> Floats:
    """Return the share of the gap (nK, nL), from the log-likelihoods averaged over folds."""
    averaged = grid._replace(
        log_likelihood=grid.log_likelihood.mean(axis=-1, keepdims=True),
        baseline={q: values.mean(keepdims=True) for q, values in grid.baseline.items()},
    )
    return closed(averaged)[..., 0] if grid.baseline else np.full(grid.error.shape[:2], np.nan)


def elbow(sizes: np.ndarray, values: np.ndarray) -> int:
    """Return the place of the point farthest above the straight line between the ends.

    The sizes ascend. It is the last place with fewer than three points, or if none is above the
    line.
    """
    if len(sizes) < 3:
        return len(sizes) - 1
    share = (sizes - sizes[0]) / (sizes[-1] - sizes[0])
    above = values - (values[0] + share * (values[-1] - values[0]))
    scale = max(float(np.abs(values).max()), 1.0)
    return int(np.argmax(above)) if above.max() > 1e-9 * scale else len(sizes) - 1


def advise(grid: GridTable) -> Advice:
    """Apply the rule of this module to what there is; cells that are missing are left out."""
    if best_of(grid.log_likelihood) is None:
        return Advice(None, {})
    as_good = near(grid.log_likelihood)
    j = int(np.argmax(as_good.any(axis=0)))  # the first that has one
    k, active = grid.components[int(np.argmax(as_good[:, j]))], grid.actives[j]
    inside = k < grid.components[-1] and active < grid.actives[-1]
    budgets = {L: _advised(grid, j, at_peak=inside) for j, L in enumerate(grid.actives)}
    measured = {L: K for L, K in budgets.items() if K is not None}
    return Advice((k, active) if inside else None, measured)


class Suggestion(NamedTuple):
    """The K and L to try, and why in a sentence."""

    cell: Cell
    reason: str


def suggest(grid: GridTable, advice: Advice, n_active: int) -> Suggestion | None:
    """Return what to try first, at this L where the data leave it open; None without numbers."""
    if advice.cell is not None:
        return Suggestion(advice.cell, "No larger choice explains unseen rows better.")
    budgets = advice.budgets
    wanted = next((size for size in (n_active, 2, *budgets) if size in budgets), None)
    if wanted is None:
        return None
    k, sizes = budgets[wanted], grid.components
    curve = grid.log_likelihood[:, grid.actives.index(wanted)].mean(axis=-1)
    there = [size for size, value in zip(sizes, curve, strict=True) if np.isfinite(value)]
    at = there.index(k)
    if at + 1 == len(there):
        reason = f"With L = {wanted}, more components still help; a wider grid would tell more."
        return Suggestion((k, wanted), reason)
    value = {size: float(curve[sizes.index(size)]) for size in there}
    after = value[there[at + 1]] - value[k]
    text = f"With L = {wanted}, going beyond {k} components gains little: {fixed(after, 2)} nats"
    text += f" for {there[at + 1] - k} more"
    if at > 0:
        first, second = there[0], there[1]
        before = fixed(value[second] - value[first], 2)
        text += f", against {before} between {first} and {second}"
    return Suggestion((k, wanted), f"{text}.")


def _advised(grid: GridTable, j: int, *, at_peak: bool) -> int | None:
    """Return the K advised at one L: the peak or the elbow."""
    curve = grid.log_likelihood[:, j]
    if best_of(curve) is None or grid.actives[j] not in grid.baseline:
        return None
    peak = int(np.argmax(near(curve)))
    there = np.flatnonzero(~np.isnan(curve).any(axis=-1))
    upto = there[: int(np.flatnonzero(there == peak)[0]) + 1]
    bend = int(upto[elbow(np.array(grid.components)[upto], curve[upto].mean(axis=-1))])
    return grid.components[peak if at_peak else bend]


def _baseline(grid: GridTable, sizes: tuple[int, ...]) -> Floats:
    """Log-likelihood of PPCA of these sizes, (size, fold); NaN where not measured."""
    missing = np.full(grid.log_likelihood.shape[-1], np.nan)
    return np.stack([grid.baseline.get(q, missing) for q in sizes])


def _of_all_folds(
    config: GridConfig, measures: Measures, cell: Cell
) -> tuple[list[float], list[float]] | None:
    of_folds = (measures.get((*cell, fold)) for fold in range(config.n_folds))
    measured = [measure for measure in of_folds if measure is not None]
    if len(measured) < config.n_folds:
        return None
    return [measure.log_likelihood for measure in measured], [measure.error for measure in measured]


STABILITY_FOLDER = "stability"
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
    from appca.models.draws import match

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


def stored_stability(store: JournalStore, config: StabilityConfig) -> Stability | None:
    """Return the fits so far; None before the reference and one more are there."""
    K = config.cell[0]
    records = {int(record[0]): record[1:] for record in store.records(config.id)}
    numbers = [records[r] for r in range(1, config.repeats + 1) if len(records.get(r, ())) == K + 1]
    if not numbers or 0 not in records:
        return None
    values = np.array(numbers, dtype=np.float64)
    return Stability(float(records[0][0]), values[:, 0], values[:, 1:])
