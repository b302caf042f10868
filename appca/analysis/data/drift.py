"""New rows beside old ones: which columns and components have shifted, and by how much."""

from typing import TYPE_CHECKING, Any

import numpy as np

from appca.analysis.components.association import associated
from appca.analysis.groups.rule import rule_table
from appca.words.errors import InputError, naming_extra

if TYPE_CHECKING:
    import pandas as pd

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
