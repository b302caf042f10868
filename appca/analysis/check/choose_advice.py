"""What a grid says: the best cell, the elbow at each budget L, and which K and L to take.

Folds differ among themselves by what their rows are like, and all cells share that. So cells are
compared fold by fold: the difference of two cells is averaged over the folds, and its standard
error is that of these differences.

The rule. Of all cells within one standard error of the best one, take the smallest L, and with it
the smallest K. If they lie inside the grid, the data have shown their size, and (K, L) is advised.
If they lie at its largest K or L, more of everything explains more until it does not, as on most
real data: then the budget L is for the person to choose.

At each budget L, the *peak* is the smallest K whose likelihood lies within one standard error of
the best K of that budget. The *elbow* is the point of the curve from the smallest K to the peak
that lies farthest above the straight line between these ends, before which a further component buys
more than on average and after which less; without such a point it is the peak itself. Advised at a
budget is the peak where the data have shown their size, else the elbow.
"""

from typing import NamedTuple

import numpy as np

from appca.analysis.check.choose import Cell, GridConfig, Measures
from appca.words.numbers import fixed

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
