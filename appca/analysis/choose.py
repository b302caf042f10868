"""Choose K and L by held-out likelihood, and measure the stability of components."""

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from appca.analysis.campaign import CLEAR, MOST_ROWS, FitCampaign, Measure, Step, apart, sample_of
from appca.analysis.components import ROUGHLY
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.models.settings import LEARNED, estimator_class
from appca.models.settings import MODELS as ALL_MODELS
from appca.storage.journal import Record
from appca.words import fixed, percent, refuse_if

MODELS, MOST_CELLS = ("aPPCA", "aFA"), 600  # models with an exact held-out likelihood
LEAST_NOISE = 1e-6  # of the mean feature variance; with less, components reproduce the rows
LITTLE, MUCH = 0.1, 0.15  # shares of a gain: of one more component to be advised; not to be lacked
OF_PPCA = {"latent_variance": "component"}  # with L = K
MOST_RANKED = 1_000  # maximum number of features whose rank is found
_SEED_STEP = 1000  # so that seeds of repeats differ from a user's seeds

Cell = tuple[int, int]  # K, L
RECOVERED, MOST_REFUSED = 0.9, 5  # median |cos| over fits to halves; cells checked by these
FEW_PANELS, STEADY = 6, 0.95  # read at a glance; |cos| of folds with all rows, halves: 0.9
NONE, BELOW_NOISE = [None] * 6, -100.0  # a step not measured; share of a gain that is none
Floats = np.ndarray


class _HeldOut(FitCampaign):
    """Base of the settings of fits that are judged by held-out rows."""

    def incomplete(self, dataset: Dataset) -> float:
        """Return the share of rows with missing cells, which the fits leave out."""
        return len(dataset.incomplete_rows) / dataset.n_rows if self.fits_around_gaps else 0.0

    def prepared(self, dataset: Dataset, *parts: np.ndarray) -> list[Floats]:
        """Return parts of the rows after the preprocessing of the first, with NaN in gaps."""
        around, options = self.incomplete(dataset) > 0, Preprocessing.from_dict(self.preprocessing)
        X = [dataset.with_gaps(rows) if around else dataset.X[rows] for rows in parts]
        fitted = options.fit(X[0], np.isnan(X[0]) if around else None)
        return _but_empty(*map(fitted.transform, X)) if around else [*map(fitted.transform, X)]


def _but_empty(*parts: Floats) -> list[Floats]:
    """Give 0, the mean, to features that the first part lacks."""
    return [np.where(np.isnan(parts[0]).all(axis=0), 0.0, Y).astype(Y.dtype) for Y in parts]


