"""Associations between components and the columns of a table."""

import re
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.fitted import DescribedRows
from appca.analysis.permutation import ROUNDING, corrected, permuted
from appca.data.dataset import Dataset
from appca.frames import FEW_INTEGERS, TableColumn, class_names, columns_of, matrix_of
from appca.words import InputError, naming_extra, shortened

if TYPE_CHECKING:
    import pandas as pd

ALIKE = 0.95  # rank correlation with a technical measure from which on a column is marked
USE, SCORE = "use", "score"
LEAST_ROWS = 5  # that use a component, and that do not
NAMED = 2  # classes at each end
SHORT = 2  # letters of a class that says little without its column
SIGNIFICANT = 0.05  # of q, for names
_BATCH = re.compile(
    r"(^|[\W_])(batch|plate|lane|run|chip|slide|scanner|site|operator|session)([\W_\d]|$)", re.I
)
_HEADINGS = ["column", "kind", "component", "part", "effect", "direction"]
_HEADINGS += ["n", "p", "q", "same_as", "technical", "high", "low"]
_DRAWN = 1 << 22  # numbers of permuted targets that are held at once


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
    X : array-like or data frame, shape (N, D)
        Rows to describe.
    table : data frame, or mapping of str to array-like of shape (N,)
        Numbers, dates and classes of the rows. Values decide, not dtypes: texts, booleans,
        categoricals and whole numbers with at most 20 different values are classes; texts such as
        2026-11-24 are dates. NaN, NaT, None, masked values and empty texts are missing: the row is
        left out of the tests of that column.
    blocks : str or array-like of shape (N,), optional
        A column of the table, or values, within which rows are exchangeable, such as a batch.
        Differences between blocks then count for nothing.
    n_permutations : int
        Permutations of each test, ten times as many for tests that under 20 of them reach. If none
        does, p comes from a generalised Pareto tail (Knijnenburg et al., 2009), so it has no lower
        bound but the number of different orders of the rows.
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

        ``attrs["left_out"]`` names columns that could not be tested. ``attrs["least_q"]`` is the
        least q that a single effect could have: if it is 5% or more, no conclusion is possible.

    Raises
    ------
    InputError
        When the table, or the blocks, have another number of rows than X, two columns have the same
        name, or a column of blocks is not in the table.

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
    rows = matrix_of(X)
    described = model.describe(rows.for_model(model))
    return associated(
        described.scores,
        described.active,
        table,
        blocks=blocks,
        technical=measures_of_rows(rows.values),
        n_permutations=n_permutations,
        random_state=random_state,
    )


def measures_of_rows(X: Any) -> dict[str, np.ndarray]:
    """Return measures (N,) of rows X (N, D) that may stem from the measurement; NaN is missing."""
    sparse = hasattr(X, "tocsr")
    sums = np.asarray(X.sum(axis=1) if sparse else np.nansum(X, axis=1), dtype=float).ravel()
    measures = {"row sum": sums, "row order": np.arange(len(sums), dtype=float)}
    if not sparse and (gaps := np.isnan(np.asarray(X, dtype=float)).mean(axis=1)).any():
        measures["missing share"] = gaps
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
    codes = _block_codes(blocks, columns, len(scores))
    columns = [column for column in columns if not isinstance(blocks, str) or column.name != blocks]
    by_gaps: dict[bytes, list[TableColumn]] = {}
    for column in columns:
        by_gaps.setdefault(np.packbits(column.there).tobytes(), []).append(column)
    tests: list[dict[str, Any]] = []
    for alike in by_gaps.values():
        there = alike[0].there
        used = (active & there[:, None]).sum(axis=0)
        both = np.flatnonzero(np.minimum(used, there.sum() - used) >= LEAST_ROWS)
        jobs = [(USE, both, there, active[:, both])]
        for k in np.flatnonzero(used >= 2 * LEAST_ROWS):
            users = active[:, k] & there
            if np.ptp(scores[users, k]) > 0:
                jobs.append((SCORE, np.array([k]), users, scores[:, [k]]))
        for part, places, rows, targets in jobs:
            varied = [column for column in alike if column.varies(rows)]
            if varied and len(places):
                inside = targets[rows].astype(float)
                results = _tested(inside, varied, rows, codes[rows], n_permutations, rng)
                for m, result in results:
                    about = {"component": int(places[m]) + 1, "part": part, "n": int(rows.sum())}
                    tests.append(about | result)
    same = _repeated(columns)
    marked = {column.name: _suspicion(column, technical or {}) for column in columns}
    frame = pd.DataFrame(tests, columns=[*_HEADINGS, "least"])
    frame["q"] = corrected(frame["p"].to_numpy(dtype=float))
    frame["same_as"] = [same.get(name, "") for name in frame["column"]]
    frame["technical"] = [marked[name] for name in frame["column"]]
    order = np.lexsort((frame["component"], -frame["effect"].astype(float), frame["q"]))
    least_q = min(1.0, len(frame) * float(frame["least"].min())) if len(frame) else 1.0
    frame = frame.iloc[order].reset_index(drop=True)[_HEADINGS]
    frame.attrs |= {"left_out": left_out, "least_q": least_q}
    return frame


