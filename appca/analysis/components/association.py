"""Columns of a table against components: which go with using a component, and where on it.

A row has no score on a component that it does not use, so each column is tested twice: against
use, over all rows, and against the score, over the rows that use the component. Both tests compare
ranks, or classes of rows with ranks, by the share of the target's variance that the column
explains. An effect is the square root of that share, from 0, what chance explains, to 1, the most
that values and classes of these frequencies can explain. Of a number without ties and use it is
Cliff's delta, of a number and a score Spearman's correlation, of two classes and a score Cliff's
delta.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.components.table_columns import (
    TableColumn,
    columns_of,
    ranks,
    repeated,
    suspicion,
)
from appca.words.errors import InputError, naming_extra
from appca.words.wording import shortened

if TYPE_CHECKING:
    import pandas as pd

USE, SCORE = "use", "score"
LEAST_ROWS = 5  # that use a component, and that do not
NAMED = 2  # classes at each end
SHORT = 2  # letters of a class that says little without its column
SIGNIFICANT = 0.05  # of q, for names
_ROUNDING = 1e-9  # by which a permuted share may miss the same share in another order


class _Design(NamedTuple):
    """Columns side by side: each has one column of numbers, or one of 0s and 1s a class."""

    values: np.ndarray  # (n, P)
    starts: np.ndarray  # (C,) first place of each column
    weights: np.ndarray  # (P,) a share is the sum of the squared products times these
    classes: list[str]  # P names; empty ones of numbers


@naming_extra()
def association(
    model: Any,
    X: Any,
    table: Any,
    *,
    blocks: Any = None,
    n_permutations: int = 999,
    random_state: Any = None,
) -> "pd.DataFrame":
    """Test which columns of a table go with the components of a fitted model.

    Parameters
    ----------
    model : fitted estimator
        With K components.
    X : array-like, shape (N, D)
        Rows to describe.
    table : DataFrame, or mapping of str to array-like of shape (N,)
        Numbers, dates and classes of the rows. Texts, booleans, categoricals and whole numbers
        with at most 20 different values are classes; texts such as 2026-11-24 are dates. NaN, NaT,
        None and empty texts are missing: the row is left out of the tests of that column.
    blocks : str or array-like of shape (N,), optional
        A column of the table, or values, within which rows are exchangeable, such as a batch.
        Differences between blocks then count for nothing.
    n_permutations : int
        The smallest p value is 1 / (n_permutations + 1).
    random_state : int, Generator or None

    Returns
    -------
    DataFrame
        One row a test, the smallest `q` and then the largest effect first:

        - `column`, `kind` ("number", "date" or "class"), `component` (counted from 1), and `part`
          ("use" or "score");
        - `effect`, from 0 to 1, and `direction`: "rises", "falls", or the classes with more users
          or higher scores, and with fewer or lower ones;
        - `n`, the rows of the test; `p`, by permutation of the rows; `q`, `p` corrected for all
          tests (Benjamini and Hochberg, 1995);
        - `same_as`, an earlier column with the same information, and `technical`, why a column may
          stem from the measurement and not from what was measured; empty texts otherwise;
        - `high` and `low`, the classes of `direction` as tuples; empty of numbers.

        ``attrs["left_out"]`` names columns that could not be tested.

    Raises
    ------
    InputError
        When the table, or the blocks, have another number of rows than X, or a column of blocks
        is not in the table.

    Examples
    --------
    >>> import numpy as np
    >>> from appca import AdaptivePPCA, association
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine()
    >>> X = (wine.data - wine.data.mean(axis=0)) / wine.data.std(axis=0)
    >>> model = AdaptivePPCA(4, 2, random_state=0).fit(X)
    >>> tests = association(model, X, {"cultivar": wine.target}, random_state=0)
    >>> sorted(tests.columns)[:4]
    ['column', 'component', 'direction', 'effect']
    """
    rows = model.describe(X)
    return associated(
        rows.scores,
        rows.active,
        table,
        blocks=blocks,
        technical=measures_of_rows(X),
        n_permutations=n_permutations,
        random_state=random_state,
    )


def measures_of_rows(X: Any) -> dict[str, np.ndarray]:
    """Return measures (N,) of rows X (N, D) that may stem from the measurement; NaN is missing."""
    sums = np.asarray(X.sum(axis=1) if hasattr(X, "tocsr") else np.nansum(X, axis=1), dtype=float)
    measures = {"row sum": sums.ravel(), "row order": np.arange(len(sums.ravel()), dtype=float)}
    if not hasattr(X, "tocsr"):
        gaps = np.isnan(np.asarray(X, dtype=float)).mean(axis=1)
        measures |= {"missing share": gaps} if gaps.any() else {}
    return measures


def associated(
    scores: np.ndarray,
    active: np.ndarray,
    table: Any,
    *,
    blocks: Any = None,
    technical: Mapping[str, np.ndarray] | None = None,
    n_permutations: int = 999,
    random_state: Any = None,
) -> "pd.DataFrame":
    """Test columns against scores (N, K) and use (N, K); see `association`.

    `technical` has measures (N,) of rows; columns that agree with one of them are marked.
    """
    import pandas as pd

    rng = np.random.default_rng(random_state)
    columns, left_out = columns_of(table, len(scores))
    codes = _block_codes(blocks, {column.name: column for column in columns}, len(scores))
    if isinstance(blocks, str):
        columns = [column for column in columns if column.name != blocks]
    same = repeated(columns)
    about = {
        column.name: {
            "column": column.name,
            "kind": column.kind,
            "same_as": same.get(column.name, ""),
            "technical": suspicion(column, technical or {}),
        }
        for column in columns
    }
    tests = [
        about[column.name] | {"component": k + 1, "part": part, "n": n} | result
        for k, part, column, n, result in _all_tests(
            scores, active, columns, codes, n_permutations, rng
        )
    ]
    frame = pd.DataFrame(tests, columns=_HEADINGS)
    if len(frame):
        from scipy.stats import false_discovery_control

        frame["q"] = false_discovery_control(frame["p"])
    order = np.lexsort((frame["component"], -frame["effect"], frame["q"]))
    frame = frame.iloc[order].reset_index(drop=True)
    frame.attrs["left_out"] = left_out
    return frame


_HEADINGS = ["column", "kind", "component", "part", "effect", "direction"]
_HEADINGS += ["n", "p", "q", "same_as", "technical", "high", "low"]


def _block_codes(blocks: Any, columns: Mapping[str, TableColumn], n: int) -> np.ndarray:
    """Return the block of each row, (N,) counted from 0."""
    import pandas as pd

    if blocks is None:
        return np.zeros(n, dtype=np.int64)
    if isinstance(blocks, str):
        if blocks not in columns:
            msg = f"blocks must be a column of the table; got “{shortened(blocks)}”."
            raise InputError(msg)
        blocks = columns[blocks].values
    values = np.asarray(blocks)
    if values.shape != (n,):
        msg = f"blocks must have one value a row, {n:,}; got shape {values.shape}."
        raise InputError(msg)
    return np.asarray(pd.factorize(values, use_na_sentinel=False)[0])


def _all_tests(
    scores: np.ndarray,
    active: np.ndarray,
    columns: list[TableColumn],
    blocks: np.ndarray,
    n_permutations: int,
    rng: np.random.Generator,
) -> Iterator[tuple[int, str, TableColumn, int, dict[str, Any]]]:
    """Yield component, part, column, number of rows, and the result; columns with gaps apart."""
    groups: dict[bytes, list[TableColumn]] = {}
    for column in columns:
        groups.setdefault(np.packbits(column.there).tobytes(), []).append(column)
    for alike in groups.values():
        there = alike[0].there
        used = (active & there[:, None]).sum(axis=0)
        some = np.flatnonzero(np.minimum(used, there.sum() - used) >= LEAST_ROWS)
        enough = [
            k
            for k in np.flatnonzero(used >= 2 * LEAST_ROWS)
            if np.ptp(scores[active[:, k] & there, k]) > 0
        ]
        jobs = [(USE, some, there, active[:, some])]
        jobs += [(SCORE, np.array([k]), active[:, k] & there, scores[:, [k]]) for k in enough]
        for part, places, rows, targets in jobs:
            varied = [column for column in alike if column.varies(rows)]
            if not varied or not len(places):
                continue
            inside = targets[rows].astype(float)
            results = _explained(inside, varied, rows, blocks[rows], n_permutations, rng)
            for k, of_target in zip(places, results, strict=True):
                for column, result in zip(varied, of_target, strict=True):
                    yield int(k), part, column, int(rows.sum()), result


def _explained(
    targets: np.ndarray,
    columns: list[TableColumn],
    rows: np.ndarray,
    blocks: np.ndarray,
    n_permutations: int,
    rng: np.random.Generator,
) -> list[list[dict[str, Any]]]:
    """Return what each column explains of the ranks of each target, (n, M), none constant."""
    blocks = np.unique(blocks, return_inverse=True)[1].ravel()
    T = np.stack([_centred(ranks(target), blocks) for target in targets.T], axis=1)
    T /= np.sqrt(np.maximum((T**2).sum(axis=0), _ROUNDING))
    design = _design(columns, rows, blocks)
    products = T.T @ design.values
    observed = _shares(products, design)
    beyond, chance = np.zeros_like(observed), np.zeros_like(observed)
    for order in _orders(blocks, n_permutations, rng):
        shares = _shares(T[order].T @ design.values, design)
        beyond += shares >= observed - _ROUNDING
        chance += shares / n_permutations
    p = (1 + beyond) / (1 + n_permutations)
    ends = [*design.starts[1:].tolist(), products.shape[1]]
    parts = [
        _Design(design.values[:, a:b], design.starts[:1], design.weights[a:b], design.classes[a:b])
        for a, b in zip(design.starts.tolist(), ends, strict=True)
    ]
    results = []
    for m, ordered in enumerate(np.sort(T, axis=0).T):
        of_target = []
        for c, (part, start, end) in enumerate(zip(parts, design.starts, ends, strict=True)):
            of_part = products[m, start:end]
            room = max(_most(ordered, of_part, part) - chance[m, c], _ROUNDING)
            share = np.clip((observed[m, c] - chance[m, c]) / room, 0.0, 1.0)
            both = dict(zip(("high", "low"), _ends(of_part, part), strict=True))
            said = "; ".join(f"{end}: {', '.join(names)}" for end, names in both.items() if names)
            direction = said or ("rises" if of_part[0] > 0 else "falls")
            measured = {"effect": float(np.sqrt(share)), "p": float(p[m, c])}
            of_target.append(measured | {"direction": direction} | both)
        results.append(of_target)
    return results


def _design(columns: list[TableColumn], rows: np.ndarray, blocks: np.ndarray) -> _Design:
    values, weights, starts = [], [], []
    classes: list[str] = []
    for column in columns:
        x = column.values[rows]
        if column.kind == "class":
            codes = np.unique(x.astype(np.int64))
            part = (x[:, None] == codes).astype(float)
            named = [column.names[code] for code in codes]
        else:
            part, named = _centred(ranks(x), blocks)[:, None], [""]
        starts.append(len(classes))
        values.append(part)
        weights.append(1 / np.maximum((part**2).sum(axis=0), _ROUNDING))
        classes += named
    return _Design(np.hstack(values), np.array(starts), np.concatenate(weights), classes)


def _centred(values: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    means = np.bincount(blocks, values) / np.bincount(blocks)
    return np.asarray(values - means[blocks])


def _shares(products: np.ndarray, design: _Design) -> np.ndarray:
    """Return the shares (B, C) of the variance of B targets from their products (B, P)."""
    return np.add.reduceat(products**2 * design.weights, design.starts, axis=1)


def _most(ordered: np.ndarray, products: np.ndarray, design: _Design) -> float:
    """Return the share that one column would explain, were its rows in the target's order."""
    if not design.classes[0]:
        return float((ordered @ np.sort(design.values[:, 0])) ** 2 * design.weights[0])
    counts = np.rint(1 / design.weights).astype(np.int64)
    order = np.argsort(products * design.weights, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(ordered)])[np.cumsum(counts[order])]
    return float((np.diff(sums, prepend=0.0) ** 2 / counts[order]).sum())


