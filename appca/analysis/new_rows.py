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
from appca.analysis.rule import rule_table
from appca.analysis.tables import projection_table
from appca.words import InputError, naming_extra

if TYPE_CHECKING:
    import pandas as pd

    from appca.data.dataset import Dataset

LEAST = 5  # rows on each side


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
        With K components.
    X_old, X_new : array-like or DataFrame, shapes (N, D) and (M, D)
        At least five rows each. Columns without names are called "feature 1" and so on.
    n_permutations : int
        Number of exchanges of old and new rows; the smallest p value is 1 / (n_permutations + 1).
    random_state : int, Generator or None

    Returns
    -------
    DataFrame
        One row a test, the smallest `q` and then the largest effect first:

        - `column`: a feature, "uses k" or "score k" of component k, counted from 1;
        - `part`: "level", or "spread", the distance from the median of the row's side;
        - `effect`, from -1 to 1: of numbers Cliff's delta, positive where new rows are higher or
          spread wider, and `direction`;
        - `old` and `new`: the means of both sides, the shares of rows that use a component, or the
          mean distances from the median; NaN of classes;
        - `n` rows; `p`, by permutation, and `q`, corrected for all tests (Benjamini and Hochberg,
          1995).

    Raises
    ------
    InputError
        When a side has fewer than five rows, or they have different columns.
    """
    sides = [_described(model, X) for X in (X_old, X_new)]
    return drifted(*sides, n_permutations=n_permutations, random_state=random_state)


def _described(model: Any, X: Any) -> "pd.DataFrame":
    rows, values = model.describe(X), np.asarray(X, dtype=float)
    names = getattr(X, "columns", None)
    names = [f"feature {d + 1}" for d in range(values.shape[1])] if names is None else names
    return rule_table(rows.scores, rows.active, dict(zip(map(str, names), values.T, strict=True)))


def drifted(
    old: "pd.DataFrame",
    new: "pd.DataFrame",
    *,
    n_permutations: int = 999,
    random_state: Any = 0,
) -> "pd.DataFrame":
    """Compare two tables of columns and components (see `rule_table`); see `appca.drift`."""
    import pandas as pd

    if min(len(old), len(new)) < LEAST or set(old.columns) != set(new.columns):
        msg = (
            f"Old and new rows need the same columns and {LEAST} rows each; got {len(old):,} and "
            f"{len(new):,} rows, {len(set(old.columns) ^ set(new.columns))} columns in one only."
        )
        raise InputError(msg)
    both = pd.concat([old, new], ignore_index=True)
    is_new = np.arange(len(both)) >= len(old)
    numbers = both.select_dtypes(["number", "bool"]).astype(float)
    away = (numbers - numbers.groupby(is_new).transform("median")).abs()
    of = {("level", name): numbers.get(name, both[name]) for name in both.columns}
    of |= {("spread", name): away[name] for name in numbers.columns if both[name].dtype != bool}
    keys = {str(key): key for key in of}
    tests = associated(
        np.zeros((len(both), 1)),
        is_new[:, None],
        {name: of[key] for name, key in keys.items()},
        n_permutations=n_permutations,
        random_state=random_state,
    )
    pairs = [keys[name] for name in tests["column"]]
    tests["part"], tests["column"] = zip(*pairs, strict=True)
    means = {"level": numbers.groupby(is_new).mean(), "spread": away.groupby(is_new).mean()}
    for side, name in enumerate(("old", "new")):
        tests[name] = [
            float(means[part][c].iloc[side]) if c in numbers else np.nan for part, c in pairs
        ]
    tests["effect"] *= np.where(tests["direction"] == "falls", -1.0, 1.0)
    ways = {"rises": "higher", "falls": "lower"}
    tests["direction"] = [ways.get(way, way) for way in tests["direction"]]
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
