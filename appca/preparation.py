"""Transformations before scaling, and cells and features to check before a fit."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from appca.words import capital, counted, listed, minus, percent, refuse_if, shortened

Rows = Callable[[], Iterator[np.ndarray]]  # iterates again over float64 blocks, NaN if missing
WINDOW, ORDER = 11, 2  # Savitzky-Golay filter; the window is shorter if there are fewer features
MOST_QUANTILES, MOST_RANKED, MOST_JUDGED, SMALL = 256, 10_000, 1 << 21, 0.1


def _medians(of: Callable[[np.ndarray], np.ndarray]) -> Callable[[Rows], np.ndarray]:
    """Return a function that learns medians over rows, given m numbers (n, m) per row."""
    return lambda rows: np.atleast_1d(np.median(np.concatenate([of(x) for x in rows()]), axis=0))


def _or_one(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 1)


def _level_and_spread(x: np.ndarray) -> np.ndarray:
    return np.stack([x.mean(axis=1), x.std(axis=1)], axis=1)


def _snv(x: np.ndarray, _: np.ndarray) -> np.ndarray:
    level, spread = _level_and_spread(x).T[:, :, None]
    return np.asarray((x - level) / _or_one(spread))


def _derivative(x: np.ndarray, _: np.ndarray) -> np.ndarray:
    from scipy.signal import savgol_filter

    window = min(WINDOW, x.shape[1] - 1 + x.shape[1] % 2)
    refuse_if(window <= ORDER, f"A derivative needs at least {ORDER + 1} features in order.")
    slopes = savgol_filter(x, window, ORDER, deriv=1, axis=1, mode="interp")
    # parabolas have noisier slopes at their ends, so the nearest slope of a whole window is used
    slopes[:, : window // 2] = slopes[:, [window // 2]]
    slopes[:, -(window // 2) :] = slopes[:, [-(window // 2) - 1]]
    return np.asarray(slopes)


def _integral(y: np.ndarray, learned: np.ndarray) -> np.ndarray:
    from scipy.integrate import cumulative_trapezoid

    x = cumulative_trapezoid(y, axis=1, initial=0)
    return np.asarray(x - x.mean(axis=1, keepdims=True) + learned[0])


def _idf(rows: Rows) -> np.ndarray:
    """Return a typical row length (1,), followed by inverse document frequencies (D,)."""
    from scipy.sparse import csr_array, vstack
    from sklearn.feature_extraction.text import TfidfTransformer

    counts = vstack([csr_array(x) for x in rows()], format="csr")
    idf = TfidfTransformer().fit(counts).idf_
    return np.append(np.median(np.sqrt(counts.multiply(counts) @ idf**2)), idf)


def _tfidf(x: np.ndarray, learned: np.ndarray) -> np.ndarray:
    from sklearn.preprocessing import normalize

    return np.asarray(normalize(x * learned[1:].astype(x.dtype), copy=False))


def _half_of_least(rows: Rows) -> np.ndarray:
    """Return the median sum of a row (1,), then half of each feature's least positive value."""
    total = _medians(lambda x: x.sum(axis=1))(rows)
    least = np.min([np.where(x > 0, x, np.inf).min(axis=0) for x in rows()], axis=0)
    refuse_if(not np.isfinite(least).any(), "A log-ratio needs positive values; all are zero.")
    return np.append(total, np.where(np.isfinite(least), least, least.min()) / 2)


def _clr(x: np.ndarray, learned: np.ndarray) -> np.ndarray:
    logs = np.log(np.where(x > 0, x, learned[1:].astype(x.dtype)))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def _shares(y: np.ndarray, learned: np.ndarray) -> np.ndarray:
    parts = np.exp(y - y.max(axis=1, keepdims=True))
    return np.asarray(parts * (learned[0] / parts.sum(axis=1, keepdims=True)))


