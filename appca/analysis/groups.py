"""Differences between selected rows and the other rows, and selections by a condition."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

import numpy as np

from appca.analysis.components import name_of
from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun
from appca.analysis.permutation import corrected
from appca.analysis.subspaces import supports
from appca.data.dataset import Dataset, categories
from appca.frames import column_of as column_of_table
from appca.words import InputError, number, percent, shortened

MOST_FEATURES = 1000  # that are offered by name at once
MEASURES = {
    "residual": "error",
    "membership": "membership",
    "likelihood": "log_likelihood_rows",
}
CHANNELS = ("red", "green", "blue")
OF_CLASSES = {"is": "is one of", "is not": "is none of"}
OF_NUMBERS = {
    "above": "is above",
    "below": "is below",
    "highest": "is among the highest, %",
    "lowest": "is among the lowest, %",
}


class RowValues(NamedTuple):
    """Something that every row has: a class or a number."""

    name: str
    values: np.ndarray  # (N,) numbers, or codes into names
    names: tuple[str, ...] | None = None  # of the classes; None for numbers


def names_of(dataset: Dataset, fitted: FittedRun, wanted: str = "") -> dict[str, str]:
    """Return what a rule can be about, key to name: labels, the model's measures, features.

    Of very many features, the first `MOST_FEATURES` are named that hold the text `wanted`.
    """
    names = {f"label:{name}": name for name in dataset.labels}
    names["subspace"] = "subspace"
    names |= {key: key for key in MEASURES}
    n_components = fitted.scores.shape[1]
    names |= {f"score:{k}": score_name(fitted, k) for k in range(n_components)}
    if dataset.image_shape is None:
        text = wanted.casefold()
        features = (
            (j, name) for j, name in enumerate(dataset.column_names) if text in name.casefold()
        )
        names |= {f"feature:{j}": name for j, name in islice(features, MOST_FEATURES)}
    return names


def score_name(model: FittedModel, k: int) -> str:
    """Return what the score on component k, counted from 0, is called."""
    return f"score on {name_of(model, k)}"


def column_of(dataset: Dataset, fitted: FittedRun, key: str) -> RowValues:
    """Return the column a key of `names_of` stands for.

    A row that does not use a component has no score on it: NaN, not the zero that is stored.
    """
    kind, _, rest = key.partition(":")
    if kind == "label":
        return label_column(rest, dataset.labels[rest])
    if kind == "subspace":
        return subspace_column(fitted.active)
    if kind == "score":
        k = int(rest)
        scores = np.where(fitted.active[:, k], fitted.scores[:, k], np.nan)
        return RowValues(score_name(fitted, k), scores)
    if kind == "feature":
        return feature_column(dataset, int(rest))
    return RowValues(kind, measure(fitted, kind))


def measure(rows: DescribedRows, kind: str) -> np.ndarray:
    """Return one number a row, (N,), by a key of `MEASURES`."""
    return np.asarray(getattr(rows, MEASURES[kind]))


def feature_column(dataset: Dataset, j: int) -> RowValues:
    """Return a feature as numbers, NaN where its cell is missing."""
    values = dataset.X[:, j]
    if dataset.missing is not None:
        values = np.where(dataset.missing[:, j], np.nan, values)
    return RowValues(feature_name(dataset, j), values)


def feature_name(dataset: Dataset, j: int) -> str:
    """Return a feature's own name, a pixel's place counted from 1 at the top left, or a number."""
    if dataset.feature_names is not None:
        return dataset.feature_names[j]
    if dataset.image_shape is None:
        return f"feature {j + 1}"
    row, column, *channel = np.unravel_index(j, dataset.image_shape)
    shade = f", {CHANNELS[channel[0]]}" if channel else ""
    return f"pixel row {row + 1}, column {column + 1}{shade}"


def label_column(name: str, values: np.ndarray) -> RowValues:
    """Return a label as classes where it is text or has few whole numbers, else as numbers."""
    if values.dtype.kind != "U":
        column = column_of_table(name, values)
        if column.kind != "class":
            return RowValues(name, values)
        codes = np.nan_to_num(column.values, nan=-1).astype(np.int64)
        values = np.array([*column.names, ""])[codes]
    names, codes = categories(values)
    return RowValues(name, codes, tuple(names))


def subspace_column(active: np.ndarray) -> RowValues:
    """Return which subspace each row lies in, the fullest first."""
    codes, names = supports(active)
    return RowValues("subspace", codes, tuple(names))


def matching(column: RowValues, relation: str, value: float | Sequence[str]) -> np.ndarray:
    """Return the rows that a rule holds for, (N,) bool.

    `relation` is a key of `OF_CLASSES` for classes, which `value` names, and of `OF_NUMBERS` for
    numbers: "highest" 5 are the rows above the 95% quantile. Raises InputError when it does not
    suit the column, or a share is not one.
    """
    rules = OF_NUMBERS if column.names is None else OF_CLASSES
    if relation not in rules:
        kind = "numbers" if column.names is None else "classes"
        msg = f"“{column.name}” has {kind}, so a rule is one of {', '.join(rules)}; got {relation}."
        raise InputError(msg)
    if column.names is not None:
        chosen = (value,) if isinstance(value, float | int) else value
        wanted = [code for code, name in enumerate(column.names) if name in chosen]
        return np.isin(column.values, wanted, invert=relation == "is not")
    values = np.asarray(column.values, dtype=np.float64)
    limit = float(cast("float", value))
    if relation in ("highest", "lowest"):
        limit = _quantile(values, relation, limit)
    with np.errstate(invalid="ignore"):  # a missing value is neither above nor below
        return values > limit if relation in ("above", "highest") else values < limit


def _quantile(values: np.ndarray, relation: str, percent: float) -> float:
    if not 0 < percent < 100:
        msg = f"A share of the rows lies between 0 and 100%; got {percent:g}."
        raise InputError(msg)
    there = values[np.isfinite(values)]
    if not len(there):
        return np.inf if relation == "highest" else -np.inf
    return float(np.percentile(there, 100 - percent if relation == "highest" else percent))


LEAST = 2  # rows on either side, below which nothing is compared
LEAST_USERS = 5  # rows on either side that use a component, to compare their scores
MOST_CLASSES = 50  # of a column, the largest ones
MOST_VALUES = 1 << 24  # numbers that are ranked; larger tables are compared on a sample of rows
FEWEST_SAMPLED = 1000  # rows of either side in such a sample
EXACT = 20  # rows in all, up to which the rank test counts all arrangements
SMALL_COUNT = 5.0  # expected rows in a cell, below which the exact test of a table is taken
# Of |delta|, after Romano et al. (2006): below the first negligible, then small, medium, large.
STRENGTHS = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))
SIGNIFICANT = 0.05
_SEED = 0  # the same rows are sampled each time
_BLOCK_VALUES = 1 << 22


class GroupDifference(NamedTuple):
    """One thing in which the group and the rest were compared."""

    kind: str  # "feature", "score", "use", "class", "subspace" or "measure"
    name: str  # of the thing; of a class “column = class”
    group: float  # mean, or share of the rows
    rest: float
    effect: float  # Cliff's delta, or the difference of the shares; above 0: more in the group
    d: float | None  # Cohen's d of a number; NaN where neither side varies
    p: float  # of one test: Mann-Whitney, chi-square or Fisher
    corrected: float = np.nan  # for all tests together, after Benjamini and Hochberg

    @property
    def is_share(self) -> bool:
        """Whether `group` and `rest` are shares of rows, not means."""
        return self.d is None

    @property
    def strength(self) -> str:
        """The size of the effect in a word."""
        size = abs(self.effect)
        return next((word for limit, word in STRENGTHS if size < limit), "large")

    @property
    def matters(self) -> bool:
        """Whether the effect is neither negligible nor likely by chance."""
        return self.strength != "negligible" and self.corrected < SIGNIFICANT


class GroupComparison(NamedTuple):
    """A group against the rest."""

    n_group: int
    n_rest: int
    differences: list[GroupDifference]  # strongest first
    sampled: int | None  # rows the features were compared on, where that was not all
    n_tests: int


def compare(dataset: Dataset, fitted: FittedRun, mask: np.ndarray) -> GroupComparison:
    """Compare the rows of a group, mask (N,), with all others in labels, features and the fit.

    Pixels of images are not compared. Differences are ranked by the size of the effect, ties by
    Cohen's d. What a panel has chosen its rows by is left out where all rows of the group share
    one. Raises InputError when the group or the rest has less than two rows.
    """
    n_group, n_rest = int(mask.sum()), int((~mask).sum())
    if min(n_group, n_rest) < LEAST:
        msg = (
            f"A group is compared with the other rows, and both need at least {LEAST}; got "
            f"{n_group:,} selected and {n_rest:,} other rows, so select more or fewer."
        )
        raise InputError(msg)
    values = np.stack([measure(fitted, name) for name in MEASURES], axis=1)
    measured = _numbers("measure", list(MEASURES), values[mask], values[~mask])
    # the zeros of rows that do not use a component are its use, not its score
    values = np.where(fitted.active, fitted.scores, np.nan)
    names = [score_name(fitted, k) for k in range(values.shape[1])]
    measured += _numbers("score", names, values[mask], values[~mask], LEAST_USERS)
    measured += [*_uses(fitted, mask), *_labels(dataset, mask)]
    features, sampled = _features(dataset, mask)
    measured += features
    p = np.array([difference.p for difference in measured])
    q = corrected(p)
    supports = fitted.active[mask]
    chosen_by = ("subspace", "use") if (supports == supports[0]).all() else ()
    differences = [
        each._replace(corrected=float(q[i]))
        for i, each in enumerate(measured)
        if each.kind not in chosen_by
    ]
    return GroupComparison(
        n_group,
        n_rest,
        sorted(
            differences,
            key=lambda each: (-abs(each.effect), -abs(np.nan_to_num(each.d or 0.0)), each.name),
        ),
        sampled,
        len(p),
    )


def _rank(difference: GroupDifference) -> tuple[float, float, str]:
    d = 0.0 if difference.d is None or np.isnan(difference.d) else abs(difference.d)
    return -abs(difference.effect), -d, difference.name


def numbers(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compare columns of numbers of the group (n, D) and of the rest (m, D); NaN is missing.

    Returns Cliff's delta, Cohen's d (difference of the means over the pooled standard deviation),
    and p of Mann-Whitney's two-sided test, 1 for columns without two different values; each (D,).
    """
    from scipy.stats import mannwhitneyu

    x, y = x.astype(np.float64), y.astype(np.float64)
    n, m = (np.isfinite(side).sum(axis=0) for side in (x, y))
    both = np.vstack([x, y])
    varied = np.nanmax(both, axis=0) > np.nanmin(both, axis=0)
    pooled = (n * np.nanvar(x, axis=0) + m * np.nanvar(y, axis=0)) / (n + m - 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.nanmean(x, axis=0) - np.nanmean(y, axis=0)
        d = np.where(pooled > 0, gap / np.sqrt(pooled), np.nan)
    delta, p = np.zeros(x.shape[1]), np.ones(x.shape[1])
    if varied.any():
        method = "auto" if len(both) <= EXACT else "asymptotic"
        policy = "omit" if np.isnan(both).any() else "propagate"
        result = mannwhitneyu(x[:, varied], y[:, varied], axis=0, method=method, nan_policy=policy)
        delta[varied] = 2 * result.statistic / (n * m)[varied] - 1
        p[varied] = result.pvalue
    return delta, d, p


def share_test(a: int, n: int, b: int, m: int) -> float:
    """Return the p value of a of n rows against b of m rows.

    Chi-square without correction; Fisher's exact test where a cell is expected below 5.
    """
    from scipy.stats import chi2_contingency, fisher_exact

    if a + b in (0, n + m):
        return 1.0
    table = [[a, n - a], [b, m - b]]
    test = chi2_contingency(table, correction=False)
    few = test.expected_freq.min() < SMALL_COUNT
    return float(fisher_exact(table).pvalue if few else test.pvalue)


def mean_images(dataset: Dataset, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean rows (D,) of the group and of the rest, in data units."""
    sums = np.zeros((2, dataset.n_features))
    step = max(1, _BLOCK_VALUES // dataset.n_features)
    for start in range(0, dataset.n_rows, step):
        block = dataset.X[start : start + step].astype(np.float64)
        inside = mask[start : start + step]
        sums[0] += block[inside].sum(axis=0)
        sums[1] += block[~inside].sum(axis=0)
    return sums[0] / max(mask.sum(), 1), sums[1] / max((~mask).sum(), 1)


def _uses(fitted: FittedRun, mask: np.ndarray) -> Iterator[GroupDifference]:
    active = fitted.active
    for k in range(active.shape[1]):
        if not active[:, k].all():
            yield _share("use", f"use of {name_of(fitted, k)}", active[:, k], mask)
    subspaces = subspace_column(active)
    names = subspaces.names or ()
    if len(names) > 1:
        for code, name in enumerate(names[:MOST_CLASSES]):  # the fullest come first
            yield _share("subspace", f"subspace {name}", subspaces.values == code, mask)


def _labels(dataset: Dataset, mask: np.ndarray) -> Iterator[GroupDifference]:
    for name, values in dataset.labels.items():
        column = label_column(name, values)
        if column.names is None:
            x = np.asarray(values, dtype=np.float64)[:, None]
            yield from _numbers("class", [name], x[mask], x[~mask])
        elif len(column.names) > 1:
            largest = np.argsort(-np.bincount(column.values), kind="stable")[:MOST_CLASSES]
            for code in sorted(largest):
                label = f"{name} = {column.names[code]}"
                yield _share("class", label, column.values == code, mask)


def _features(dataset: Dataset, mask: np.ndarray) -> tuple[list[GroupDifference], int | None]:
    """Compare the named features; on a sample of rows where there are very many values."""
    if dataset.image_shape is not None:
        return [], None
    names = dataset.column_names
    group, rest = np.flatnonzero(mask), np.flatnonzero(~mask)
    most = max(FEWEST_SAMPLED, MOST_VALUES // dataset.n_features // 2)
    rng = np.random.default_rng(_SEED)
    sides = [rng.permutation(rows)[:most] if len(rows) > most else rows for rows in (group, rest)]
    group, rest = map(np.sort, sides)
    differences: list[GroupDifference] = []
    step = max(1, _BLOCK_VALUES // (len(group) + len(rest)))
    for start in range(0, dataset.n_features, step):
        part = slice(start, start + step)
        x, y = (dataset.X[rows, part].astype(np.float64) for rows in (group, rest))
        if dataset.missing is not None:
            x[dataset.missing[group, part]], y[dataset.missing[rest, part]] = np.nan, np.nan
        differences += _numbers("feature", names[part], x, y)
    compared = len(group) + len(rest)
    return differences, compared if compared < dataset.n_rows else None


def _numbers(
    kind: str, names: Sequence[str], x: np.ndarray, y: np.ndarray, least: int = LEAST
) -> list[GroupDifference]:
    """Compare columns of numbers that have at least so many values on either side."""
    enough = np.minimum(*(np.isfinite(side).sum(axis=0) for side in (x, y))) >= least
    x, y = (np.where(np.isfinite(side), side, np.nan)[:, enough] for side in (x, y))
    means: list[Any] = [np.nanmean(side, axis=0, dtype=np.float64) for side in (x, y)]
    columns = zip(*means, *numbers(x, y), strict=True) if enough.any() else ()
    kept = [name for name, is_kept in zip(names, enough, strict=True) if is_kept]
    return [
        GroupDifference(kind, name, *map(float, column))
        for name, column in zip(kept, columns, strict=True)
    ]


def _share(kind: str, name: str, has: np.ndarray, mask: np.ndarray) -> GroupDifference:
    a, b = int((has & mask).sum()), int((has & ~mask).sum())
    n = int(mask.sum())
    m = len(mask) - n
    return GroupDifference(kind, name, a / n, b / m, a / n - b / m, None, share_test(a, n, b, m))


NAMED = 3  # differences in the sentence


def sentence(comparison: GroupComparison, group: str = "These rows") -> str:
    """Say in a sentence what sets the group apart most: the strongest differences of several kinds.

    `group` is what the sentence calls the group.
    """
    strongest: dict[str, GroupDifference] = {}  # of each kind
    for difference in comparison.differences:
        if difference.matters:
            strongest.setdefault(difference.kind, difference)
    if not strongest:
        return (
            f"{group} and the other {comparison.n_rest:,} do not differ: in "
            f"{comparison.n_tests:,} tests, none exceeds both chance and a negligible size."
        )
    phrases = [_phrase(difference) for difference in strongest.values()][:NAMED]
    listed = " and ".join([", ".join(phrases[:-1]), phrases[-1]] if phrases[1:] else phrases)
    return f"{group} differ{'s' if comparison.n_group == 1 else ''} from the rest most in {listed}."


def _phrase(difference: GroupDifference) -> str:
    name = shortened(difference.name)
    if not difference.is_share:
        way = "higher" if difference.effect > 0 else "lower"
        means = number(difference.group), number(difference.rest)
        return f"{name} ({way}: {means[0]} on average, the rest {means[1]})"
    return f"{name} ({percent(difference.group)} of them, {percent(difference.rest)} of the rest)"


def probability(value: float) -> str:
    """Return a p value as people write it."""
    if value < 1e-300:
        return "< 1e-300"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}".replace("e-0", "e-")
