"""Neighbours that a projection or a map preserves."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from appca.analysis.campaign import sample_of
from appca.analysis.rows import projected
from appca.analysis.subspaces import LEAST_ROWS, ranked
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore, nearest_rows
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted
from appca.words import InputError

Report = Callable[[float], object]  # share done; raising from it ends the work
ANCHORS, PANEL_ANCHORS = 2000, 500  # rows whose neighbours are compared, of all rows and of a panel
NEIGHBOURS = 15
# Up to DIRECT products distances are sums of squared differences. Beyond, they come from a matrix
# product: in float64 up to PRECISE, then in float32 if X is, where ranks of rows that are nearly
# equally far may swap.
DIRECT, PRECISE = 3e8, 3e10
FLAT = 3  # features of a map, whose crowds float32 cannot order
_BLOCK = 1 << 22  # distances at a time
EXACT = 20_000
REFERENCES = 1000
LINES = 6  # nearest rows that a picture draws lines to
_RANK_BLOCK = 1 << 20  # products at a time, which stay in the processor's cache


class AnchorMean(NamedTuple):
    """A mean over anchor rows."""

    value: float
    error: float  # standard error of sampling the anchors; 0 where every row is one


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


class Trust(NamedTuple):
    """What a picture does to the neighbours of every row; NaN for rows that are not compared."""

    false: np.ndarray  # (N,) 0: no false neighbours; 1: the farthest rows are neighbours
    missing: np.ndarray  # (N,) 0: no missing neighbours; 1: the nearest rows are the farthest
    kept: np.ndarray  # (N,) share of the k nearest rows that stay among the k nearest
    n_neighbors: int
    exact: bool  # False: ranks are estimated from a sample, neighbours are those of a graph

    @property
    def trustworthiness(self) -> float:
        """Of the whole picture: falls when rows become neighbours that are far apart."""
        return 1.0 - float(np.nanmean(self.false))

    @property
    def continuity(self) -> float:
        """Of the whole picture: falls when neighbours are torn apart."""
        return 1.0 - float(np.nanmean(self.missing))


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
    false, missing, kept, neighbours = compared_rows(X, E, anchors, k, report)
    trusted, continued, same = (_mean(v, n) for v in (1.0 - false, 1.0 - missing, kept))
    accuracy = None
    if classes is not None and (classes[anchors] >= 0).any():
        pairs = zip(neighbours, anchors, strict=True)
        right = [_vote(classes, near, anchor) for near, anchor in pairs if classes[anchor] >= 0]
        accuracy = _mean(np.array(right), int(np.count_nonzero(classes >= 0)))
    return Quality(trusted, continued, same, accuracy, k, n)


def compared_rows(
    X: np.ndarray, E: np.ndarray, anchors: np.ndarray, k: int, report: Report
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Compare the k nearest rows of each of m anchors in the data and in a projection, exactly.

    Returns 1 less a row's own trustworthiness, 1 less its continuity, the share of its neighbours
    that stay, (m,) each, and its neighbours (m, k) in the projection.
    """
    measures, neighbours = np.empty((3, len(anchors))), np.empty((len(anchors), k), dtype=np.intp)
    done, worst = 0, worst_excess(len(X), k)
    for blocks in zip(_distances(X, anchors), _distances(E, anchors), strict=True):
        report(done / len(anchors))
        for near, image in zip(*blocks, strict=True):
            in_data, in_projection = nearest(near, k), nearest(image, k)
            kept = len(np.intersect1d(in_data, in_projection, assume_unique=True)) / k
            false, missing = _excess(near, in_projection, k), _excess(image, in_data, k)
            measures[:, done] = false / worst, missing / worst, kept
            neighbours[done] = in_projection
            done += 1
    return (*measures, neighbours)