def _quantiles(rows: Rows) -> np.ndarray:
    from sklearn.preprocessing import QuantileTransformer

    step = max(1, sum(len(x) for x in rows()) // MOST_RANKED)
    some = np.concatenate([x[::step] for x in rows()])
    n = min(MOST_QUANTILES, len(some))
    return np.asarray(QuantileTransformer(n_quantiles=n, subsample=None).fit(some).quantiles_)


def _small(rows: Rows) -> np.ndarray:
    """Return a small size (D,) of each feature's values: a tenth of the others are smaller."""
    step = max(1, sum(len(x) for x in rows()) // MOST_RANKED)
    sizes = np.concatenate([np.abs(x[::step]) for x in rows()])
    sizes = np.where((sizes > 0).any(axis=0), sizes, 1.0)
    return np.asarray(np.nanquantile(np.where(sizes > 0, sizes, np.nan), SMALL, axis=0))


def _ranks(quantiles: np.ndarray) -> Any:
    from sklearn.preprocessing import QuantileTransformer

    ranks = QuantileTransformer(n_quantiles=len(quantiles))
    ranks.n_features_in_ = quantiles.shape[1]
    ranks.quantiles_, ranks.references_ = quantiles, np.linspace(0, 1, len(quantiles))
    return ranks


class Preparation(NamedTuple):
    """A transformation of values, with its inverse or an approximate inverse.

    `apply` and `undo` take rows (n, D) and the array that `learn` returned. `learn` always reads
    the rows, to check them.
    """

    title: str
    apply: Callable[[np.ndarray, np.ndarray], np.ndarray]
    undo: Callable[[np.ndarray, np.ndarray], np.ndarray]
    learn: Callable[[Rows], np.ndarray] = lambda rows: np.zeros(1) + sum(0 for _ in rows())


PREPARATIONS = {
    "log1p": Preparation(
        "log(1 + x)", lambda x, _: np.log1p(x), lambda y, _: np.expm1(np.maximum(y, 0))
    ),
    "asinh": Preparation(
        "asinh(x / scale)",
        lambda x, small: np.arcsinh(x / small),
        lambda y, s: np.sinh(y) * s,
        _small,
    ),
    "counts": Preparation(
        "log(1 + x) of counts per row",
        lambda x, total: np.log1p(x * (total / _or_one(x.sum(axis=1, keepdims=True)))),
        lambda y, _: np.expm1(np.maximum(y, 0)),
        _medians(lambda x: x.sum(axis=1)),
    ),
    "clr": Preparation("centred log-ratio", _clr, _shares, _half_of_least),
    "sqrt": Preparation(
        "square root", lambda x, _: np.sqrt(x), lambda y, _: np.square(np.maximum(y, 0))
    ),
    "snv": Preparation(
        "standard normal variate (SNV)",
        _snv,
        lambda y, typical: y * typical[1] + typical[0],
        _medians(_level_and_spread),
    ),
    "derivative": Preparation(
        "first derivative", _derivative, _integral, _medians(lambda x: x.mean(axis=1))
    ),
    "snv_derivative": Preparation(
        "first derivative of SNV",
        lambda x, _: _derivative(_snv(x, _), _),
        lambda y, typical: _integral(y, np.zeros(1)) * typical[1] + typical[0],
        _medians(_level_and_spread),
    ),
    "tfidf": Preparation("TF-IDF", _tfidf, lambda y, learned: y * (learned[0] / learned[1:]), _idf),
    "ranks": Preparation(
        "ranks",
        lambda x, learned: np.asarray(_ranks(learned).transform(x)),
        lambda y, learned: np.asarray(_ranks(learned).inverse_transform(np.clip(y, 0, 1))),
        _quantiles,
    ),
}
FROM_ZERO = {"log1p", "counts", "clr", "sqrt", "tfidf"}  # preparations of nonnegative values
# for complete rows in one unit
BY_ROW = {"counts", "clr", "snv", "derivative", "snv_derivative", "tfidf"}


class Prepared(NamedTuple):
    """A preparation with the array it learned from rows."""

    name: str
    learned: np.ndarray  # (m,), (D,) for asinh, or (Q, D) for ranks

    @classmethod
    def fit(cls, name: str, rows: Rows) -> "Prepared":
        """Learn from rows; InputError if their values do not allow the preparation."""
        return cls(name, PREPARATIONS[name].learn(lambda: (_checked(name, x) for x in rows())))

    @property
    def title(self) -> str:
        """The name of the preparation, in words."""
        return PREPARATIONS[self.name].title

    @property
    def is_by_row(self) -> bool:
        """Whether a prepared value depends on the other values of its row."""
        return self.name in BY_ROW

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return prepared rows (n, D) of the same dtype."""
        y = PREPARATIONS[self.name].apply(_checked(self.name, x), self.learned)
        return y.astype(x.dtype, copy=False)

    def undo(self, y: np.ndarray) -> np.ndarray:
        """Return rows (n, D) in data units, with a typical size if sizes were normalized."""
        return PREPARATIONS[self.name].undo(y, self.learned)

    def sized(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return rows (n, D) of a typical size, from `undo`, at the offset and size of x (D,)."""
        if not self.is_by_row:
            return y
        typical = self.undo(self.apply(x[None]))[0]
        moved = typical - typical.mean()
        size = (moved @ x) / max(moved @ moved, np.finfo(float).tiny)
        return np.asarray((y - typical.mean()) * size + x.mean())

    def suits(self, n_features: int) -> bool:
        """Whether the learned array matches this number of features."""
        ends = {"ranks": (len(self.learned), n_features), "asinh": (n_features,)}
        ends |= dict.fromkeys(("tfidf", "clr"), (n_features + 1,))
        ends |= dict.fromkeys(("snv", "snv_derivative"), (2,))
        return self.learned.shape == ends.get(self.name, (1,))


def _checked(name: str, x: np.ndarray) -> np.ndarray:
    prefix = f"“{capital(PREPARATIONS[name].title)}” needs"
    msg = f"{prefix} nonnegative values, but some are negative; choose asinh or ranks."
    refuse_if(name in FROM_ZERO and (x < 0).any(), msg)
    msg = f"{prefix} complete rows; fill the missing cells or drop their rows."
    refuse_if(name in BY_ROW and np.isnan(x).any(), msg)
    return x


LONG, MANY, HALF = 2.0, 10, 0.5  # minimum skewness, distinct values, share of columns or variance
WIDE, LESS = 300.0, 1.0  # large values by small ones; skewness by which asinh must be better
LEAST_ZERO, MOSTLY_ZERO, LEAST_COUNTED, LEAST_WORDS = 0.3, 0.8, 20, 50
YEARS = (1800, 2100)
MOST_ROWS, MOST_COLUMNS = 1_000, 100  # maximum numbers checked for sums
LEAST_NUMBERED = 20  # rows; fewer whole numbers may differ by chance
RANKED = 0.01  # p of an association with other features, which ranks have and identifiers lack
WIDTH = 512  # features compared with all earlier ones at once
MOST_REPEATS, MOST_SORTED = 10_000, 1 << 22  # checked for repeats: features; values of cells
SAME, SAME_RANKS = 0.999, 0.999_999  # |correlation| of a repeat, of values and of ranks
CLOSED = 0.01  # largest deviation of row sums, relative to their mean and to that if independent
FEW_LONG, SOME = 10, 0.25  # so many long tails are enough if they are this share of the features
NEARLY, FEWEST, MOST_LABELS, MOST_CLASSES = 0.95, 3, 8, 100  # share of empty cells; rows
MUCH_EMPTY = 0.1  # share of rows from which gaps are worth leaving out a column
LEAST_ROWS, MOST_ODD, SHOWN = 20, 3, 3  # rows to judge a column, and values outside its range
_CODES = {-1, -7, -8, -9, -77, -88, -99, -999}  # usual codes of missing values
_RANGES = {  # name by the maximum of nonnegative columns
    100: re.compile(r"%|(^|[^a-z])(pct|perc|percent|percentage)([^a-z]|$)|grad\w*[ ._]?rate$"),
    120: re.compile(r"(^|[ ._])age([ ._]\W?(years?|yrs?))?\W?$"),
    np.inf: re.compile(r"(^|[ ._])(height|weight|length|width|count|area|price)s?$"),
}
_PLACE = re.compile(r"(?i)lat|lon|long|(lat|long)itude|easting|northing|[xy]([_ ]?coo\w*|c)")
_CHANGE = re.compile(r"change|growth|diff|gain|increase|return|gdp|ratio|error|delta|log")
MOST_AT_LEAST = 0.3  # share of a feature's rows at its smallest value, which logarithms inflate
FEWEST, UNCORRELATED = 8, 0.005  # features; their mean square correlation
FEW_ROWS, MOST_PARTS, MOST_COMPOSED = 500, 8, 300  # rows, neighbours, features: sums and means
COLLINEAR, ROUNDED = 1e-3, 0.02  # unexplained share of variance, largest error in deviations


def proposed(dataset: Any) -> tuple[str, str]:
    """Suggest a preparation for a `Dataset`, with the reason; two empty strings if none suits."""
    if dataset.image_shape is not None or dataset.is_recording:
        return "", ""
    names, most = dataset.feature_names or (), max(20, MOST_JUDGED // dataset.n_features)
    X = dataset.with_gaps(slice(None, None, max(1, dataset.n_rows // most))).astype(np.float64)
    is_whole, least = not np.isnan(X).any(), np.nanmin(X, initial=0)
    numbers = dataset.axis[0].tolist() if names and dataset.axis else []
    if numbers[1:] and is_whole and not _are_years(numbers):
        share = _offset_and_factor(X)
        reason = f"Smooth rows over {numbers[0]:g} to {numbers[-1]:g}, which differ mostly by an "
        reason += f"offset and a factor ({percent(share)} of their variance)."
        return ("snv", reason) if share > HALF else ("", "")
    zero = float((X == 0).mean())
    is_counted = is_whole and least >= 0 and zero > LEAST_ZERO and bool((np.rint(X) == X).all())
    far = (10 * np.median(X[X > 0]) <= X).mean(axis=0) if is_counted else np.zeros(1)
    is_other = (far > 0).sum() == 1 and far.max() > HALF  # such as an age among grades
    if X.shape[1] >= LEAST_COUNTED and far.any() and not is_other:
        kind, is_text = "Whole numbers with a long tail", zero > MOSTLY_ZERO and _are_words(names)
        reason = f"{kind}, {percent(zero)} of them zero{', in columns named by words' * is_text}."
        return "tfidf" if is_text else "counts", reason
    long = np.array([len(np.unique(x)) > MANY for x in X.T])
    if is_whole and least >= 0 and min(X.shape) > 2 and long.mean() > HALF:
        total, apart = X.sum(axis=1), np.sqrt(X.var(axis=0).sum())
        is_closed = total.std() < CLOSED * total.mean() and total.std() < CLOSED**0.5 * apart
        if is_closed and (X.min(axis=0) == X).mean(axis=0).max() < MOST_AT_LEAST:
            return "clr", _of_shares(total, zero)
    small = _small(lambda: iter([X]))
    decades = np.nanquantile(np.abs(X), 1 - SMALL, axis=0) / small
    long[long] = (np.abs(_skewness(X[:, long])) > LONG) | (decades[long] > WIDE)
    if long.sum() < max(1, SOME * len(long), min(FEW_LONG, HALF * len(long))):
        return "", ""
    right = least >= 0 and bool((_skewness(X[:, long]) > 0).all())
    logs, signed = np.log1p(np.maximum(X[:, long], 0)), np.arcsinh(X[:, long] / small[long])
    by_log, by_asinh = (np.abs(_skewness(x)) for x in (logs, signed))
    reason = f"Tails are long in {long.sum():,} of {counted(X.shape[1], 'column')}."
    is_better = right and by_log.mean() < by_asinh.mean() + LESS and (by_log < LONG).mean() > HALF
    is_shorter = (by_asinh < LONG).mean() > HALF
    return "log1p" if is_better else "asinh" if is_shorter else "ranks", reason


def are_coefficients(dataset: Any) -> bool:
    """Whether features are uncorrelated, with variances that fall: coefficients of components."""
    n, d = dataset.X.shape
    if dataset.missing is not None or not FEWEST <= d <= MOST_COMPOSED or n < FEW_ROWS:
        return False
    X = dataset.X[:: max(1, n * d // MOST_JUDGED)].astype(np.float64)
    spread = X.std(axis=0)
    if spread.max() < 2 * spread.min() or spread[: d // 2].min() < spread[d // 2 :].max():
        return False
    squares = np.square(np.corrcoef(X[:, spread > 0].T))
    return bool(np.mean(squares[np.triu_indices(len(squares), 1)]) < UNCORRELATED)


def are_small_counts(dataset: Any) -> bool:
    """Whether all values are 0, 1 or 2, such as flags and numbers of alleles."""
    X = dataset.with_gaps(slice(MOST_ROWS))
    return bool(np.isin(X[~np.isnan(X)], (0, 1, 2)).all())


def leaves_out(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether options of a reader differ only in columns that are now ignored."""
    roles = dict(now.get("roles", {}).items() - before.get("roles", {}).items())
    return before | {"roles": 0} == now | {"roles": 0} and {*roles.values()} == {"ignored"}


def redundant(dataset: Any) -> dict[str, str]:
    """Map features that number the rows, or are sums or means of others, to what they are."""
    from scipy.optimize import nnls
    from scipy.stats import f

    D, names = dataset.n_features, dataset.column_names
    if dataset.image_shape is not None or dataset.is_ordered:
        return {}
    reasons = (_composites(dataset) if D <= MOST_COMPOSED else {}) | _repeats(dataset)
    reasons |= {name: "a place, not a measurement" for name in names if _PLACE.fullmatch(name)}
    if D > MOST_COLUMNS:
        return reasons
    X = dataset.with_gaps(slice(MOST_ROWS)).astype(np.float64)
    X = X[~np.isnan(X).any(axis=1)]
    if (n := len(X)) <= 2 * D:
        return reasons
    spread = _or_one(X.std(axis=0))
    Z = (X - X.mean(axis=0)) / spread
    unexplained = 1 / np.diagonal(np.linalg.inv(Z.T @ Z / n + 1e-9 * np.eye(D)))
    for j in (j for j in range(D) if names[j] not in reasons):
        x, others = X[:, j], [i for i in range(D) if i != j and names[i] not in reasons]
        if n >= LEAST_NUMBERED and bool((np.rint(x) == x).all()) and len(set(x.tolist())) == n:
            F = (1 / unexplained[j] - 1) * (n - D) / max(D - 1, 1)
            is_rank = abs(np.sign(np.diff(x)).sum()) < n - 1 and f.sf(F, D - 1, n - D) < RANKED
            reasons |= {names[j]: "a running number"} if np.ptp(x) < 2 * n and not is_rank else {}
        elif unexplained[j] < COLLINEAR and others and np.ptp(x) > 0:
            weights = nnls(X[:, others], x, maxiter=100 * D)[0]
            parts = np.array(others)[weights > weights.max() / 2].tolist()
            for what, by in (("sum", 1), ("mean", max(1, len(parts)))):
                error = np.abs(x - X[:, parts].sum(axis=1) / by).max()
                if len(parts) > 1 and error <= ROUNDED * spread[j]:
                    reasons[names[j]] = f"the {what} of {listed([names[i] for i in parts])}"
    return reasons if len(reasons) <= D // 2 else {}  # more are copies of one another


def _composites(dataset: Any) -> dict[str, str]:
    """Map sums and means of neighbours, or of features named after them, to what they are."""
    names, step = dataset.column_names, max(1, dataset.n_rows // FEW_ROWS)
    X = dataset.with_gaps(slice(None, None, step)).astype(np.float64)
    reasons, present, D = dict[str, str](), ~np.isnan(X), len(names)
    filled, varies = np.where(present, X, 0.0), np.ptp(np.nan_to_num(X), axis=0) > 0
    for j, name in enumerate(names):
        named = [i for i in range(D) if re.match(f"{re.escape(name)}[_. ]", names[i])]
        children = [i for i in named if not any(names[i].startswith(f"{names[k]}_") for k in named)]
        runs = [[*range(j - m, j)] for m in range(2, min(MOST_PARTS, j) + 1)]
        runs += [[*range(j + 1, j + 1 + m)] for m in range(2, min(MOST_PARTS, D - 1 - j) + 1)]
        for parts in (children, *runs):
            differ = np.ptp(filled[:, parts], axis=1) > 0 if parts else np.zeros(1)
            if len(parts) < 2 or not varies[[j, *parts]].all() or differ.sum() < LEAST_NUMBERED:
                continue
            total, n = filled[:, parts].sum(axis=1), present[:, parts].sum(axis=1)
            for what, made, least in (("sum", total, len(parts)), ("mean", total / _or_one(n), 1)):
                rows = present[:, j] & (n >= least)
                error = np.abs(X[rows, j] - made[rows]).max(initial=0)
                if rows.sum() >= LEAST_NUMBERED and error <= ROUNDED / 10 * X[rows, j].std():
                    reasons.setdefault(name, f"the {what} of {listed([names[i] for i in parts])}")
    return reasons


def _repeats(dataset: Any) -> dict[str, str]:
    """Map features to the earlier feature that they repeat, at least almost, in other units."""
    from scipy.stats import rankdata

    D, names, reasons = dataset.n_features, dataset.column_names, dict[str, str]()
    n = min(dataset.n_rows, MOST_ROWS, max(LEAST_NUMBERED, MOST_JUDGED // D))
    if n < LEAST_NUMBERED or D > MOST_REPEATS:
        return {}
    X = dataset.with_gaps(slice(None, None, dataset.n_rows // n)).astype(np.float64)
    gaps, kept = np.isnan(X), np.ones(D, bool)
    ranks = rankdata(np.where(gaps, -np.inf, X), axis=0)  # of functions such as logarithms
    for values, least in ((X, SAME), (ranks, SAME_RANKS)):
        left = np.where(gaps, 0, values - np.nan_to_num(np.nanmean(values, axis=0)))
        Z = (left / _or_one(np.linalg.norm(left, axis=0))).astype(np.float32)
        for first in range(0, D, WIDTH):
            cosines = Z[:, : first + WIDTH].T @ Z[:, first : first + WIDTH]
            for j, cosine in enumerate(cosines.T, start=first):
                near = np.flatnonzero(kept[:j] & (np.abs(cosine[:j]) >= least) & kept[j])
                for i in near[(gaps[:, near] == gaps[:, [j]]).all(axis=0)][:1].tolist():
                    kept[j], as_ranks = False, " of ranks" * (values is ranks)
                    said = f"a repeat of “{names[i]}”, correlation{as_ranks} {cosine[i]:.4f}"
                    reasons[names[j]] = said
    return reasons if len(reasons) <= D // 2 else {}


def told(dataset: Any) -> str:
    """Return sentences on cells to check before a fit."""
    gaps, few = gaps_of_label(dataset), [*out_of_range(dataset).items()][: MOST_ODD * SHOWN]
    odd = [f"{text} in row {shortened(dataset.ids[row])}" for row, text in few]
    are = f"{len(gaps):,} columns are" if len(gaps) > 1 else "1 column is"
    said = [f" {are} {why}: ignore columns or leave out rows." for why in {*gaps.values()}]
    odd += _repeated_values(dataset)[:SHOWN]
    return "".join([*said, f" To check: {'; '.join(odd)}." * bool(odd)])


def _repeated_values(dataset: Any) -> list[str]:
    """Describe values that a few cells share, in features whose other values nearly all differ."""
    said, n = list[str](), dataset.n_rows
    few = n >= MANY * MANY and dataset.X.size <= MOST_SORTED
    if dataset.is_ordered or dataset.image_shape is not None or not few:
        return []
    for name, x in zip(dataset.column_names, dataset.with_gaps().T, strict=True):
        values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
        top = counts.argmax() if len(counts) else 0
        if MANY <= max(counts, default=0) <= n // 50 and len(counts) > NEARLY * (n - counts[top]):
            said.append(
                f"{shortened(name)} is {minus(f'{values[top]:.6g}')} in {counts[top]:,} rows"
            )
    return said


def gaps_of_label(dataset: Any) -> dict[str, str]:
    """Map features that are missing in some classes of a label, but not in others, to why."""
    names, best, top, gaps = dataset.column_names, dict[str, str](), (0, 0), dataset.missing
    places = np.arange(0) if gaps is None else gaps.any(axis=0).nonzero()[0]
    for label in list(dataset.labels)[: MOST_LABELS * bool(len(places))]:
        classes, codes = dataset.classes(label)
        n = np.bincount(codes)
        if len(n) > min(MOST_CLASSES, len(codes) / FEWEST):
            continue
        members = np.eye(len(n), dtype=np.float32)[codes]
        shares = members.T @ gaps[:, places].astype(np.float32) / n[:, None]
        empty = shares.T >= NEARLY
        follow = (shares.T <= 1 - NEARLY).any(axis=1) & (empty @ n >= MUCH_EMPTY * len(codes))
        follow &= np.minimum(empty @ n, ~empty @ n) >= FEWEST
        for kind, count in Counter(map(tuple, empty[follow].tolist())).most_common(1):
            where = [shortened(classes[i]) for i in np.flatnonzero(kind)]
            score = (count, -len(where))
            is_rule = len(where) <= 2 * SHOWN and "missing" not in where
            if is_rule and top < score < (dataset.n_features - 1,):
                where[SHOWN:] = [f"{len(where) - SHOWN} more"] * (len(where) > SHOWN)
                why = f"empty wherever {shortened(label)} = {' or '.join(where)}"
                top = score
                best = {names[j]: why for j in places[follow & np.equal(empty, kind).all(axis=1)]}
    return best


def out_of_range(dataset: Any) -> dict[int, str]:
    """Map a few rows to a value outside the range that the name of its column implies."""
    said, X, names = dict[int, str](), dataset.X, [*map(str.lower, dataset.feature_names or ())]
    if dataset.is_ordered or dataset.image_shape is not None or len(X) < LEAST_ROWS:
        return {}
    most = 100 if any(map(_RANGES[100].search, names)) else np.inf
    for j, (name, low, high) in enumerate(zip(names, X.min(axis=0), X.max(axis=0), strict=False)):
        limits = [limit for limit, named in _RANGES.items() if named.search(name)]
        top, x = [*limits, most][0], X[:, j]
        odd = np.flatnonzero((x < 0) | (x > top)) if low <= -1 or high > top else ()
        if _CHANGE.search(name) or not 0 < len(odd) <= min(MOST_ODD, (1 - NEARLY) * len(x)):
            continue
        inner = np.delete(x, odd)
        is_code = low in _CODES and 2 * (inner.min() - low) >= max(np.ptp(inner), -4 * low)
        if limits or is_code or (low >= 0 and inner.max() == top):
            of = shortened(dataset.feature_names[j])
            said |= {int(i): f"{of} is {minus(f'{x[i]:.6g}')}" for i in odd}
    return said


def _of_shares(total: np.ndarray, zero: float) -> str:
    about = f" ± {total.std():.2g}" if total.std() > 1e-6 * total.mean() else ""
    text = f"Rows sum to {total.mean():.4g}{about}: features are shares, best seen as log-ratios."
    filled = f" Zeros ({percent(zero, 1)}) become half of the feature's smallest positive value."
    return text + filled * (zero > 0)


def _are_years(numbers: Sequence[float]) -> bool:
    within = YEARS[0] <= min(numbers) and max(numbers) <= YEARS[1]
    return within and {abs(step) for step in np.diff(numbers).tolist()} == {1.0}


def _are_words(names: Sequence[str]) -> bool:
    words = sum(name.isalpha() and name.islower() for name in names)
    return len(names) >= LEAST_WORDS and words > MOSTLY_ZERO * len(names)


def _skewness(X: np.ndarray) -> np.ndarray:
    centred = X - np.nanmean(X, axis=0)
    return np.asarray(np.nanmean(centred**3, axis=0) / np.nanmean(centred**2, axis=0) ** 1.5)


def _offset_and_factor(X: np.ndarray) -> float:
    """Return the share of variance explained if rows are shifted, scaled copies of their mean."""
    mean = X.mean(axis=0)
    basis, centred = np.linalg.qr(np.stack([np.ones_like(mean), mean], axis=1))[0], X - mean
    return float(((centred @ basis) ** 2).sum() / max((centred**2).sum(), 1e-300))
