"""Associations between components and the columns of a table."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from appca import frames
from appca.analysis.fitted import DescribedRows
from appca.analysis.permutation import ROUNDING, corrected, permuted
from appca.data.dataset import Dataset
from appca.words import naming_extra, refuse_if, shortened

if TYPE_CHECKING:
    import pandas as pd

ALIKE = 0.95  # minimum rank correlation with a technical measure that marks a column
GAPS = "missing share"  # share of a row's cells that are missing
USE, SCORE, WAYS, ALL = "use", "score", ("rises", "falls"), "all"
LEAST_ROWS = 5  # minimum number of users of a component, and of other rows
NAMED, SIGNIFICANT = 2, 0.05  # maximum: classes listed as high, and as low; q to propose a name
_BATCH = re.compile(
    r"(^|[\W_])(batch|plate|lane|run|chip|slide|scanner|site|operator|session)([\W_\d]|$)", re.I
)
_TESTED = ["column", "kind", "component", "part", "n"]
_TESTED += ["effect", "direction", "p", "least", "high", "low"]
SORTED = "the file is sorted by this column"
_EACH, MOST_LINES = 5, 30  # minimum number of rows per term of a regression on covariates
_NEAR = 10  # rows on each side of a change of class
_BARE = {"yes", "no", "true", "false", "none", "other"}  # need the name of their column
_UNANSWERED = {"-", "?", "na", "n/a", "nan", "none", "null", "missing", "unknown", "no answer"}
_RESULTS = [*_TESTED[:4], "effect", "direction", "n", "p", "q", "technical", "high", "low"]
_DRAWN = 1 << 20  # maximum number of permuted targets, or of centred cells, in memory


@naming_extra()
def association(
    model: Any,
    X: Any,
    table: Any,
    *,
    adjusted_for: str | Sequence[str] = (),
    n_permutations: int = 999,
    random_state: Any = None,
) -> "pd.DataFrame":
    """Test which columns of a table are associated with the components of a fitted model.

    Parameters
    ----------
    model : fitted estimator
        With K components.
    X : array-like or data frame, shape (N, D)
        Rows to describe.
    table : data frame, or mapping of str to array-like of shape (N,)
        A column's kind depends on its values, not its dtype: texts, booleans, categoricals and up
        to 20 distinct whole numbers are classes; texts such as 2026-11-24 are dates. Rows without a
        value (NaN, NaT, None, masked, empty text) are excluded from the tests of that column.
    adjusted_for : str or sequence of str
        Columns of the table that may confound, such as a batch, age or sex. Ranks are permuted
        within the classes, after regression on a cubic of the ranks of numbers and dates (Freedman
        and Lane, 1983), in each class of enough rows. Rows without a value are excluded.
    n_permutations : int
        Permutations per test, and up to ten times as many until 20 reach the observed value.
        If none does, p comes from a generalized Pareto tail (Knijnenburg et al., 2009), bounded
        below only by the number of distinct permutations of the rows.
    random_state : int, Generator or None

    Returns
    -------
    DataFrame
        One row per test, sorted by `q`, then by decreasing effect: `column`, `kind`
        ("number", "date" or "class"), `component` (counted from 1), `part` ("use" or "score");
        `effect`, from 0 to 1: the correlation ratio of ranks for classes, so that a rare class has
        a small effect, else their correlation relative to its maximum; `direction`: "rises",
        "falls", or the classes with more users or higher scores and with fewer or lower ones
        (those that correlate by at least 0.2 are tuples in `high` and `low`); `n` rows; `p`, by
        permutation of the rows, and `q`, corrected for all tests (Benjamini and Hochberg, 1995);
        `technical`, the reason to suspect a measurement artifact, or an empty text. A class column
        that sorts the rows is not marked if its association remains near changes of class.

        ``attrs["left_out"]`` lists columns that could not be tested; ``attrs["least_q"]`` is the
        smallest q possible for a single effect. If it is 5% or more, no conclusion is possible.

    Raises
    ------
    InputError
        If the table differs from X in number of rows, two columns share a name, or a column of
        `adjusted_for` is not in the table or does not vary.

    Examples
    --------
    >>> from appca import AdaptivePPCA, association
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine()
    >>> X = (wine.data - wine.data.mean(axis=0)) / wine.data.std(axis=0)
    >>> model = AdaptivePPCA(4, 2, random_state=0).fit(X)
    >>> tests = association(model, X, {"cultivar": wine.target}, random_state=0)
    >>> tests.loc[0, ["column", "part"]].tolist()
    ['cultivar', 'score']
    """
    matrix = frames.matrix_of(X)
    rows, measures = model.describe(matrix.for_model(model)), measures_of_rows(matrix.values)
    of = table, adjusted_for, measures, n_permutations, random_state
    return associated(rows.scores, rows.active, *of)


def measures_of_rows(X: Any) -> dict[str, np.ndarray]:
    """Return technical measures (N,) of rows X (N, D), such as their totals; NaN is missing."""
    sparse = hasattr(X, "tocsr")
    sums = np.asarray(X.sum(axis=1) if sparse else np.nansum(X, axis=1), dtype=float).ravel()
    measures = {"row sum": sums, "row order": np.arange(len(sums), dtype=float)}
    if X.min() < 0 if sparse else np.less(X, 0).any():  # the sum of centred values is not a total
        del measures["row sum"]
    if not sparse and (gaps := np.isnan(np.asarray(X, dtype=float)).mean(axis=1)).any():
        measures[GAPS] = gaps
    return measures


def associated(
    scores: np.ndarray,
    active: np.ndarray,
    table: Any,
    adjusted_for: str | Sequence[str] = (),
    technical: Mapping[str, np.ndarray] | None = None,
    n_permutations: int = 999,
    random_state: Any = None,
) -> "pd.DataFrame":
    """Test columns against scores and use (N, K); mark those that follow `technical` measures."""
    import pandas as pd

    rng, n = np.random.default_rng(random_state), len(scores)
    columns, left_out = frames.columns_of(table, n)
    wanted = [adjusted_for] if isinstance(adjusted_for, str) else list(adjusted_for)
    unknown = [shortened(x) for x in wanted if x not in {column.name for column in columns}]
    msg = f"Adjusting needs columns of the table that vary, with at most {frames.MOST_CLASSES} "
    refuse_if(unknown, f"{msg}classes; got “{'”, “'.join(unknown)}”.")
    covariates = [column for column in columns if column.name in wanted]
    columns = [column for column in columns if column.name not in wanted]
    values = np.array([column.values for column in covariates]).reshape(len(covariates), n)
    is_class = np.array([column.kind == "class" for column in covariates], dtype=bool)
    strata, complete = np.vstack([np.zeros(n), values[is_class]]), ~np.isnan(values).any(axis=0)
    codes, numbers = np.unique(strata, axis=1, return_inverse=True)[1].ravel(), values[~is_class]
    by_gaps: dict[bytes, list[frames.TableColumn]] = {}
    for column in columns:
        by_gaps.setdefault((column.there & complete).tobytes(), []).append(column)
    tests: list[tuple[Any, ...]] = []
    for alike in by_gaps.values():
        there = alike[0].there & complete
        used = active[there].sum(axis=0)
        both = np.flatnonzero(np.minimum(used, there.sum() - used) >= LEAST_ROWS)
        many, jobs = np.flatnonzero(used >= 2 * LEAST_ROWS), [(USE, both, there, active)]
        jobs += [(SCORE, many[[i]], active[:, k] & there, scores) for i, k in enumerate(many)]
        for part, places, rows, measured in jobs:
            targets = measured[rows][:, places].astype(float)
            varied = [column for column in alike if column.varies(rows)]
            if varied and len(places) and np.ptp(targets, axis=0).all():
                of = targets, varied, rows, codes[rows], numbers[:, rows], n_permutations, rng
                for m, column, *results in _tested(*of):
                    about = column.name, column.kind, int(places[m]) + 1, part, int(rows.sum())
                    tests.append((*about, *results))
    marked = {column.name: _suspicion(column, technical or {}) for column in columns}
    for column in [column for column in columns if marked[column.name] == SORTED and column.names]:
        rows = np.flatnonzero(column.there)
        changes = np.flatnonzero(np.diff(column.values[rows]))
        change = np.searchsorted((changes[1:] + changes[:-1]) / 2, np.arange(len(rows)))
        near = np.abs(np.arange(len(rows)) - changes[change] - 0.5) < _NEAR
        some, change = rows[near], change[near]
        subset = {column.name: column._replace(values=column.values[some])}
        subset[""] = frames.TableColumn("", "class", change.astype(float))
        adjusted: Any = [""] * bool(change.any()), None, n_permutations, rng
        within = associated(scores[some], active[some], subset, *adjusted)
        if (within["q"] < SIGNIFICANT).any():
            marked[column.name] = ""
    frame = pd.DataFrame(tests, columns=_TESTED)
    frame["q"] = corrected(frame["p"].to_numpy(dtype=float))
    frame["technical"] = [marked[name] for name in frame["column"]]
    least_q = min(1.0, len(frame) * float(frame["least"].min())) if len(frame) else 1.0
    order = np.lexsort((frame["component"], -frame["effect"].astype(float), frame["q"]))
    frame = frame.iloc[order].reset_index(drop=True)[_RESULTS]
    frame.attrs |= {"left_out": left_out, "least_q": least_q}
    return frame


def _suspicion(column: frames.TableColumn, measures: Mapping[str, np.ndarray]) -> str:
    from scipy.stats import spearmanr

    for name, measure in measures.items():
        rows = column.there & np.isfinite(measure)
        values, measured = column.values[rows], measure[rows]
        n_levels, n_measured = len(np.unique(values)), len(np.unique(measured))
        if min(n_levels, n_measured) < 2:
            continue
        if column.kind == "class":  # suspicious if sorting by the measure sorts classes
            changes = np.count_nonzero(np.diff(values[np.argsort(measured, kind="stable")]))
            alike = changes == n_levels - 1 and n_measured >= n_levels
        else:
            alike = abs(spearmanr(values, measured)[0]) >= ALIKE
        if alike:
            is_order = name == "row order" and column.name != name
            return SORTED if is_order else f"it is correlated with the {name}"
    return "its name suggests a batch" if _BATCH.search(column.name) else ""


def _tested(
    targets: np.ndarray,
    columns: Sequence[frames.TableColumn],
    rows: np.ndarray,
    blocks: np.ndarray,
    covariates: np.ndarray,
    n_permutations: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Any, ...]]:
    """Test columns against targets (n, M); yield m, the column and `_TESTED` from "effect" on."""
    from scipy.linalg import orth
    from scipy.special import gammaln
    from scipy.stats import rankdata

    order = np.argsort(blocks, kind="stable")  # makes the rows of a block adjacent
    blocks, targets = np.unique(blocks[order], return_inverse=True)[1], targets[order]
    n, M, C = len(targets), targets.shape[1], len(columns)

    def scaled(x: np.ndarray) -> np.ndarray:
        return np.asarray(x / np.sqrt(np.maximum((x**2).sum(axis=1, keepdims=True), ROUNDING)))

    def centred(x: np.ndarray) -> np.ndarray:
        return np.asarray(x - (np.bincount(blocks, x) / np.bincount(blocks))[blocks])

    z = 2 * rankdata(covariates[:, order], axis=1) / (n + 1) - 1
    cubic = (x for d in (1, 2, 3) for x in combinations_with_replacement(z, d))
    terms = [centred(np.prod(x, axis=0)).round(9) for x in islice(cubic, max(len(z), n // _EACH))]
    groups = np.where(np.bincount(blocks)[blocks] < _EACH * len(terms), -1, blocks)
    terms = [x * (groups == group) for x in terms for group in np.unique(groups)]
    basis = orth(np.stack([np.zeros(n), *terms], axis=1))

    def residual(x: np.ndarray) -> np.ndarray:
        return np.asarray(x - x @ basis @ basis.T)

    def log_ties(x: np.ndarray) -> float:  # log number of permutations that do not change x
        levels, codes = np.unique(x, return_inverse=True)
        return float(gammaln(np.bincount(blocks * len(levels) + codes) + 1).sum())

    inside = [column.values[rows][order] for column in columns]
    parts = [
        np.unique(x)[:, None] == x if column.kind == "class" else centred(rankdata(x))[None]
        for column, x in zip(columns, inside, strict=True)
    ]
    of = np.repeat(np.arange(C), [len(part) for part in parts])  # column of each part
    T = scaled(residual(np.stack([centred(rankdata(target)) for target in targets.T])))
    Q = residual(raw := scaled(np.vstack(parts).astype(float)))

    def shares(T: np.ndarray, Q: np.ndarray, of: np.ndarray) -> np.ndarray:
        """Return the shares of targets (M, a, n) that parts (P, b, n) explain, (M, a, C, b)."""
        products = (T.reshape(-1, n) @ Q.reshape(-1, n).T).reshape(*T.shape[:2], *Q.shape[:2])
        starts = np.flatnonzero(np.diff(of, prepend=-1))
        return np.asarray(np.add.reduceat(np.square(products, out=products), starts, axis=2))

    ends = np.flatnonzero(np.diff(blocks, prepend=-1, append=-1))
    b = int(np.clip(_DRAWN // Q.size, 1, 32))
    a = int(np.clip(_DRAWN // T.size, 1, 1024 // b))

    def draw(m: int, tests: np.ndarray) -> np.ndarray:
        # pair permutations of targets and parts: each pair is uniform, pairs are independent
        (some, k), (few, c) = (np.unique(x, return_inverse=True) for x in np.divmod(tests, C))
        kept, orders = np.isin(of, few), np.tile(np.arange(n), (b - (-m // b), 1))
        for block in map(slice, ends[:-1], ends[1:]):
            rng.permuted(orders[:, block], axis=1, out=orders[:, block])
        drawn = T[some][:, orders[b:]], Q[kept][:, orders[:b]]
        return shares(*drawn, of[kept])[k, :, c].reshape(len(tests), -1)[:, :m]

    ties = [[log_ties(x) for x in values] for values in (targets.T, inside)]
    logs = np.maximum.outer(*map(np.array, ties)) - log_ties(np.zeros(n))
    least = np.exp(np.minimum(logs, 0.0))  # rounding could make a p above 1
    observed = shares(T[:, None], Q[:, None], of)[:, 0, :, 0]
    freedom = max(1 - basis.shape[1] / max(n - 1 - blocks[-1], 1), 0.0)  # share that remains
    tests = permuted(freedom * observed.ravel(), draw, n_permutations, least.ravel(), a * b)
    p, chance = (values.reshape(M, C) for values in tests)
    ordered, products = np.sort(T, axis=1), T @ Q.T
    for m, c in np.ndindex(M, C):
        column, X, z = columns[c], Q[of == c], products[m, of == c]
        names = [column.names[int(code)] for code in np.unique(inside[c])] if column.names else []
        most = 1.0 if names else float((ordered[m] @ np.sort(X[0])) ** 2)
        share = (observed[m, c] - chance[m, c]) / max(most - chance[m, c], ROUNDING)
        effect = float(np.sqrt(np.clip(share, 0.0, 1.0)))
        direction, *named = _ends(raw[of == c], z, names)
        yield m, column, effect, direction, float(p[m, c]), float(least[m, c]), *named


def _ends(
    X: np.ndarray, products: np.ndarray, names: Sequence[str]
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the direction, and the high and low classes that correlate by at least `LEAST`."""
    if not names:
        return "rises" if products[0] > 0 else "falls", (), ()
    far = max(np.abs(products).max() / 2, ROUNDING)
    order = np.lexsort((X.argmax(axis=1), -products.round(9)))  # ties: class with the first row
    ends = {"high": [c for c in order[:NAMED] if products[c] >= far]}
    ends["low"] = [c for c in order[::-1][:NAMED] if products[c] <= -far]
    words = [f"{end}: {', '.join(names[c] for c in some)}" for end, some in ends.items() if some]
    effects = np.abs(products) / np.sqrt(1 - (X > 0).mean(axis=1))
    high, low = (tuple(names[c] for c in some if effects[c] >= LEAST) for some in ends.values())
    return "; ".join(words), high, low