def trust(
    X: np.ndarray,
    E: np.ndarray,
    graph: np.ndarray | None = None,
    *,
    n_neighbors: int = NEIGHBOURS - 1,
    report: Report = lambda _share: None,
) -> Trust:
    """Find false and missing neighbours of every row among X (N, D) at places E (N, q).

    Above 20,000 rows the `graph` (N, k + 1) of nearest rows in the data, itself first, is needed
    and gives k. Up to that, k is `n_neighbors`, below N / 2. Raises InputError without the graph,
    ValueError when the rows of X and E differ in number or k is too large.
    """
    n = len(X)
    if n <= EXACT:
        refuse_neighbours(n, n_neighbors, E)
        compared = compared_rows(X, E, np.arange(n), n_neighbors, report)
        return Trust(*compared[:3], n_neighbors, exact=True)
    if graph is None:
        msg = f"Above {EXACT:,} rows trust needs the graph of a map; got {n:,} rows without it."
        raise InputError(msg)
    k = graph.shape[1] - 1
    refuse_neighbours(n, k, E)
    return _estimated(X, E, np.asarray(graph[:, 1:]), report)


def panel_trust(
    X: np.ndarray,
    scores: np.ndarray,
    active: np.ndarray,
    *,
    n_neighbors: int = NEIGHBOURS - 1,
) -> Trust:
    """Find false and missing neighbours of every row of X (N, D) among the rows of its panel.

    A panel holds the rows with the same `active` components, at their `scores`, both (N, K). Rows
    of panels with at most 2 k rows, or with more than 20,000, are NaN.
    """
    false, missing, kept = np.full((3, len(X)), np.nan)
    for group in ranked(active):
        rows = group.rows
        if not group.components or not 2 * n_neighbors < len(rows) <= EXACT:
            continue
        panel = scores[np.ix_(rows, np.asarray(group.components))]
        of_panel = trust(X[rows], panel, n_neighbors=n_neighbors)
        false[rows], missing[rows], kept[rows] = of_panel[:3]
    return Trust(false, missing, kept, n_neighbors, exact=True)


def with_trust(
    dataset: Dataset,
    config: EmbeddingConfig,
    store: EmbeddingStore,
    embedding: Embedding,
    fitted: Fitted,
    report: Callable[[str, float], None],
) -> Embedding:
    """Return a map with trust and nearest rows, or as it is where there are too few rows.

    The store has the neighbours that the map was made from; `report` is told (stage, share).
    """
    k, n = config.n_neighbors - 1, dataset.n_rows
    if 2 * k >= n:
        return embedding
    X, places = fitted.transform(dataset.X), embedding.coordinates[:, :2]
    near = store.neighbours(dataset, config.preprocessing, config.n_neighbors, report, X)
    stage = "comparing the neighbours of rows"
    rows = trust(X, places, near.indices, n_neighbors=k, report=lambda _share: report(stage, 1.0))
    shown = np.ascontiguousarray(near.indices[:, 1 : 1 + LINES], np.int32)
    return embedding._replace(trust=np.column_stack(rows[:3]).astype(np.float32), near=shown)


def _estimated(X: np.ndarray, E: np.ndarray, graph: np.ndarray, report: Report) -> Trust:
    n, k = graph.shape
    image = nearest_rows(E, k + 1).indices[:, 1:]
    references = np.random.default_rng(0).choice(n, min(REFERENCES, n), replace=False)
    kept = (image[:, :, None] == graph[:, None, :]).any(axis=2)
    false = _estimated_excess(X, image, kept, references, lambda share: report(0.8 * share))
    stays = (graph[:, :, None] == image[:, None, :]).any(axis=2)
    missing = _estimated_excess(
        E, graph, stays, references, lambda share: report(0.8 + 0.2 * share)
    )
    worst = worst_excess(n, k)
    return Trust(false / worst, missing / worst, kept.mean(axis=1), k, exact=False)