def _block_codes(blocks: Any, columns: Sequence[TableColumn], n: int) -> np.ndarray:
    """Return the block of each row, (N,) counted from 0; missing values are a block."""
    if blocks is None:
        return np.zeros(n, dtype=np.int64)
    if isinstance(blocks, str):
        named = {column.name: column.values for column in columns}
        if blocks not in named:
            msg = f"blocks must be a column of the table; got “{shortened(blocks)}”."
            raise InputError(msg)
        values = named[blocks]
    else:
        values = np.array(["" if name is None else name for name in class_names(blocks)])
    if values.shape != (n,):
        msg = f"blocks must have one value a row, {n:,}; got shape {values.shape}."
        raise InputError(msg)
    return np.asarray(np.unique(values, return_inverse=True)[1]).ravel()


def _repeated(columns: Sequence[TableColumn]) -> dict[str, str]:
    """Return the name of the earlier column that a column repeats, by the name of the latter.

    Classes, and few different numbers, repeat others under any names; many numbers in the same
    order or the reverse.
    """
    first: dict[bytes, str] = {}
    same = {}
    for column in columns:
        values = column.values[column.there]
        levels, seen, codes = np.unique(values, return_index=True, return_inverse=True)
        if column.kind != "class" and len(levels) > FEW_INTEGERS:
            codes = min(codes, len(levels) - 1 - codes, key=lambda c: c.tolist())
        else:
            codes = np.argsort(np.argsort(seen))[codes]
        form = np.packbits(column.there).tobytes() + np.asarray(codes, dtype=np.int32).tobytes()
        if form in first:
            same[column.name] = first[form]
        first.setdefault(form, column.name)
    return same


def _suspicion(column: TableColumn, measures: Mapping[str, np.ndarray]) -> str:
    """Say why a column may stem from the measurement: a measure (N,) or a name; else nothing.

    A number does if its ranks are nearly those of a measure, a class if the order of a measure
    keeps every class together.
    """
    from scipy.stats import spearmanr

    for name, measure in measures.items():
        rows = column.there & np.isfinite(measure)
        values, measured = column.values[rows], measure[rows]
        n_levels, n_measured = len(np.unique(values)), len(np.unique(measured))
        if min(n_levels, n_measured) < 2:
            continue
        if column.kind == "class":
            changes = np.count_nonzero(np.diff(values[np.argsort(measured, kind="stable")]))
            alike = changes == n_levels - 1 and n_measured >= n_levels
        else:
            alike = abs(spearmanr(values, measured)[0]) >= ALIKE
        if alike:
            return f"follows the {name}"
    return "named like a batch" if _BATCH.search(column.name) else ""


class _Design(NamedTuple):
    """Columns side by side: each has one column of numbers, or one of 0s and 1s a class."""

    values: np.ndarray  # (n, P)
    starts: np.ndarray  # (C + 1,) first place of each column, and the end
    weights: np.ndarray  # (P,) a share is the sum of the squared products times these
    classes: list[str]  # P names; empty ones of numbers

    def take(self, c: np.ndarray) -> "_Design":
        """Return the design of some columns."""
        parts = [np.arange(self.starts[i], self.starts[i + 1]) for i in c]
        at = np.concatenate(parts)
        starts = np.cumsum([0, *map(len, parts)])
        names = [self.classes[i] for i in at]
        return _Design(self.values[:, at], starts, self.weights[at], names)