@dataclass(frozen=True, eq=False)
class GridConfig(_HeldOut):
    """Settings of a grid over K and L; InputError for invalid values or too many cells.

    `parameters` are keywords of the estimator except K and L; cells with L > K are omitted. If
    there are more than `max_rows` rows, a random sample is used.
    """

    folder: ClassVar[str] = "held_out_3"
    components: tuple[int, ...]
    actives: tuple[int, ...]
    n_folds: int = 3
    max_rows: int = MOST_ROWS

    def __post_init__(self) -> None:
        super().__post_init__()
        msg = f"A grid needs a model with K and L, {' or '.join(MODELS)}; got “{self.model}”."
        refuse_if(self.model not in MODELS, msg)
        for name in ("n_components", "n_active"):
            self.parameters.pop(name, None)
        for name in ("components", "actives"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))
        n = len(self.cells)
        msg = f"A grid must have 1 to {MOST_CELLS} cells with L <= K; these K and L give {n:,}, so "
        refuse_if(not 0 < n <= MOST_CELLS, f"{msg}choose other ranges.")

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells (K, L) with an exact likelihood, sorted by K, then L."""
        every, can = product(self.components, self.actives), ALL_MODELS[self.model].can
        return tuple((k, L) for k, L in every if k >= L and can.is_exact(k, L))

    def steps(self) -> list[Step]:
        """Return every (K, L, fold), sorted by K and L."""
        return [(*cell, fold) for cell in self.cells for fold in range(self.n_folds)]

    def fits(self, n_rows: int) -> list[tuple[dict[str, Any], int, float]]:
        """Return the settings and the number of rows of every step's fit."""
        rows = min(n_rows, self.max_rows)
        train = rows - math.ceil(rows / self.n_folds)
        cost = 1 + rows / (train * self.n_folds)  # one more fit, to all rows
        return [({"n_components": k, "n_active": L}, train, cost) for k, L, _ in self.steps()]

    def measuring(self, dataset: Dataset) -> Measure:
        """Return a function that measures nats, gains over PPCA, nats of noise, |cos|, seconds.

        Gains, with L and with K, precede their errors; |cos| is with a fit to all rows.
        """
        from appca.models.draws import match

        split, pca = folds(dataset, self.n_folds, self.max_rows), self.model != "aFA"
        [Y] = self.prepared(dataset, sample_of(dataset.n_rows, self.max_rows, 0))

        @cache
        def components(k: int, active: int) -> Floats:
            return np.asarray(_fitted(self, Y, k, active, ppca=k == active).components_)

        @cache
        def prepared(fold: int) -> list[Floats]:
            return self.prepared(dataset, *split[fold])

        rank = cache(lambda fold: _rank(prepared(fold)[0]))

        @cache
        def of_ppca(active: int, fold: int) -> Floats:
            train, test = prepared(fold)
            model = _fitted(self, train, active, active, ppca=True)
            return np.asarray(model.score_samples(test)) + (np.nan if _floored(model, train) else 0)

        def measure_step(step: Step, _report: object) -> list[Any]:
            (k, active, fold), began = step, time.perf_counter()
            train, test = prepared(fold)
            most = np.inf if self.model == "aFA" else train.shape[1]
            if k > min(len(train) - 1, most) or k >= rank(fold):
                return [*NONE, 0.0]
            model = _fitted(self, train, k, active, ppca=k == active)
            if _floored(model, train):
                return [*NONE, round(time.perf_counter() - began, 4)]
            nats, without = model.score_samples(test), without_components(model, train, test)
            gains = [nats - of_ppca(q, fold) for q in (active, *[k] * pca)]
            cosines = match(components(k, active), model.components_).cosine
            told = [x for more in gains for x in (more.mean(), more.std() / np.sqrt(len(more)))]
            told += [np.nan] * (4 - len(told))
            measured = [nats.mean(), *told, without.mean(), *cosines]
            values = [float(value) if np.isfinite(value) else None for value in measured]
            return [*values, round(time.perf_counter() - began, 4)]

        return measure_step


def _rank(train: Floats) -> float:
    """Return the rank of features that add up to a constant or the like; infinite if it is full."""
    if not 2 <= train.shape[1] <= min(len(train) - 1, MOST_RANKED):
        return np.inf
    values = np.linalg.eigvalsh(np.cov(np.nan_to_num(train).T))
    varied = int((values > LEAST_NOISE * values.mean()).sum())
    return np.inf if varied == len(values) else varied


def _floored(model: Any, train: Floats) -> bool:
    noise, least = model.noise_variance_, LEAST_NOISE * np.nanvar(train, axis=0).mean()
    return np.ndim(noise) == 0 and bool(noise < least)


def _fitted(config: FitCampaign, train: Floats, k: int, active: Any, ppca: bool = False) -> Any:
    kind = OF_PPCA if ppca and config.model == "aPPCA" else {}
    sizes = {"n_components": k, "n_active": active, **kind}
    return estimator_class(config.model)(**config.parameters | sizes).fit(train)