def _estimated_excess(
    Y: np.ndarray, of: np.ndarray, near: np.ndarray, references: np.ndarray, report: Report
) -> np.ndarray:
    """Estimate for every row the sum (N,) of what the ranks of rows `of` (N, k) exceed k by.

    Rows that are `near` (N, k) in Y (N, D) have none; of others the rank is at least k + 1.
    """
    n, k = of.shape
    Y = np.asarray(Y - Y.mean(axis=0, dtype=np.float64).astype(np.float32), np.float32)
    squares, total = np.einsum("nd,nd->n", Y, Y), np.zeros(n)
    to_references = -2.0 * Y[references].T
    rounding = 16.0 * np.finfo(Y.dtype).eps * squares.max()
    itself = np.isin(np.arange(n), references)
    scale = (n - 1) / (len(references) - itself)  # rows for which a reference stands
    step = max(1, _RANK_BLOCK // max(len(references), Y.shape[1]))
    for first in range(0, n, step):
        report(first / n)
        rows = slice(first, first + step)
        A = Y[rows]  # |y|^2 - 2 a'y orders the rows y as |a - y|^2 does
        products = A @ to_references
        products += squares[references]
        for other, is_near in zip(of[rows].T, near[rows].T, strict=True):
            limits = squares[other] - 2.0 * np.einsum("nd,nd->n", A, Y[other]) - rounding
            bits = np.packbits(products < limits[:, None], axis=1)
            nearer = np.bitwise_count(bits).sum(axis=1, dtype=np.int64) - itself[rows]
            excess = np.maximum(1.0 + nearer * scale[rows] - k, 1.0)
            total[rows] += np.where(is_near, 0.0, excess)
    return total


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


def worst_excess(n: int, k: int) -> float:
    """Sum of what the largest k ranks of n - 1 other rows exceed k by."""
    return k * (2.0 * n - 3.0 * k - 1.0) / 2.0


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
    """Whether the neighbours' most frequent class is that of an anchor: 1 or 0."""
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
    from scipy.spatial.distance import cdist

    n = len(X)
    step, work = max(1, _BLOCK // n), len(anchors) * n * X.shape[1]
    direct = X.shape[1] <= FLAT or work <= DIRECT
    X = X.astype(np.float64) if direct or work <= PRECISE else X
    if not direct:
        mean = X.mean(axis=0, dtype=np.float64)
        X = X - mean.astype(np.result_type(X.dtype, np.float32))  # float64 stays: it swaps no ranks
        X /= X.dtype.type(max(float(X.max()), -float(X.min())) or 1.0)  # no square overflows
        norms = np.einsum("nd,nd->n", X, X)
    for first in range(0, len(anchors), step):
        queries = anchors[first : first + step]
        if direct:
            block = cdist(X[queries], X, "sqeuclidean")
        else:  # |x_j|^2 - 2 x_i'x_j orders the rows j as |x_i - x_j|^2 does
            block = (X[queries] * X.dtype.type(-2.0)) @ X.T
            block += norms
        block[np.arange(len(queries)), queries] = np.inf
        yield block


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


class ClassNeighbour(NamedTuple):
    """A class and the other class it lies nearest to."""

    name: str
    other: str | None  # None when no row shares its subspace with another class
    share: float  # of the rows with a neighbour: those whose nearest row of another class is of it


def nearest_classes(
    components: np.ndarray,
    scores: np.ndarray,
    active: np.ndarray,
    codes: np.ndarray,
    names: Sequence[str],
) -> list[ClassNeighbour]:
    """Find for each class the other class that its rows have nearest in the projection.

    A row's neighbours are the rows of its own subspace, by the distance of their projections. Each
    row votes for the class of its nearest row of another class; ties go to the class named first.

    `components` are (K, D), `scores` and `active` (N, K). `codes` (N,) count into `names`, negative
    for rows without a class, which are left out.
    """
    from scipy.spatial import cKDTree

    kept = np.flatnonzero(codes >= 0)
    used, row_codes = active[kept], codes[kept]
    neighbours = np.full(len(kept), -1)  # class of the nearest row of another class
    for subspace in ranked(used) if len(kept) else []:
        points, mine = projected(scores[kept], components, subspace), row_codes[subspace.rows]
        # rows that use no component are in one point and nowhere else
        for code in np.unique(mine) if points.shape[1] else ():
            inside, others = np.flatnonzero(mine == code), np.flatnonzero(mine != code)
            if len(others):
                places = cKDTree(points[others]).query(points[inside])[1]
                neighbours[subspace.rows[inside]] = mine[others[places]]
    classes = []
    for code, name in enumerate(names):
        voting = neighbours[(row_codes == code) & (neighbours >= 0)]
        votes = np.bincount(voting, minlength=len(names))
        other = int(votes.argmax())
        share = float(votes[other] / max(votes.sum(), 1))
        classes.append(ClassNeighbour(name, names[other] if len(voting) else None, share))
    return classes