def ordered(tests: "pd.DataFrame", labels: Collection[str]) -> "pd.DataFrame":
    """Return the tests of the first columns: labels, then technical measures, then features."""
    technical = tests["technical"]
    place = np.where(technical != "", 1, np.where(tests["column"].isin(labels), 0, 2))
    kinds = np.where(technical == SORTED, " (sorted by it)", " (artifact?)")
    named = tests.assign(column=tests["column"] + np.where(technical != "", kinds, ""))
    lines = named.iloc[np.argsort(place, kind="stable")]
    return lines[lines["column"].isin(lines["column"].unique()[:MOST_LINES])]


def proposed_names(tests: "pd.DataFrame", zeros: Collection[str] = ()) -> dict[int, str]:
    """Propose names for components, counted from 1, from significant, non-technical columns.

    Classes with different scores make "high – low"; numbers, up to two names. Missing values make
    none, nor do low values of the columns `zeros`, nor a component that follows missing values.
    """
    names, alone = dict[int, str](), dict[int, tuple[str, float]]()
    telling = tests[tests["q"] < SIGNIFICANT]
    gaps = telling[telling["column"] == GAPS].groupby("component")["effect"].max()
    telling = telling[(telling["technical"] == "") & (telling["effect"] >= LEAST)]
    late = (telling["part"] != SCORE) & telling["direction"].isin([*WAYS])  # has no sign of weights
    for test in telling.iloc[np.lexsort((-telling["effect"], late))].to_dict("records"):
        name, direction, k = test["column"], test["direction"], test["component"]
        ends = [*test["high"][:1], *(test["low"][:1] if test["part"] == SCORE else ())]
        missing = test["effect"] <= gaps.get(k, -1.0)
        missing |= any(end.lower() in _UNANSWERED for end in ends)
        missing |= test["part"] != SCORE and direction in WAYS and k in names
        if missing or (direction == "falls" and name in zeros):
            continue
        if direction not in WAYS:  # values such as 7 or yes mean little without the column
            is_bare = any(len(end) in (1, 2) or end.lower() in _BARE for end in ends)
            name = (f"{name} " * is_bare + " – ".join(ends)) * bool(ends)
        if direction == "falls" or (name and direction not in WAYS and not test["high"]):
            name = f"low {'in ' * (direction not in WAYS)}{name}"
        taken = map(sorted, names.values())  # letters, because ends may be reversed
        first, effect = alone.get(k, ("", 0.0))
        is_number, is_other = direction in WAYS, first not in ("", test["column"])
        if k not in names and name and sorted(name) not in taken:
            names[k], alone[k] = name, (test["column"] * is_number, test["effect"])
        elif is_number and is_other and 2 * test["effect"] > effect:
            is_rise = direction == "rises" and names[k].startswith("low ")
            names[k], alone[k] = f"{names[k]}, {'high ' * is_rise}{name}", ("", 0.0)
    return names


