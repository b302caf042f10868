"""New rows under a fitted model: goodness of fit, and drift."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca import frames
from appca.analysis.association import associated
from appca.analysis.fitted import DescribedRows
from appca.analysis.rows import Distances, limits_of
from appca.analysis.rule import USES, component_of, rule_table
from appca.analysis.tables import projection_table
from appca.words import naming_extra, refuse_if, shortened

if TYPE_CHECKING:
    import pandas as pd

    from appca.data.dataset import Dataset

LEAST = 5  # minimum number of rows per side
SAME = 1e-6  # nats per row: tolerance for recognizing the rows of a fit


@naming_extra()
def drift(
    model: Any, X_old: Any, X_new: Any, *, n_permutations: int = 999, random_state: Any = 0
) -> "pd.DataFrame":
    """Test which columns and components differ between old and new rows.

    Parameters
    ----------
    model : fitted estimator
        With K components. A model describes its fitted rows better than other rows, which would
        look like drift. If `X_old` are the fitted rows, the model is therefore refitted to half of
        them, and the other half is compared with `X_new`. A subset of the fitted rows is not
        recognized: pass all of them, or rows that were not used in the fit.
    X_old, X_new : array-like or data frame, shapes (N, D) and (M, D)
        At least five rows each. Columns without names are called "feature 1" and so on.
    n_permutations : int
        Permutations of old and new rows per test; see `association`.
    random_state : int, Generator or None

    Returns
    -------
    DataFrame
        One row per test, sorted by `q`, then by decreasing effect: `column`, a feature, or
        "uses k" or "score k" of component k, counted from 1 (`rule` says how a feature of that name
        is renamed); `part`: "level", or "spread", the distance from the median; `effect`, from -1
        to 1: Cliff's delta for numbers, positive if new rows are higher or more spread out; its
        `direction`; `old` and `new`: the means of both sides; `n` rows; `p`, by permutation,
        and `q`, corrected for all tests (Benjamini and Hochberg, 1995).

        ``attrs["least_q"]`` is the smallest q possible for a single shift: at 5% or more, no
        conclusion is possible.

    Raises
    ------
    InputError
        If a side has fewer than five rows, or the columns or their order differ.
    """
    old, new = frames.matrix_of(X_old), frames.matrix_of(X_new)
    names = old.names or new.names or [f"feature {d + 1}" for d in range(old.values.shape[1])]
    for name, other in zip(names, new.names or (), strict=False):
        msg = f"X_new has the column “{shortened(other)}” where X_old has “{shortened(name)}”; "
        msg += "give the same columns in the same order."
        refuse_if(name != other, msg)
    rng = np.random.default_rng(random_state)
    model, fitted, order, sign = _unbiased(model, old, rng)
    tables = []
    for side in (old, new):
        rows = model.describe(side.for_model(model))
        X = side.values.toarray() if hasattr(side.values, "toarray") else side.values
        columns = (frames.number_column(*named) for named in zip(names, X.T, strict=True))
        features = zip(names, columns, strict=True)
        tables.append(rule_table(rows.scores[:, order] * sign, rows.active[:, order], features))
    for name, column in tables[0].items():
        if component_of(name)[1]:
            column.values[fitted] = np.nan
    return drifted(*tables, n_permutations=n_permutations, random_state=rng)


def _unbiased(model: Any, old: frames.Matrix, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return a fit to half of the old rows, that half, and the matching order and signs (K,)."""
    from sklearn.base import clone

    from appca.models.draws import match

    inner = getattr(model, "estimator_", model)
    at_end = np.ravel(getattr(inner, "log_likelihoods_", ()))[-1:]
    n, W = old.values.shape[0], getattr(inner, "components_", None)
    same = False
    if len(at_end) and W is not None and n >= 4 * len(W):
        likelihood = float(np.sum(model.score_samples(old.for_model(model)), dtype=float))
        same = abs(likelihood - at_end[0]) <= SAME * n
    if not same:
        return model, [], slice(None), 1.0
    half = np.sort(rng.permutation(n)[: n // 2])
    again = clone(model).fit(old._replace(values=old.values[half]).for_model(model))
    matched = getattr(again, "estimator_", again).components_
    _, order, sign, _ = match(np.asarray(W, float), np.asarray(matched, float))
    return again, half, order, sign


def drifted(
    old: Any, new: Any, *, n_permutations: int = 999, random_state: Any = 0
) -> "pd.DataFrame":
    """Compare two tables of columns and components (see `rule_table`); see `appca.drift`."""
    old, new = frames.named_columns(old), frames.named_columns(new)
    first = (next(iter(side.values())) for side in (old, new))
    n_old, n_new = (len(getattr(values, "values", values)) for values in first)
    msg = f"Old and new rows need the same columns and {LEAST} rows each; got {n_old:,} and "
    msg += f"{n_new:,} rows, {len(set(old) ^ set(new))} columns in only one of them."
    refuse_if(min(n_old, n_new) < LEAST or set(old) != set(new), msg)
    is_new = np.arange(n_old + n_new) >= n_old
    table = {name: frames.joined(old[name], new[name]) for name in old}
    columns, left_out = frames.columns_of(table, len(is_new))
    of = {f"level {column.name}": column for column in columns}
    for column in columns:
        if column.kind == "number" and component_of(column.name)[0] != USES:
            away = np.abs(column.values - np.nanmedian(column.values))
            of[f"spread {column.name}"] = column._replace(values=away)
    side = is_new[:, None]
    tests = associated(side, side, of, n_permutations=n_permutations, random_state=random_state)
    tested = [of[name] for name in tests["column"]]
    for name, rows in (("old", ~is_new), ("new", is_new)):
        means = [np.nan if x.kind == "class" else np.nanmean(x.values[rows]) for x in tested]
        tests[name] = np.array(means, dtype=float)
    tests["part"] = [name.partition(" ")[0] for name in tests["column"]]
    tests["column"] = [column.name for column in tested]
    tests["effect"] *= np.where(tests["direction"] == "falls", -1.0, 1.0)
    ways = {"rises": "higher", "falls": "lower"}
    tests["direction"] = [ways.get(way, way) for way in tests["direction"]]
    tests.attrs["left_out"] = left_out
    return tests[["column", "part", "effect", "direction", "old", "new", "n", "p", "q"]]


LEVEL = 0.99  # default share of rows within each limit
TAIL, RARE = (20, 0.1, 0.3), 0.001  # rows, and smallest and largest share; share above the limit
JUDGED, LEAST_JOINT = (20, 1 << 22), 5  # least rows, most values; rows per feature


class NewRowsVerdict(NamedTuple):
    """Distances of new rows, with the limits that a share `level` of usual rows does not exceed."""

    distances: Distances
    of_model: np.ndarray  # (N, 2) limits of T2 and Q, chi-square quantiles
    of_data: np.ndarray | None  # preferred: limits from the rows of the fit
    ratios: np.ndarray  # (N, 2) T2 and Q divided by the limits in use
    fits: np.ndarray  # (N,) bool: within both limits
    order: np.ndarray  # (N,) row indices, worst fit first


def verdict(distances: Distances, run: Distances | None, level: float = LEVEL) -> NewRowsVerdict:
    """Compare distances of new rows with limits of the model or, if given, of the fit's rows."""
    return _judged(distances, limits_of(distances, level), run and limits_of(distances, level, run))


def standing_out(distances: Distances) -> NewRowsVerdict:
    """Compare the rows of a fit with the tail of their distances; scales of rows excuse none."""
    distances = distances._replace(scales=(1.0, 1.0))
    of_model = limits_of(distances, LEVEL)
    # cube roots of chi-square variables are nearly normal (Wilson and Hilferty, 1931)
    far = [_tail_limit(roots, len(roots) // 6) for roots in np.cbrt(distances.over(of_model)).T]
    return _judged(distances, of_model, of_model * np.maximum(far, 1.0) ** 3)


def odd_in_features(
    X: np.ndarray, transform: Callable[[Any], Any], gaps: Any = None, ordered: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of X (N, D) far in a feature, or jointly: then -1 - feature; ratios to limits.

    A value, less that of its neighbours if `ordered`, is compared with its feature's tail; the
    covariance, of the nearest 90% of rows, needs five rows a feature. Tails omit 3% or three rows.
    """
    from scipy.stats import chi2
    from sklearn.covariance import EmpiricalCovariance

    (n, D), none = X.shape, np.empty(0, int)
    if n < JUDGED[0] or JUDGED[1] < X.size:
        return none, none, none
    Y = transform(X).astype(np.float64)
    if ordered:
        Y = np.pad(np.diff(Y, 2), ((0, 0), (1, 1)))
        gaps = gaps if gaps is None else gaps | np.roll(gaps, 1, axis=1) | np.roll(gaps, -1, axis=1)
    varied = np.flatnonzero((np.median(Y, axis=0) != Y).mean(axis=0) > 0.5)
    d, is_near, most = len(varied), np.ones(n, bool), max(3, 3 * n // 100)
    if d < 2 or Y.shape[1] != D:  # names would not be those of columns
        return none, none, none
    Y, joint, unexpected = Y[:, varied], np.zeros(n), np.zeros((n, d))
    if n >= LEAST_JOINT * D:
        for _ in range(3):
            fit = EmpiricalCovariance().fit(Y[is_near])
            squares = fit.mahalanobis(Y)
            is_near = squares <= np.quantile(squares, 0.9)
        roots = np.cbrt(squares * chi2.median(d) / np.median(squares))
        joint = roots / max(_tail_limit(roots, most), np.cbrt(chi2.isf(RARE, d)))
        unexpected = (Y - fit.location_) @ fit.precision_ / np.sqrt(np.diag(fit.precision_))
    seen = np.ones_like(Y) if gaps is None else ~gaps[:, varied]
    joint *= seen.all(axis=1)  # what fills a gap may be odd
    away = np.abs(Y - np.median(Y, axis=0)) * seen
    near = np.sort(away, axis=0)[:-most]
    start = np.quantile(near, 1 - TAIL[1], axis=0)
    excess = np.maximum(near - start, 0.0).mean(axis=0) / TAIL[1]
    away = (away - start) / np.maximum(excess, start / 10)  # for ties
    far = away.max(axis=1)
    alone = far / max(_tail_limit(far, most), np.log(n * d))  # beyond: 0.1 of n d exponentials
    both, is_alone = np.maximum(alone, joint), (alone > 1) | (2 * alone > joint)
    worst = np.where(is_alone, away.argmax(axis=1), np.abs(unexpected).argmax(axis=1))
    named = np.where(is_alone, varied[worst], -1 - varied[worst])
    return np.argsort(-both, kind="stable")[: (both > 1).sum()], named, both


def _tail_limit(x: np.ndarray, most: int) -> float:
    """Return the limit of an exponential tail of x (n,) without up to `most` values above it."""
    n, x = len(x), np.sort(x)
    tail, rest = float(np.clip(TAIL[0] / n, *TAIL[1:])), n - np.arange(most, -1, -1)
    start, sums = ((1 - tail) * rest).astype(int), np.append(0.0, np.cumsum(x))
    excess = np.maximum(sums[rest] - sums[start] - (rest - start) * x[start], 0.0)
    far = (RARE / tail) ** (-1 / np.maximum(rest - start - 1, 1)) - 1  # the mean is estimated
    limits = np.append((x[start] + excess * far) * (1 + 1e-9), np.inf)  # for ties
    beyond = n - np.searchsorted(x, limits, "right")
    return float(limits[np.argmax((beyond >= np.append(n - rest, 0)) & (beyond <= most))])


def _judged(of: Distances, of_model: np.ndarray, of_data: np.ndarray | None) -> NewRowsVerdict:
    ratios = of.over(of_model if of_data is None else of_data)
    order, fits = np.argsort(-ratios.max(axis=1), kind="stable"), (ratios <= 1).all(axis=1)
    return NewRowsVerdict(of, of_model, of_data, ratios, np.asarray(fits), order)


def new_rows_table(
    dataset: "Dataset", projected: DescribedRows, said: NewRowsVerdict, **more: np.ndarray
) -> "pd.DataFrame":
    """Return `projection_table` of new rows, T2 and Q with limits, if they fit, and `more`."""
    more = {"t2": said.distances.t2, "q": said.distances.q} | more
    for name, limits in (("model", said.of_model), ("run", said.of_data)):
        if limits is not None:
            more |= {f"t2_limit_{name}": limits[:, 0], f"q_limit_{name}": limits[:, 1]}
    table = projection_table(dataset, projected)
    taken = {name: f"label_{name}" for name in table.columns if name in (*more, "fits")}
    return table.rename(columns=taken).assign(**more, fits=said.fits)
