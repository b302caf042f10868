"""How well a projection keeps what is near near, and classes apart.

Other rows are ranked by distance from an anchor row, equal distances by row number; with r the
rank in the data, s the rank in the projection, and both counted from 1,

    trustworthiness = 1 - 2 / (k (2 N - 3 k - 1)) sum over j with s(j) <= k of max(r(j) - k, 0)

averaged over anchors (Venna & Kaski 2001): it falls when rows become neighbours that were far
apart. Continuity is the same with data and projection exchanged: it falls when neighbours are torn
apart. Up to `ANCHORS` rows all are anchors; of more rows a random sample is, each ranked against
all rows, and what the sample adds is said as a standard error. No N x N matrix is made.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from appca.analysis.check.choose import sample_of
from appca.analysis.explore.subspaces import LEAST_ROWS, ranked

Report = Callable[[float], object]  # share done; raising from it ends the work
ANCHORS = 2000
PANEL_ANCHORS = 500
NEIGHBOURS = 15
# Up to DIRECT products distances are sums of squared differences. Beyond, they come from a matrix
# product: in float64 up to PRECISE, then in float32 if X is, where ranks of rows that are nearly
# equally far may swap.
DIRECT, PRECISE = 3e8, 3e10
FLAT = 3  # features of a map, whose crowds float32 cannot order
_BLOCK = 1 << 22  # distances at a time


class AnchorMean(NamedTuple):
    """A mean over anchor rows."""

    value: float
    error: float  # standard error of sampling the anchors; 0 where every row is one


class RowNeighbours(NamedTuple):
    """The nearest rows of a row in the data and in a projection."""

    false: float  # 1 less the row's own trustworthiness
    missing: float  # 1 less the row's own continuity
    kept: float  # share of its k nearest rows that stay among its k nearest
    neighbours: np.ndarray  # (k,) in the projection


class Quality(NamedTuple):
    """What a projection keeps."""

    trustworthiness: AnchorMean
    continuity: AnchorMean
    kept: AnchorMean  # share of a row's k nearest rows that stay among its k nearest
    accuracy: AnchorMean | None  # of the class that most of the k nearest rows have
    n_neighbors: int
    n_rows: int


class Crowding(NamedTuple):
    """How well the class of a panel's rows can be read off their nearest rows."""

    components: tuple[int, ...]
    n_rows: int
    panel: AnchorMean  # in the panel, which holds its own rows only
    same_rows: AnchorMean  # the same rows in the other projection, only they
    all_rows: AnchorMean  # the same rows in the other projection, among all rows


def quality(
    X: np.ndarray,
    E: np.ndarray,
    *,
    n_neighbors: int = NEIGHBOURS,
    classes: np.ndarray | None = None,
    n_anchors: int = ANCHORS,
    random_state: int = 0,
    report: Report = lambda _share: None,
) -> Quality:
    """Compare the neighbours of rows in the data X (N, D) and in a projection E (N, q).

    Of a model whose rows use different components, E has all K scores, zero where a component is
    not used, so that rows of different subspaces can be distinguished. `classes` (N,) are numbers
    from 0 on, negative where there is none: such rows are no anchors and have no vote, and of
    equally frequent classes the smallest number wins. Raises ValueError when the rows of X and E
    differ in number, or k is not below N / 2.
    """
    n, k = len(X), n_neighbors
    refuse_neighbours(n, k, E)
    anchors = sample_of(n, n_anchors, random_state)
    measures = np.empty((len(anchors), 3))
    right = np.full(len(anchors), np.nan)
    for done, compared in enumerate(compared_rows(X, E, anchors, k, report)):
        measures[done] = 1.0 - compared.false, 1.0 - compared.missing, compared.kept
        if classes is not None:
            right[done] = _vote(classes, compared.neighbours, anchors[done])
    trustworthiness, continuity, kept = (_mean(values, n) for values in measures.T)
    has_class = ~np.isnan(right)
    labelled = 0 if classes is None else int(np.count_nonzero(classes >= 0))
    accuracy = _mean(right[has_class], labelled) if has_class.any() else None
    return Quality(trustworthiness, continuity, kept, accuracy, k, n)


def compared_rows(
    X: np.ndarray, E: np.ndarray, anchors: np.ndarray, k: int, report: Report
) -> Iterator[RowNeighbours]:
    """Compare the k nearest rows of each anchor in the data and in a projection, exactly."""
    blocks = zip(_distances(X, anchors), _distances(E, anchors), strict=True)
    done, worst = 0, worst_excess(len(X), k)
    for in_data, in_projection in blocks:
        report(done / len(anchors))
        done += len(in_data)
        for near, image in zip(in_data, in_projection, strict=True):
            neighbours, others = nearest(near, k), nearest(image, k)
            kept = len(np.intersect1d(neighbours, others, assume_unique=True)) / k
            false, missing = _excess(near, others, k), _excess(image, neighbours, k)
            yield RowNeighbours(false / worst, missing / worst, kept, others)


def worst_excess(n: int, k: int) -> float:
    """Sum of what the largest k ranks of n - 1 other rows exceed k by."""
    return k * (2.0 * n - 3.0 * k - 1.0) / 2.0