@naming_extra()
def variance_by(
    model: Any, X: Any, *, classes: Any = None, blocks: Mapping[str, Sequence[int]] | None = None
) -> "pd.DataFrame":
    """Return the share of variance that each component explains, by class and block of columns.

    Parameters
    ----------
    model : fitted estimator
        With K components.
    X : array-like or data frame, shape (N, D)
        Missing entries (NaN) are ignored.
    classes : array-like of shape (N,), optional
        One class per row; rows without a class are ignored.
    blocks : mapping of str to sequence of int, optional
        Block names mapped to columns of X; blocks must not overlap.

    Returns
    -------
    DataFrame
        One row for each `class`, `block` and `component` (counted from 1; 0 is the unexplained
        remainder), with its `share` of the squared distance within the block between the class's
        rows and the mean reconstruction, in a converged fit the mean of X. Shares of a class and
        block add up to 1. A negative share means that the component makes rows less accurate.

    Raises
    ------
    InputError
        If classes and X differ in length, or blocks overlap or name columns that X lacks.
    """
    import pandas as pd

    matrix = frames.matrix_of(X)
    scores, values = np.asarray(model.describe(matrix.for_model(model)).scores), matrix.values
    n, D = values.shape
    of_rows = np.full(n, ALL, dtype=object) if classes is None else frames.class_names(classes)
    refuse_if(len(of_rows) != n, f"classes need one value per row, {n:,}; got {len(of_rows):,}.")
    parts = {str(name): np.asarray(d, np.int64) for name, d in (blocks or {}).items()}
    listed = np.sort(np.concatenate([np.empty(0, np.int64), *parts.values()]))
    wrong = listed[(listed < 0) | (listed >= D)].tolist()
    msg = f"blocks name columns beyond 0 to {D - 1}, such as {(wrong or [0])[0]}; correct them."
    refuse_if(wrong, msg)
    twice = listed[1:][np.diff(listed) == 0].tolist()
    refuse_if(twice, f"blocks must not overlap; name column {(twice or [0])[0]} only once.")
    parts = parts if blocks is not None else {ALL: np.arange(D)}
    W, centre = np.asarray(model.components_, dtype=float), scores.mean(axis=0, dtype=float)
    mean, lines = np.asarray(model.mean_, dtype=float) + centre @ W, []
    codes, names = pd.factorize(of_rows)
    for c, name in enumerate(names):
        inside = np.flatnonzero(codes == c)
        saved, left = np.zeros_like(W), np.zeros(D)  # squares removed by components; remainder
        for part in np.array_split(inside, 1 + len(inside) * D // _DRAWN):
            y, s = values[part], scores[part] - centre
            y = np.asarray(y.toarray() if hasattr(y, "toarray") else y, dtype=float) - mean
            missing = np.isnan(y)
            y[missing] = 0.0
            r = np.where(missing, 0.0, y - s @ W)
            saved += s.T @ (y + r) * W
            left += (r**2).sum(axis=0)
        for block, columns in parts.items():
            every = np.r_[left[columns].sum(), saved[:, columns].sum(axis=1)]
            shares = every / (every.sum() or np.nan)
            lines += [(name, block, k, float(share)) for k, share in enumerate(shares)]
    return pd.DataFrame(lines, columns=["class", "block", "component", "share"])


MOST_LABELS, MOST_ROWS = 8, 1_000  # maximum number of columns tested, and of rows sampled
LEAST = 0.2  # smallest effect that describes or names a component


def goes_with(dataset: Dataset, described: DescribedRows) -> list[str]:
    """Describe each component's strongest association with a label; empty if there is none."""
    rows = np.random.default_rng(0).permutation(dataset.n_rows)[:MOST_ROWS]
    table = {name: values[rows] for name, values in list(dataset.labels.items())[:MOST_LABELS]}
    scores, active = described.scores[rows], described.active[rows]
    tests = associated(scores, active, table, n_permutations=199, random_state=0)
    sentences: dict[int, str] = {}
    strong = tests[(tests["effect"] >= LEAST) & (tests["q"] < SIGNIFICANT)]
    for test in strong.sort_values("effect", ascending=False, kind="stable").to_dict("records"):
        of_score, column, phrases = test["part"] == SCORE, shortened(test["column"]), []
        if test["kind"] != "class":
            phrases = [f"{'use ' * (not of_score)}{test['direction']} with {column}"]
        pre, end = ("", "s") if dataset.image_shape else (f"{column} ", "")
        ways = ("higher", "lower") if of_score else ("used more", "used less")
        for way, names in zip(ways, (test["high"], test["low"]), strict=True):
            bare = {x for x in names if x.isdigit() or not x[1:] or x.lower() in _BARE}
            short = [pre + x + end if x in bare else shortened(x, 24) for x in names]
            phrases += [f"{way} for {' and '.join(short)}"] if names else []
        if phrases:
            sentences.setdefault(test["component"], ", ".join(phrases))
    return [sentences.get(k + 1, "") for k in range(active.shape[1])]
