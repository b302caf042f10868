"""Associations between components and the columns of a table."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.fitted import DescribedRows
from appca.analysis.groups import FEW_INTEGERS
from appca.data.dataset import Dataset
from appca.words import InputError, naming_extra, shortened

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 200  # of a column that is tested
ALIKE = 0.95  # rank correlation with a technical measure from which on a column is marked
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_BATCH = re.compile(
    r"(^|[\W_])(batch|plate|lane|run|chip|slide|scanner|site|operator|session)([\W_\d]|$)", re.I
)


class TableColumn(NamedTuple):
    """A column of N rows."""

    name: str
    kind: str  # "number", "date" or "class"
    values: np.ndarray  # (N,) float64: numbers, days since 1970, or codes; NaN is missing
    names: tuple[str, ...] = ()  # of the classes

    @property
    def there(self) -> np.ndarray:
        """Which rows have a value, (N,) bool."""
        return np.asarray(~np.isnan(self.values))

    def varies(self, rows: np.ndarray) -> bool:
        """Whether some rows (N,) bool have two different values."""
        values = self.values[rows]
        return len(values) > 1 and bool((values != values[0]).any())


def columns_of(table: Any, n_rows: int) -> tuple[list[TableColumn], list[str]]:
    """Return the columns of a DataFrame or a mapping, and the names of those that say nothing.

    Left out are columns with one value and those with more than `MOST_CLASSES` classes. Raises
    InputError when a column does not have one value a row.
    """
    import pandas as pd

    items = table.items() if isinstance(table, Mapping) else pd.DataFrame(table).items()
    columns, left_out = [], []
    for name, values in items:
        series = pd.Series(np.asarray(values) if isinstance(values, list | tuple) else values)
        if len(series) != n_rows:
            msg = (
                f"Column “{shortened(name)}” has {len(series):,} values for {n_rows:,} rows; give "
                "one value a row."
            )
            raise InputError(msg)
        column = _column(str(name), series)
        useful = column.varies(column.there) and len(column.names) <= MOST_CLASSES
        if useful:
            columns.append(column)
        else:
            left_out.append(column.name)
    return columns, left_out


def _column(name: str, series: "pd.Series") -> TableColumn:
    from pandas.api import types

    if types.is_datetime64_any_dtype(series):
        return _dates(name, series)
    few = types.is_integer_dtype(series) and series.nunique() <= FEW_INTEGERS
    numeric = types.is_numeric_dtype(series) and not types.is_bool_dtype(series)
    if numeric and not few:
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return TableColumn(name, "number", np.where(np.isfinite(values), values, np.nan))
    if not few and not isinstance(series.dtype, types.CategoricalDtype):
        texts = series[series.notna() & (series.astype(str) != "")].astype(str)
        if len(texts) and texts.map(lambda text: bool(_DATE.fullmatch(text))).all():
            return _dates(name, series)
    return _classes(name, series)


def _dates(name: str, series: "pd.Series") -> TableColumn:
    import pandas as pd

    when = pd.to_datetime(series, errors="coerce", utc=True, format="ISO8601")
    days = (when - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return TableColumn(name, "date", days.to_numpy(dtype=np.float64))


def _classes(name: str, series: "pd.Series") -> TableColumn:
    import pandas as pd

    there = series.notna().to_numpy() & (series.astype(str) != "").to_numpy()
    codes, names = pd.factorize(series.astype(str).to_numpy()[there])  # by first appearance
    values = np.full(len(series), np.nan)
    values[there] = codes
    return TableColumn(name, "class", values, tuple(map(str, names)))


def ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks (n,) of values, equal ones sharing the middle of theirs."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=np.float64)


def repeated(columns: list[TableColumn]) -> dict[str, str]:
    """Return of each column that repeats an earlier one, value by value, the name of that one.

    Classes, and few different numbers, do so under any names; many numbers in the same order or the
    reverse.
    """
    first: dict[bytes, str] = {}
    same = {}
    for column in columns:
        form = _form(column)
        if form in first:
            same[column.name] = first[form]
        else:
            first[form] = column.name
    return same


def _form(column: TableColumn) -> bytes:
    """Return the same bytes of columns that say the same."""
    values = column.values[column.there]
    levels, codes = np.unique(values, return_inverse=True)
    if column.kind != "class" and len(levels) > FEW_INTEGERS:
        codes = min(codes, len(levels) - 1 - codes, key=lambda c: c.tolist())
    else:
        _, seen, codes = np.unique(values, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(seen))[codes]
    return np.packbits(column.there).tobytes() + np.asarray(codes, dtype=np.int32).tobytes()


def suspicion(column: TableColumn, measures: Mapping[str, np.ndarray]) -> str:
    """Say why a column may stem from the measurement: a measure (N,) or a name; empty if nothing.

    A number does if its ranks are nearly those of a measure, a class if a measure's order keeps
    every class together.
    """
    for name, measure in measures.items():
        rows = column.there & np.isfinite(measure)
        if not column.varies(rows):
            continue
        values, measured = column.values[rows], measure[rows]
        if column.kind == "class":
            changes = np.count_nonzero(np.diff(values[np.argsort(measured, kind="stable")]))
            alike = changes == len(np.unique(values)) - 1
            alike = alike and len(np.unique(measured)) >= len(np.unique(values))
        else:
            alike = len(np.unique(measured)) > 1 and (
                abs(np.corrcoef(ranks(values), ranks(measured))[0, 1]) >= ALIKE
            )
        if alike:
            return f"follows the {name}"
    return "named like a batch" if _BATCH.search(column.name) else ""


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


ALL = "all"
_BLOCK_VALUES = 1 << 22


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
    X : array-like, shape (N, D)
        Missing entries (NaN) count for nothing.
    classes : array-like of shape (N,), optional
        A class a row; rows without one are left out.
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

    described = model.describe(X)
    n, D = X.shape
    codes, names = pd.factorize(np.full(n, ALL) if classes is None else np.asarray(classes))
    if len(codes) != n:
        msg = f"classes must have one value a row, {n:,}; got {len(codes):,}."
        raise InputError(msg)
    chosen = np.zeros(n, dtype=bool)
    chosen[slice(None) if rows is None else np.asarray(rows)] = True
    codes = np.where(chosen, codes, -1)
    parts = _blocks(blocks, D)
    W, mean = np.asarray(model.components_, dtype=float), np.asarray(model.mean_, dtype=float)
    lines = []
    for c, name in enumerate(names):
        saved, left = _sums(X, described.scores, W, mean, np.flatnonzero(codes == c))
        for block, columns in parts.items():
            explained = saved[:, columns].sum(axis=1)
            every = np.r_[left[columns].sum(), explained]
            total = float(every.sum())
            shares = every / total if total > 0 else np.full(len(every), np.nan)
            lines += [(str(name), block, k, float(share)) for k, share in enumerate(shares)]
    return pd.DataFrame(lines, columns=["class", "block", "component", "share"])


def _sums(
    X: Any, scores: np.ndarray, W: np.ndarray, mean: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what components save (K, D) and leave (D,) of the squares of some rows."""
    saved, left = np.zeros_like(W), np.zeros(W.shape[1])
    step = max(1, _BLOCK_VALUES // W.shape[1])
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

_PERMUTATIONS = 99


def goes_with(dataset: Dataset, described: DescribedRows) -> list[str]:
    """Say of each component which label goes with its scores or its use; empty where none."""
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[:MOST_ROWS]
    table = {name: values[rows] for name, values in list(dataset.labels.items())[:MOST_LABELS]}
    scores, active = described.scores[rows], described.active[rows]
    tests = associated(scores, active, table, n_permutations=_PERMUTATIONS, random_state=0)
    told = [""] * active.shape[1]
    strong = tests[(tests["effect"] >= LEAST) & (tests["p"] < SIGNIFICANT)]
    for test in strong.sort_values("effect", ascending=False, kind="stable").to_dict("records"):
        place = test["component"] - 1
        told[place] = told[place] or _said(test)
    return told


def _said(test: dict[Hashable, Any]) -> str:
    score = test["part"] == "score"
    if test["kind"] != "class":
        way = test["direction"] if score else f"use {test['direction']}"
        return f"{way} with {shortened(test['column'])}"
    ways = ("higher", "lower") if score else ("used more", "used less")
    ends = zip(ways, (test["high"], test["low"]), strict=True)
    return ", ".join(f"{way} for {_joined(names)}" for way, names in ends if names)


def _joined(names: Sequence[str]) -> str:
    """Join classes; a class that is one letter or digit reads better as several: "0s and 6s"."""
    return " and ".join(
        f"{name}s" if len(name) == 1 and name.isalnum() else shortened(name, 24) for name in names
    )