def _tested(
    targets: np.ndarray,
    columns: Sequence[TableColumn],
    rows: np.ndarray,
    blocks: np.ndarray,
    n_permutations: int,
    rng: np.random.Generator,
) -> list[tuple[int, dict[str, Any]]]:
    """Test what each column explains of the ranks of each target m, (n, M), none constant."""
    from scipy.stats import rankdata

    blocks = np.unique(blocks, return_inverse=True)[1].ravel()
    order = np.argsort(blocks, kind="stable")  # blocks of rows are then adjacent
    blocks, targets = blocks[order], targets[order]
    inside = [column.values[rows][order] for column in columns]
    T = np.stack([_centred(rankdata(target), blocks) for target in targets.T], axis=1)
    T /= np.sqrt(np.maximum((T**2).sum(axis=0), ROUNDING))
    design = _design(columns, inside, blocks)
    products = T.T @ design.values
    observed = _shares(products, design)
    n, M, C = len(T), T.shape[1], len(columns)
    ends = np.flatnonzero(np.diff(blocks, prepend=-1, append=-1))

    def draw(m: int, tests: np.ndarray) -> np.ndarray:
        places = np.divmod(tests, C)
        (some, k), (few, c) = (np.unique(place, return_inverse=True) for place in places)
        orders = np.tile(np.arange(n), (m, 1))
        for start, end in pairwise(ends):
            orders[:, start:end] = rng.permuted(orders[:, start:end], axis=1)
        part = design if len(few) == C else design.take(few)
        shares = _shares(T.T[some][:, orders] @ part.values, part)
        return np.asarray(shares[k.ravel(), :, c.ravel()].T)

    ties = [[_ties(x, blocks) for x in values] for values in (targets.T, inside)]
    least = np.exp(np.maximum.outer(*map(np.array, ties)) - _ties(np.zeros(n), blocks))
    step = max(1, min(500, _DRAWN // (n * M)))
    tests = permuted(observed.ravel(), draw, n_permutations, least.ravel(), step)
    p, chance = (values.reshape(M, C) for values in tests)
    results = []
    ordered = np.sort(T, axis=0)
    for m, c in np.ndindex(M, C):
        part = design.take(np.array([c]))
        of_part = products[m, design.starts[c] : design.starts[c + 1]]
        possible = max(_most(ordered[:, m], of_part, part) - chance[m, c], ROUNDING)
        share = np.clip((observed[m, c] - chance[m, c]) / possible, 0.0, 1.0)
        high, low = _ends(of_part, part)
        words = [f"{end}: {', '.join(x)}" for end, x in (("high", high), ("low", low)) if x]
        result = {
            "column": columns[c].name,
            "kind": columns[c].kind,
            "effect": float(np.sqrt(share)),
            "direction": "; ".join(words) or ("rises" if of_part[0] > 0 else "falls"),
            "p": float(p[m, c]),
            "least": float(least[m, c]),
            "high": high,
            "low": low,
        }
        results.append((m, result))
    return results


def _design(
    columns: Sequence[TableColumn], values: list[np.ndarray], blocks: np.ndarray
) -> _Design:
    from scipy.stats import rankdata

    parts, names = [], []
    for column, x in zip(columns, values, strict=True):
        if column.kind == "class":
            codes = np.unique(x.astype(np.int64))
            parts.append((x[:, None] == codes).astype(float))
            names += [column.names[code] for code in codes]
        else:
            parts.append(_centred(rankdata(x), blocks)[:, None])
            names.append("")
    X = np.hstack(parts)
    weights = 1 / np.maximum((X**2).sum(axis=0), ROUNDING)
    return _Design(X, np.cumsum([0, *(part.shape[1] for part in parts)]), weights, names)


def _centred(values: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    means = np.bincount(blocks, values) / np.bincount(blocks)
    return np.asarray(values - means[blocks])


def _ties(values: np.ndarray, blocks: np.ndarray) -> float:
    """Return the logarithm of the number of orders of rows that leave values (n,) as they are."""
    from scipy.special import gammaln

    levels, codes = np.unique(values, return_inverse=True)
    return float(gammaln(np.bincount(blocks * len(levels) + codes.ravel()) + 1).sum())


def _shares(products: np.ndarray, design: _Design) -> np.ndarray:
    """Return the shares (..., C) of the variance of targets from their products (..., P)."""
    return np.add.reduceat(products**2 * design.weights, design.starts[:-1], axis=-1)


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
    far = max(np.abs(z).max() / 2, ROUNDING)
    high = tuple(design.classes[c] for c in order[:NAMED] if z[c] >= far)
    return high, tuple(design.classes[c] for c in order[::-1][:NAMED] if z[c] <= -far)


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


ALL = "all"


@naming_extra()
def variance_by(
    model: Any,
    X: Any,
    *,
    classes: Any = None,
    blocks: Mapping[str, Sequence[int]] | None = None,
    rows: Any = None,
) -> "pd.DataFrame":
    """Share of the variance that each component explains, by class and by block of columns.

    Parameters
    ----------
    model : fitted estimator
        With K components.
    X : array-like or data frame, shape (N, D)
        Missing entries (NaN) count for nothing.
    classes : array-like of shape (N,), optional
        A class a row; rows without a class are left out.
    blocks : mapping of str to sequence of int, optional
        Columns of X by the name of their block, no column in two of them.
    rows : array-like, optional
        Rows to look at, as a mask (N,) or as numbers, such as a selection; all by default.

    Returns
    -------
    DataFrame
        One row for each class, block and component (counted from 1), with component 0 for what no
        component explains: `class`, `block`, `component`, and `share`, of the squared distance of
        the class's rows from the model's mean within the block. The shares of a class and block add
        up to 1. A share is negative if the component moves the rows away from the data.

    Raises
    ------
    InputError
        When classes have another length than X, or blocks overlap or name columns that are not
        there.
    """
    import pandas as pd

    matrix = matrix_of(X)
    scores, values = model.describe(matrix.for_model(model)).scores, matrix.values
    n, D = values.shape
    of_rows = np.full(n, ALL, dtype=object) if classes is None else class_names(classes)
    if len(of_rows) != n:
        msg = f"classes must have one value a row, {n:,}; got {len(of_rows):,}."
        raise InputError(msg)
    chosen = np.zeros(n, dtype=bool)
    chosen[slice(None) if rows is None else np.asarray(rows)] = True
    parts = _blocks(blocks, D)
    W, mean = np.asarray(model.components_, dtype=float), np.asarray(model.mean_, dtype=float)
    lines = []
    for name in dict.fromkeys(of_rows[[text is not None for text in of_rows]]):
        inside = np.flatnonzero((of_rows == name) & chosen)
        saved, left = _sums(values, scores, W, mean, inside)
        for block, columns in parts.items():
            every = np.r_[left[columns].sum(), saved[:, columns].sum(axis=1)]
            total = float(every.sum())
            shares = every / total if total > 0 else np.full(len(every), np.nan)
            lines += [(name, block, k, float(share)) for k, share in enumerate(shares)]
    return pd.DataFrame(lines, columns=["class", "block", "component", "share"])


def _sums(
    X: Any, scores: np.ndarray, W: np.ndarray, mean: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what components save (K, D) and leave (D,) of the squares of some rows."""
    saved, left = np.zeros_like(W), np.zeros(W.shape[1])
    step = max(1, _DRAWN // W.shape[1])
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        values = X[part]
        y = np.asarray(values.toarray() if hasattr(values, "toarray") else values, float) - mean
        s = np.asarray(scores[part], dtype=float)
        r = np.where(np.isnan(y), 0.0, y - s @ W)
        saved += s.T @ (np.nan_to_num(y) + r) * W
        left += (r**2).sum(axis=0)
    return saved, left


def _blocks(blocks: Mapping[str, Sequence[int]] | None, D: int) -> dict[str, np.ndarray]:
    if blocks is None:
        return {ALL: np.arange(D)}
    parts = {str(name): np.asarray(columns, dtype=np.int64) for name, columns in blocks.items()}
    taken = np.zeros(D, dtype=np.int64)
    for name, columns in parts.items():
        if len(columns) and not 0 <= columns.min() <= columns.max() < D:
            msg = f"Block “{shortened(name)}” names columns beyond 0 to {D - 1}; take those of X."
            raise InputError(msg)
        np.add.at(taken, columns, 1)
    if taken.max(initial=0) > 1:
        msg = f"Blocks must not overlap; column {int(taken.argmax())} is in {taken.max()} of them."
        raise InputError(msg)
    return parts


MOST_LABELS, MOST_ROWS = 8, 1_000  # columns that are looked at; rows, a fair sample
LEAST = 0.25  # effect below which nothing is said


def goes_with(dataset: Dataset, described: DescribedRows) -> list[str]:
    """Say of each component which label goes with its scores or its use; empty where none."""
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[:MOST_ROWS]
    table = {name: values[rows] for name, values in list(dataset.labels.items())[:MOST_LABELS]}
    scores, active = described.scores[rows], described.active[rows]
    tests = associated(scores, active, table, n_permutations=199, random_state=0)
    sentences = [""] * active.shape[1]
    strong = tests[(tests["effect"] >= LEAST) & (tests["q"] < SIGNIFICANT)]
    for test in strong.sort_values("effect", ascending=False, kind="stable").to_dict("records"):
        place = test["component"] - 1
        sentences[place] = sentences[place] or _sentence(test)
    return sentences


def _sentence(test: dict[Hashable, Any]) -> str:
    score = test["part"] == "score"
    if test["kind"] != "class":
        way = test["direction"] if score else f"use {test['direction']}"
        return f"{way} with {shortened(test['column'])}"
    ways = ("higher", "lower") if score else ("used more", "used less")
    phrases = []
    for way, names in zip(ways, (test["high"], test["low"]), strict=True):
        # a class of one letter or digit reads better as several: "0s and 6s"
        short = [f"{x}s" if len(x) == 1 and x.isalnum() else shortened(x, 24) for x in names]
        phrases += [f"{way} for {' and '.join(short)}"] if names else []
    return ", ".join(phrases)
