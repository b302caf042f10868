"""New rows under a fitted model: how well they fit, and whether they drift."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.association import associated
from appca.analysis.fitted import DescribedRows
from appca.analysis.rows import (
    DistanceLimits,
    Distances,
    limits_of_the_data,
    limits_of_the_model,
    ratios,
)
from appca.analysis.rule import USES, apart, component_of, rule_table
from appca.analysis.tables import projection_table
from appca.frames import (
    Matrix,
    columns_of,
    joined,
    matrix_of,
    n_rows_of,
    named_columns,
    number_column,
)
from appca.words import InputError, naming_extra

if TYPE_CHECKING:
    import pandas as pd

    from appca.data.dataset import Dataset

LEAST = 5  # rows on each side
SAME = 1e-6  # nats a row, by which the likelihood of the rows of a fit may differ from its end


@naming_extra()
def drift(
    model: Any,
    X_old: Any,
    X_new: Any,
    *,
    n_permutations: int = 999,
    random_state: Any = 0,
) -> "pd.DataFrame":
    """Test which columns and components differ between old and new rows.

    Parameters
    ----------
    model : fitted estimator
        With K components. If it was fitted to `X_old`, its components suit these rows better than
        any others, which looks like a shift. Then it is fitted once more, to half of them, and
        components are compared between the other half and `X_new`. A part of the rows of the fit
        is not recognized: pass all of them, or rows that the fit has not seen.
    X_old, X_new : array-like or data frame, shapes (N, D) and (M, D)
        At least five rows each. Columns without names are called "feature 1" and so on.
    n_permutations : int
        Exchanges of old and new rows for each test; see `association`.
    random_state : int, Generator or None

    Returns
    -------
    DataFrame
        One row a test, the smallest `q` and then the largest effect first:

        - `column`: a feature, "uses k" or "score k" of component k, counted from 1; a feature with
          such a name gets " (column)" behind it;
        - `part`: "level", or "spread", the distance from the median of all rows;
        - `effect`, from -1 to 1: of numbers Cliff's delta, positive where new rows are higher or
          spread wider, and `direction`;
        - `old` and `new`: the means of both sides, the shares of rows that use a component, or the
          mean distances from the median; NaN of classes;
        - `n` rows; `p`, by permutation, and `q`, corrected for all tests (Benjamini and Hochberg,
          1995).

        ``attrs["least_q"]`` is the least q that a single shift could have: if it is 5% or more,
        nothing can be concluded.

    Raises
    ------
    InputError
        When a side has fewer than five rows, or they have different columns or another order.
    """
    sides = [matrix_of(X_old), matrix_of(X_new)]
    widths = [side.values.shape[1] for side in sides]
    named = [side.names for side in sides if side.names is not None]
    if named[1:] and named[0] != named[1] and set(named[0]) == set(named[1]):
        msg = "X_new has the columns of X_old in another order; bring them into the same order."
        raise InputError(msg)
    rng = np.random.default_rng(random_state)
    unnamed = tuple(f"feature {d + 1}" for d in range(widths[0]))
    names = apart(next((names for names in named if len(names) == widths[0]), unnamed))
    halves = _split(model, sides[0], rng)
    tables = []
    for side in sides:
        rows = model.describe(side.for_model(model))
        scores, active = rows.scores, rows.active
        if halves is not None:
            rows = halves.model.describe(side.for_model(model))
            scores = rows.scores[:, halves.order] * halves.sign
            active = rows.active[:, halves.order]
        X = side.values.toarray() if hasattr(side.values, "toarray") else side.values
        features = {name: number_column(name, x) for name, x in zip(names, X.T, strict=True)}
        tables.append(rule_table(scores, active, features))
    if halves is not None:
        for name, column in tables[0].items():
            if component_of(name)[1]:
                column.values[halves.fitted] = np.nan
    return drifted(*tables, n_permutations=n_permutations, random_state=rng)


class _Halves(NamedTuple):
    """A fit to half of the old rows, its components matched to those of the fit to all."""

    model: Any
    fitted: np.ndarray  # numbers of the rows of the fit
    order: np.ndarray  # (K,)
    sign: np.ndarray  # (K,)


def _split(model: Any, old: Matrix, rng: np.random.Generator) -> _Halves | None:
    """Fit half of the old rows where the model was fitted to all of them, by its likelihood."""
    from sklearn.base import clone

    from appca.models.draws import match

    inner = getattr(model, "estimator_", model)
    at_end = np.ravel(getattr(inner, "log_likelihoods_", ()))[-1:]
    n, W = old.values.shape[0], getattr(inner, "components_", None)
    if not len(at_end) or W is None or n < 4 * len(W):
        return None
    likelihood = float(np.sum(model.score_samples(old.for_model(model)), dtype=float))
    if abs(likelihood - at_end[0]) > SAME * n:
        return None
    half = np.sort(rng.permutation(n)[: n // 2])
    again = clone(model).fit(old._replace(values=old.values[half]).for_model(model))
    matched = getattr(again, "estimator_", again).components_
    _, order, sign, _ = match(np.asarray(W, float), np.asarray(matched, float))
    return _Halves(again, half, order, sign)


def drifted(
    old: Any,
    new: Any,
    *,
    n_permutations: int = 999,
    random_state: Any = 0,
) -> "pd.DataFrame":
    """Compare two tables of columns and components (see `rule_table`); see `appca.drift`."""
    old, new = named_columns(old), named_columns(new)
    n_old, n_new = n_rows_of(old), n_rows_of(new)
    if min(n_old, n_new) < LEAST or set(old) != set(new):
        msg = (
            f"Old and new rows need the same columns and {LEAST} rows each; got {n_old:,} and "
            f"{n_new:,} rows, {len(set(old) ^ set(new))} columns in one only."
        )
        raise InputError(msg)
    is_new = np.arange(n_old + n_new) >= n_old
    columns, left_out = columns_of(
        {name: joined(old[name], new[name]) for name in old}, len(is_new)
    )
    of = {f"level {column.name}": column for column in columns}
    for column in columns:
        if column.kind == "number" and component_of(column.name)[0] != USES:
            away = np.abs(column.values - np.nanmedian(column.values))
            of[f"spread {column.name}"] = column._replace(values=away)
    tests = associated(
        np.zeros((len(is_new), 1)),
        is_new[:, None],
        of,
        n_permutations=n_permutations,
        random_state=random_state,
    )
    for side, inside in (("old", ~is_new), ("new", is_new)):
        means = [
            float(np.nanmean(of[name].values[inside])) if of[name].kind != "class" else np.nan
            for name in tests["column"]
        ]
        tests[side] = np.array(means, dtype=float)
    tests["part"] = [name.partition(" ")[0] for name in tests["column"]]
    tests["column"] = [name.partition(" ")[2] for name in tests["column"]]
    tests["effect"] *= np.where(tests["direction"] == "falls", -1.0, 1.0)
    ways = {"rises": "higher", "falls": "lower"}
    tests["direction"] = [ways.get(way, way) for way in tests["direction"]]
    tests.attrs["left_out"] = left_out
    return tests[["column", "part", "effect", "direction", "old", "new", "n", "p", "q"]]


LEVEL = 0.99  # of either limit, where nobody chose another


class NewRowsVerdict(NamedTuple):
    """How new rows stand to the limits of a run, at one level."""

    distances: Distances  # of the new rows
    of_model: DistanceLimits  # chi-square quantiles
    of_data: DistanceLimits | None  # of the run's own rows; None where they are not known

    @property
    def limits(self) -> DistanceLimits:
        """The limits that decide: those of the run's rows, where they are known."""
        return self.of_model if self.of_data is None else self.of_data

    @property
    def ratios(self) -> np.ndarray:
        """T2 and Q over the limits that decide, (N, 2)."""
        return ratios(self.distances, self.limits)

    @property
    def fits(self) -> np.ndarray:
        """Whether a row is within both limits, (N,) bool."""
        return np.asarray(np.all(self.ratios <= 1, axis=1))

    @property
    def order(self) -> np.ndarray:
        """Row numbers, those that fit least first, (N,)."""
        return np.argsort(-self.ratios.max(axis=1), kind="stable")


def verdict(distances: Distances, run: Distances | None, level: float = LEVEL) -> NewRowsVerdict:
    """Compare the distances of new rows with limits that a share `level` of rows stays below.

    `run` has the distances of the rows of the fit; None where only the model is known.
    """
    data_limits = None if run is None else limits_of_the_data(distances, level, run)
    return NewRowsVerdict(distances, limits_of_the_model(distances, level), data_limits)


def new_rows_table(
    dataset: "Dataset", projected: DescribedRows, said: NewRowsVerdict
) -> "pd.DataFrame":
    """Return `projection_table` of new rows with their distances and whether they fit.

    After the projection come `t2` and `q`, `t2_limit_model` and `q_limit_model`, where the run's
    rows are known `t2_limit_run` and `q_limit_run`, and `fits`.
    """
    more = {"t2": said.distances.t2, "q": said.distances.q}
    for name, limits in (("model", said.of_model), ("run", said.of_data)):
        if limits is not None:
            more |= {f"t2_limit_{name}": limits.t2, f"q_limit_{name}": limits.q}
    more["fits"] = said.fits
    table = projection_table(dataset, projected)
    taken = {name: f"label_{name}" for name in table.columns if name in more}
    return table.rename(columns=taken).assign(**more)