def knn_accuracy(
    E: np.ndarray, classes: np.ndarray, anchors: np.ndarray, n_neighbors: int, population: int
) -> AnchorMean:
    """Share of anchor rows whose class most of their k nearest rows of E (N, q) have.

    `classes` (N,) are numbers, negative where there is none, see `quality`. The anchors are numbers
    of rows with a class, drawn from `population` rows.
    """
    right = [
        _vote(classes, nearest(row, n_neighbors), anchor)
        for row, anchor in zip(chain.from_iterable(_distances(E, anchors)), anchors, strict=True)
    ]
    return _mean(np.array(right), population)


def crowding(
    scores: np.ndarray,
    active: np.ndarray,
    other: np.ndarray,
    classes: np.ndarray,
    *,
    n_neighbors: int = NEIGHBOURS,
    most: int = 12,
    random_state: int = 0,
) -> list[Crowding]:
    """Compare panels of single subspaces with one picture of all rows, by k-NN accuracy.

    scores and active (N, K) are of the piecewise projection, `other` (N, q) of the picture, such as
    PCA's; classes are negative where there is none. The `most` occupied panels are compared,
    without those that have too few rows for k neighbours. `random_state` draws a sample of each
    panel's rows.
    """
    least = max(LEAST_ROWS, 2 * n_neighbors + 2)
    crowdings: list[Crowding] = []
    for group in ranked(active):
        rows = group.rows
        if len(crowdings) == most:
            break
        if len(rows) < least or not group.components or not (classes[rows] >= 0).any():
            continue
        labelled = np.flatnonzero(classes[rows] >= 0)
        places = labelled[sample_of(len(labelled), PANEL_ANCHORS, random_state)]
        how = n_neighbors, len(labelled)
        panel = scores[np.ix_(rows, np.asarray(group.components))]
        crowded = Crowding(
            group.components,
            len(rows),
            knn_accuracy(panel, classes[rows], places, *how),
            knn_accuracy(other[rows], classes[rows], places, *how),
            knn_accuracy(other, classes, rows[places], *how),
        )
        crowdings.append(crowded)
    return crowdings


def nearest(distances: np.ndarray, k: int) -> np.ndarray:
    """Return the k rows of the smallest distances (N,), of equal ones those that come first."""
    limit = np.partition(distances, k - 1)[k - 1]
    below = np.flatnonzero(distances < limit)
    return np.concatenate([below, np.flatnonzero(distances == limit)[: k - len(below)]])


def _excess(distances: np.ndarray, rows: np.ndarray, k: int) -> float:
    """Sum over rows of what their rank by distance exceeds k by."""
    total = 0
    for row in rows:
        near = distances[row]
        before = np.count_nonzero(distances < near) + np.count_nonzero(distances[:row] == near)
        total += max(int(before) + 1 - k, 0)
    return float(total)


def _vote(classes: np.ndarray, neighbours: np.ndarray, anchor: int) -> float:
    """Whether the neighbours' most frequent class is the anchor's: 1, 0, or NaN without one."""
    if classes[anchor] < 0:
        return np.nan
    votes = classes[neighbours]
    votes = votes[votes >= 0]
    return float(len(votes) > 0 and np.bincount(votes).argmax() == classes[anchor])


def _mean(values: np.ndarray, population: int) -> AnchorMean:
    m = len(values)
    if m >= population or m < 2:
        return AnchorMean(float(values.mean()), 0.0)
    error = values.std(ddof=1) * np.sqrt((1.0 - m / population) / m)
    return AnchorMean(float(values.mean()), float(error))


def _distances(X: np.ndarray, anchors: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks (b, N) of squared distances from the anchors, up to what is the same along a row.

    An anchor is infinitely far from itself. The blocks have the same rows for every X.
    """
    n = len(X)
    step = max(1, _BLOCK // n)
    work = len(anchors) * n * X.shape[1]
    few = X.shape[1] <= FLAT or work <= DIRECT
    of = _direct(X) if few else _by_products(X.astype(np.float64) if work <= PRECISE else X)
    for first in range(0, len(anchors), step):
        queries = anchors[first : first + step]
        block = of(queries)
        block[np.arange(len(queries)), queries] = np.inf
        yield block


def _direct(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    from scipy.spatial.distance import cdist

    X = np.asarray(X, dtype=np.float64)
    return lambda rows: cdist(X[rows], X, "sqeuclidean")


def _by_products(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """|x_j|^2 - 2 x_i'x_j, which orders the rows j as |x_i - x_j|^2 does."""
    mean = X.mean(axis=0, dtype=np.float64)
    X = X - mean.astype(np.result_type(X.dtype, np.float32))  # float64 stays: it swaps no ranks
    widest = max(float(X.max()), -float(X.min())) or 1.0
    X /= X.dtype.type(widest)  # no square overflows, and small norms round less
    norms = np.einsum("nd,nd->n", X, X)

    def block(rows: np.ndarray) -> np.ndarray:
        products: np.ndarray = (X[rows] * X.dtype.type(-2.0)) @ X.T
        products += norms
        return products

    return block


def refuse_neighbours(n: int, k: int, E: np.ndarray) -> None:
    """Raise ValueError when E has not n rows, or k is not below half of them."""
    if len(E) != n:
        msg = (
            f"X and E must have the same rows; got {n} and {len(E)}: project the rows that are "
            "compared."
        )
        raise ValueError(msg)
    if not 1 <= k < n / 2:
        msg = (
            f"n_neighbors must be at least 1 and below half of the {n} rows; got {k}: "
            "compare fewer neighbours."
        )
        raise ValueError(msg)
