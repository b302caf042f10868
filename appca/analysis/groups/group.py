"""What sets a group of rows apart from all other rows: effect sizes, and p values for all of them.

Everything is ranked on one scale. For a number it is Cliff's delta, P(x > y) - P(x < y) for a row x
of the group and a row y of the rest; for something a row has or has not it is the difference of the
two shares, which is Cliff's delta of the 0s and 1s. It lies between -1 and 1 and, unlike a p value
or Cramer's V, does not depend on how many rows there are.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from appca.analysis.components.components import name_of
from appca.analysis.fitted import FittedRun
from appca.analysis.groups.row_query import (
    MEASURES,
    label_column,
    measure,
    score_name,
    subspace_column,
)
from appca.data.dataset import Dataset
from appca.words.errors import InputError

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
    from scipy.stats import false_discovery_control

    n_group, n_rest = int(mask.sum()), int((~mask).sum())
    if min(n_group, n_rest) < LEAST:
        msg = (
            f"A group is compared with the other rows, and both need at least {LEAST}; got "
            f"{n_group:,} selected and {n_rest:,} other rows, so select more or fewer."
        )
        raise InputError(msg)
    measured = [
        each for name in MEASURES for each in _number("measure", name, measure(fitted, name), mask)
    ]
    measured += [*_scores(fitted, mask), *_uses(fitted, mask), *_labels(dataset, mask)]
    features, sampled = _features(dataset, mask)
    measured += features
    p = np.array([difference.p for difference in measured])
    q = false_discovery_control(p)  # Benjamini and Hochberg (1995)
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
        sorted(differences, key=lambda each: (-abs(each.effect), -_size(each.d), each.name)),
        sampled,
        len(p),
    )


def numbers(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compare columns of finite numbers of the group (n, D) and of the rest (m, D).

    Returns Cliff's delta, Cohen's d (difference of the means over the pooled standard deviation),
    and p of Mann-Whitney's two-sided test, 1 for columns without two different values; each (D,).
    """
    from scipy.stats import mannwhitneyu

    n, m = len(x), len(y)
    x, y = x.astype(np.float64), y.astype(np.float64)
    pooled = (n * x.var(axis=0) + m * y.var(axis=0)) / (n + m - 2)
    gap = x.mean(axis=0) - y.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = np.where(pooled > 0, gap / np.sqrt(pooled), np.nan)
    varied = np.ptp(np.vstack([x, y]), axis=0) > 0
    delta, p = np.zeros(x.shape[1]), np.ones(x.shape[1])
    if varied.any():
        method = "auto" if n + m <= EXACT else "asymptotic"
        result = mannwhitneyu(x[:, varied], y[:, varied], axis=0, method=method)
        delta[varied] = 2 * result.statistic / (n * m) - 1
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


def _scores(fitted: FittedRun, mask: np.ndarray) -> Iterator[GroupDifference]:
    """Compare scores among the rows that use the component; the zeros of the others are its use."""
    for k in range(fitted.scores.shape[1]):
        users = fitted.active[:, k]
        if min((users & mask).sum(), (users & ~mask).sum()) >= LEAST_USERS:
            values = np.where(users, fitted.scores[:, k], np.nan)
            yield from _number("score", score_name(fitted, k), values, mask)


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
            yield from _number("class", name, np.asarray(values, dtype=np.float64), mask)
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
    group, rest = (_sample(rows, most, rng) for rows in (group, rest))
    differences = []
    step = max(1, _BLOCK_VALUES // (len(group) + len(rest)))
    for start in range(0, dataset.n_features, step):
        part = slice(start, start + step)
        x, y = dataset.X[group, part], dataset.X[rest, part]
        delta, d, p = numbers(x, y)
        for j, name in enumerate(names[part]):
            means = (float(x[:, j].mean(dtype=float)), float(y[:, j].mean(dtype=float)))
            differences.append(
                GroupDifference("feature", name, *means, float(delta[j]), float(d[j]), float(p[j]))
            )
    compared = len(group) + len(rest)
    return differences, compared if compared < dataset.n_rows else None


def _sample(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= most else np.sort(rng.permutation(rows)[:most])


def _number(
    kind: str, name: str, values: np.ndarray, mask: np.ndarray
) -> Iterator[GroupDifference]:
    there = np.isfinite(values)
    x, y = values[mask & there], values[~mask & there]
    if min(len(x), len(y)) >= LEAST:
        delta, d, p = numbers(x[:, None], y[:, None])
        means = (float(x.mean(dtype=float)), float(y.mean(dtype=float)))
        yield GroupDifference(kind, name, *means, float(delta[0]), float(d[0]), float(p[0]))


def _share(kind: str, name: str, has: np.ndarray, mask: np.ndarray) -> GroupDifference:
    a, b = int((has & mask).sum()), int((has & ~mask).sum())
    n = int(mask.sum())
    m = len(mask) - n
    return GroupDifference(kind, name, a / n, b / m, a / n - b / m, None, share_test(a, n, b, m))


def _size(d: float | None) -> float:
    return 0.0 if d is None or np.isnan(d) else abs(d)