def folds(dataset: Dataset, n_folds: int, max_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split rows in use into shuffled, ascending folds; units stay together, InputError if few."""
    rows = sample_of(dataset.n_rows, max_rows, 0)
    msg = f"{n_folds} folds need at least {max(n_folds, 4)} rows; got {len(rows)}, so choose "
    msg += "fewer folds or more rows."
    refuse_if(len(rows) < max(n_folds, 4), msg)
    parts = apart(dataset, rows, [1 / n_folds] * n_folds, [0, 1])
    return [(np.setdiff1d(rows, part, assume_unique=True), part) for part in parts]


def without_components(model: Any, train: Floats, test: Floats) -> Floats:
    """Return the nats of rows (n,) under noise alone, of the kind that `model` has."""
    scales = ("row_scale_values_", "row_scale_probabilities_")
    u, p = (np.atleast_1d(getattr(model, name, 1.0)) for name in scales)
    centre, seen = np.nanmean(train, axis=0, dtype=np.float64), ~np.isnan(test)
    axis = 0 if np.ndim(model.noise_variance_) else None
    variance = np.nanmean(np.square(train - centre), axis) / (p @ u) + np.zeros_like(centre)
    squares = np.nansum(np.square(test - centre) / variance, axis=1)[:, None]
    logs = np.log(p) - 0.5 * (seen.sum(axis=1)[:, None] * np.log(u) + squares / u)
    return np.asarray(np.logaddexp.reduce(logs, axis=1) - 0.5 * seen @ np.log(2 * np.pi * variance))


class GridTable(NamedTuple):
    """A grid as arrays; NaN where a cell is not measured in a fold."""

    components: tuple[int, ...]
    actives: tuple[int, ...]
    log_likelihood: Floats  # (nK, nL, fold) held-out nats per row
    over_ppca: Floats  # (nK, nL, fold, 4) gain over PPCA with L, standard error; with K, the same
    without: float  # log-likelihood without components
    cosines: Floats  # (nK, nL) least median |cos| of a component in folds with that of all rows


def table(config: GridConfig, measured: Mapping[Step, Record]) -> GridTable:
    """Arrange the records of a grid."""

    def in_folds(k: int, active: int) -> Floats:
        steps = ((k, active, fold) for fold in range(config.n_folds))
        records = [measured.get(step, NONE) for step in steps]
        cosines = [record[6:-1] or [None] * k for record in records]
        lowest = np.median(np.array(cosines, dtype=np.float64), axis=0).min()
        return np.array([[*record[:6], lowest] for record in records], dtype=np.float64)

    values = np.array([[in_folds(k, L) for L in config.actives] for k in config.components])
    noise = values[..., 5][np.isfinite(values[..., 5])]
    without, more = float(noise.mean()) if len(noise) else math.nan, values[..., 1:5]
    cosines = values[..., 0, 6]
    return GridTable(config.components, config.actives, values[..., 0], more, without, cosines)


def behind(log_likelihood: Floats) -> tuple[Floats, Floats]:
    """Return how far cells (..., fold) are below the best on average, and the standard errors."""
    means = np.nan_to_num(log_likelihood.mean(axis=-1), nan=-np.inf)
    gaps = log_likelihood[np.unravel_index(means.argmax(), means.shape)] - log_likelihood
    return gaps.mean(axis=-1), standard_error(gaps)


def near(log_likelihood: Floats) -> np.ndarray:
    """Mark, (...) bool, the best cell of (..., fold) and all cells within one standard error."""
    return np.asarray(np.less_equal(*behind(log_likelihood)))  # False for NaN


def standard_error(values: Floats) -> Floats:
    """Return the standard error (...) of the mean of values (..., fold)."""
    return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1]))


def gain(grid: GridTable, cell: Cell, of_k: int = 0) -> tuple[float, float]:
    """Return a cell's gain over PPCA with L, or with K, and its standard error over rows (1.7a)."""
    at = grid.components.index(cell[0]), grid.actives.index(cell[1])
    more, errors = grid.over_ppca[at][:, 2 * of_k : 2 * of_k + 2].T
    return float(more.mean()), float(np.sqrt(np.square(errors).sum()) / len(errors))


def plainer(grid: GridTable, cell: Cell, refused: Collection[Cell] = ()) -> tuple[Cell, str]:
    """Return a good cell with few panels that should pass all checks, and flaws of `cell`.

    A cell should pass if its components are the same in all folds (in `refused` cells they are
    not), one more per row adds little, its gain over PCA is clear, and it has at least half of the
    gain of `cell`. Of those with 90% of the best's gain, the smallest L is taken (1, which has no
    scatter plot, last), then the best K; if there is none, the steadiest with few panels, a clear
    gain and half of the whole one.
    """
    panels = np.array([[math.comb(k, L) for L in grid.actives] for k in grid.components])
    nats, least = grid.log_likelihood.mean(axis=-1), grid.cosines.copy()
    at = grid.components.index(cell[0]), grid.actives.index(cell[1])
    flaws = [f"{panels[at]:,} panels"] * bool(panels[at] > FEW_PANELS)
    for k, active in refused:
        least[grid.components.index(k), grid.actives.index(active)] = 0.0
    flaws += ["components that change with the rows"] * bool(not least[at] >= STEADY)
    said = f" K = {cell[0]} and L = {cell[1]} have {' and '.join(flaws)}"
    whole, means = nats - grid.without, grid.over_ppca.mean(axis=2)
    plain = (least >= STEADY) & (panels <= FEW_PANELS) & (2 * whole >= whole[at])
    plain &= means[..., 0] > CLEAR * means[..., 1]  # as for halves, the error of one fold
    plain[:, :-1] &= ~(np.diff(nats) > MUCH * whole[:, 1:])
    if not flaws or cell[0] == cell[1]:  # no sparse fit replaces PCA
        return cell, ""
    if not plain.any():  # the steadiest of those with few panels and a clear gain
        clear = (panels <= FEW_PANELS) & (means[..., 0] > CLEAR * means[..., 1])
        clear &= (2 * whole >= whole[at]) & (least >= ROUGHLY)
        order = np.lexsort((nats.ravel(), least.ravel().round(1), clear.ravel()))
        at_k, at_l = np.unravel_index(order[-1], nats.shape)
        steadiest = grid.components[at_k], grid.actives[at_l]
        which = "is free of such flaws" if clear.any() else "has components that return"
        return steadiest if clear.any() else cell, f"{said}; no choice here {which}."
    plain &= whole >= (1 - LITTLE) * whole[plain].max()
    plain[:, np.array(grid.actives) < 2] &= not plain[:, np.array(grid.actives) > 1].any()
    at_l = int(plain.any(axis=0).argmax())  # the smallest L that is as good
    at_k = int(np.where(plain[:, at_l], nats[:, at_l], -np.inf).argmax())
    lost = max(nats[at] - nats[at_k, at_l], 0.0)
    text = f"Its components hardly change with the rows.{said}, but predict {fixed(lost)} nats more"
    other = grid.components[at_k], grid.actives[at_l]
    return other, f"{text}, {percent(lost / whole[at])} of their whole gain."


def advise(grid: GridTable) -> tuple[Cell, str] | None:
    """Return the suggested K and L with the reason; None until a cell is measured.

    L is the smallest that lacks at most `LITTLE` of the gain of any larger L, and is within one
    standard error of the best cell if that is inside the grid. K is the smallest within one of the
    best for this L, or, if that is the largest K, that lacks at most `LITTLE` of its gain.
    """
    means = grid.log_likelihood.mean(axis=-1)
    if np.isnan(means).all():
        return None
    nats = np.nan_to_num(means, nan=-1e300)
    of_l, (at_k, at_l) = nats.max(axis=0), np.unravel_index(nats.argmax(), nats.shape)
    best = np.maximum.accumulate(of_l[::-1])[::-1]  # of this L and all larger ones
    enough = best - of_l <= LITTLE * np.maximum(best - grid.without, 1e-9)
    if at_k + 1 < len(nats) and at_l + 1 < len(of_l):
        enough &= near(grid.log_likelihood).any(axis=0)
    j = int(np.argmax(enough))
    L, some = grid.actives[j], ~np.isnan(means[:, j])
    ends, said = "largest of the grid and still helps", "enough: more adds under 10% of the gain"
    if 0 < j == len(of_l) - 1:
        said = f"the {ends}"
    sizes, curve = np.array(grid.components)[some], grid.log_likelihood[some, j]
    means, top = curve.mean(axis=-1), int(np.argmax(curve.mean(axis=-1)))
    rises, most = top + 1 == len(sizes) > 1, sizes[top]
    lacks = (means[top] - means) / max(means[top] - grid.without, 1e-9)
    at = int(np.argmax(~(lacks > LITTLE) if rises else near(curve)))
    rank = f"smallest within one standard error of the best, K = {most}"
    if rises:
        rank = f"smallest with 90% of the gain of K = {most}, the edge" if at < top else ends
    elif at == top:
        rank = "best for this L on unseen rows"
    reason = f"L = {L} is {said}. K = {sizes[at]} is the {rank}."
    if not near(grid.log_likelihood)[grid.components.index(sizes[at]), j]:
        edge = ", at the edge of the grid" * bool(at_k + 1 == len(nats) or at_l + 1 == len(of_l))
        reason += f" Best of all: K = {grid.components[at_k]} and L = {grid.actives[at_l]}{edge}."
    return (int(sizes[at]), L), reason


class Stability(NamedTuple):
    """Fits to random halves of the rows; gains are in held-out nats per row."""

    cosines: Floats  # (repeat, K) |cos| with the components of the fit to all rows
    over_ppca: Floats  # (repeat, 2) gain over PPCA with L components, standard error; NaN if L = K
    larger: Floats  # (repeat, 3) gain of L + 1 over L, standard error, share of its whole gain

    @property
    def n_recovered(self) -> int:
        """Number of components with a median |cos| of at least `RECOVERED`."""
        return int((np.median(self.cosines, axis=0) >= RECOVERED).sum())


@dataclass(frozen=True, eq=False)
class StabilityConfig(_HeldOut):
    """Settings of fits to random halves of the rows; InputError for invalid values.

    Components are matched with those of a fit to all rows by |cos|. Each fit is compared with
    PPCA with L components and with L + 1 on the other half. As in a grid, large data are sampled.
    """

    folder: ClassVar[str] = "halves"
    repeats: int = 4

    def steps(self) -> list[Step]:
        """Return the indices of the halves."""
        return [(number,) for number in range(1, self.repeats + 1)]

    def measuring(self, dataset: Dataset) -> Measure:
        """Return a function that fits to a half and compares this fit with others."""
        from appca.models.draws import match

        [Y] = self.prepared(dataset, every := sample_of(dataset.n_rows, MOST_ROWS, 0))
        K, L, D = self.parameters["n_components"], self.parameters["n_active"], Y.shape[1]
        of_ppca, more = ((K + 1) // 2, K + 1) if L == LEARNED else (L, L + 1)
        others = (of_ppca, of_ppca), (K if K > L else more, more)
        can = ALL_MODELS[self.model].can

        @cache
        def components() -> Floats:
            return np.asarray(_fitted(self, Y, K, L).components_)

        def measure_step(step: Step, _report: object) -> list[Any]:
            halves = apart(dataset, every, (0.5, 0.5), _SEED_STEP * step[0])
            train, rest = _but_empty(*(Y[np.searchsorted(every, half)] for half in halves))
            gains, again = list[float | None](), _fitted(self, train, K, L)
            without = without_components(again, train, rest).mean()
            for k, active in others:
                if not active <= k <= D or (k, active) == (K, L) or not can.is_exact(k, active):
                    gains += [None, None, None]
                    continue
                other = _fitted(self, train, k, active, ppca=k == active <= K)
                more = other.score_samples(rest) - again.score_samples(rest)
                whole = other.score(rest) - without
                share = more.mean() / whole if whole > 0 else BELOW_NOISE
                told = more.mean(), more.std() / np.sqrt(len(more)), share
                gains += map(float, told)
            return [*gains, *match(components(), again.components_).cosine.tolist()]

        return measure_step

    def outcome(self, home: Path) -> Stability | None:
        """Return the results of all fits, or None until the last one is stored."""
        records = self.records(home)
        if len(records) < self.repeats:
            return None
        values = np.array([record for _, record in sorted(records.items())], dtype=np.float64)
        return Stability(values[:, 6:], values[:, :2] * [-1, 1], values[:, 3:6])


def sizes_of(cell: Cell, model: str) -> dict[str, Any]:
    """Return the parameters of a fit with these K and L."""
    of_ppca = OF_PPCA if cell[0] == cell[1] and model == "aPPCA" else {}
    return {"n_components": cell[0], "n_active": cell[1], **of_ppca}


def checked(
    config: GridConfig, home: Path, check: Callable[[StabilityConfig], object] = bool
) -> tuple[Cell, Cell, str] | None:
    """Return the advised cell, the best one and the reason; None until a cell is measured.

    Cells with other components in fits to halves, if stored or made by `check`, are not advised.
    """
    grid, refused = table(config, config.records(home)), set[Cell]()
    if (advised := advise(grid)) is None:
        return None

    def halves_of(cell: Cell) -> StabilityConfig:
        parameters = config.parameters | sizes_of(cell, config.model)
        return StabilityConfig(config.dataset, config.preprocessing, config.model, parameters)

    for k, active in config.cells:  # components that halves recover hardly change
        if (before := halves_of((k, active)).outcome(home)) and before.n_recovered == k:
            grid.cosines[grid.components.index(k), grid.actives.index(active)] = 1.0
    while True:
        cell, flaws = plainer(grid, advised[0], refused)
        if cell in refused:
            break
        check(halves_of(cell))
        outcome = halves_of(cell).outcome(home)
        if outcome is None or outcome.n_recovered == cell[0]:
            break
        refused |= {cell} if len(refused) < MOST_REFUSED - 1 else {*config.cells}
    return cell, advised[0], flaws if cell != advised[0] else advised[1] + flaws