def _ends(products: np.ndarray, design: _Design) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the classes at both ends, by how many standard errors their means are apart."""
    if not design.classes[0]:
        return (), ()
    z = products * np.sqrt(design.weights * (len(design.values) - 1))
    first = design.values.argmax(axis=0)  # the first row of a class, for ties
    order = sorted(range(len(z)), key=lambda c: (-round(float(z[c]), 9), first[c]))
    far = max(np.abs(z).max() / 2, _ROUNDING)
    high = tuple(design.classes[c] for c in order[:NAMED] if z[c] >= far)
    return high, tuple(design.classes[c] for c in order[::-1][:NAMED] if z[c] <= -far)


def _orders(
    blocks: np.ndarray, n_permutations: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield permutations (n,) of rows within blocks."""
    order = np.argsort(blocks, kind="stable")
    bounds = np.flatnonzero(np.diff(blocks[order], prepend=-1, append=-1))
    for _ in range(n_permutations):
        permuted = np.empty_like(order)
        for start, end in pairwise(bounds):
            permuted[order[start:end]] = rng.permutation(order[start:end])
        yield permuted


def proposed_names(tests: "pd.DataFrame") -> dict[int, str]:
    """Return a name for each component, counted from 1, after what goes with it most.

    Columns that are technical, or not significant at 5%, name nothing; no two components get the
    same name.
    """
    names: dict[int, str] = {}
    sound = tests[(tests["q"] < SIGNIFICANT) & (tests["technical"] == "")]
    for test in sound.to_dict("records"):
        name, direction = test["column"], test["direction"]
        if direction == "falls":
            name = f"low {name}"
        elif direction != "rises":
            first = test["high"][0] if test["high"] else ""
            name = f"{name} {first}" if 0 < len(first) <= SHORT else first
        if test["component"] not in names and name and name not in names.values():
            names[test["component"]] = name
    return names
