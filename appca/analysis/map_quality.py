"""Measure how well a projection or a map preserves neighbours."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from appca.analysis.campaign import Report, sample_of
from appca.analysis.components import LEAST_ROWS, Subspace, ranked
from appca.analysis.rows import projected
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted
from appca.words import refuse_if

ANCHORS, PANEL_ANCHORS = 2000, 500  # number of rows compared overall, and in a panel
NEIGHBOURS = 15
# Sums of squared differences give equal rows equal distances. They are used on maps and for up to
# DIRECT products; otherwise, a matrix product is faster.
DIRECT, FLAT = 3e8, 3
_BLOCK = 1 << 22  # number of distances per block
EXACT = 20_000
LINES = 6  # number of nearest rows to which a picture draws lines


class AnchorMean(NamedTuple):
    """A mean over anchor rows."""

    value: float
    error: float  # standard error from sampling the anchors; 0 if all rows are anchors


class Quality(NamedTuple):
    """Measures of a projection."""

    trustworthiness: AnchorMean
    continuity: AnchorMean
    kept: AnchorMean  # share of a row's k nearest rows that stay among its k nearest
    accuracy: AnchorMean | None  # k-NN majority vote


class Trust(NamedTuple):
    """False and missing neighbours (NaN: not compared); 1 - means: trustworthiness, continuity."""

    false: np.ndarray  # (N,) 0: no false neighbours; 1: the farthest rows are neighbours
    missing: np.ndarray  # (N,) 0: no missing neighbours; 1: the nearest rows are the farthest
    kept: np.ndarray  # (N,) share of the k nearest rows that stay among the k nearest


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

    E contains all K scores, zero for unused components; rows with negative `classes` do not vote.
    Raises ValueError if X and E differ in length, or k is not below N / 2.
    """
    anchors = sample_of(len(X), n_anchors, random_state)
    rows, neighbours = compared_rows(X, E, anchors, n_neighbors, report)
    measures = 1.0 - rows.false, 1.0 - rows.missing, rows.kept
    trusted, continued, same = (_mean(values, len(X)) for values in measures)
    accuracy = None
    if classes is not None and (asked := classes[anchors] >= 0).any():
        population = int(np.count_nonzero(classes >= 0))
        accuracy = knn_accuracy(classes, neighbours[asked], anchors[asked], population)
    return Quality(trusted, continued, same, accuracy)


def trust(X: np.ndarray, E: np.ndarray, *, n_neighbors: int = NEIGHBOURS - 1) -> Trust:
    """Find false and missing neighbours of X (N, D) at E (N, q), of a sample above 20,000 rows."""
    anchors = sample_of(len(X), EXACT**2 // len(X) if len(X) > EXACT else EXACT, 0)
    measures = np.full((3, len(X)), np.nan)
    measures[:, anchors] = compared_rows(X, E, anchors, n_neighbors)[0]
    return Trust(*measures)


def panel_trust(
    X: np.ndarray, scores: np.ndarray, active: np.ndarray, *, n_neighbors: int = NEIGHBOURS - 1
) -> Trust:
    """Find neighbours of X (N, D) in panels; NaN in those of at most 2 k rows, or if skipped."""
    measures = np.full((3, len(X)), np.nan)
    for group in ranked(active):
        rows = group.rows
        if group.components and 2 * n_neighbors < len(rows):
            panel = scores[np.ix_(rows, np.asarray(group.components))]
            measures[:, rows] = trust(X[rows], panel, n_neighbors=n_neighbors)
    return Trust(*measures)


def with_trust(
    dataset: Dataset,
    config: EmbeddingConfig,
    store: EmbeddingStore,
    embedding: Embedding,
    fitted: Fitted,
    report: Callable[[str, float], None],
) -> Embedding:
    """Add trust and nearest rows to a map, unless rows are few; `report` gets (stage, share)."""
    k = config.n_neighbors - 1
    if 2 * k >= dataset.n_rows:
        return embedding
    X = fitted.transform(dataset.X)
    near = store.neighbours(config, X, report)
    report("comparing the neighbours of rows", 0.0)
    rows = trust(X, embedding.coordinates[:, :2], n_neighbors=k)
    shown = np.ascontiguousarray(near.indices[:, 1 : 1 + LINES], np.int32)
    return embedding._replace(trust=np.column_stack(rows).astype(np.float32), near=shown)


def compared_rows(
    X: np.ndarray, E: np.ndarray, anchors: np.ndarray, k: int, report: Report = lambda _share: None
) -> tuple[Trust, np.ndarray]:
    """Compare the k nearest rows of each of m anchors in the data and in a projection, exactly.

    Returns the trust of the anchors, (m,) each, and their neighbours (m, k) in the projection.
    Raises ValueError if X and E differ in length, or k is not below N / 2.
    """
    n = len(X)
    msg = f"X and E must have the same rows; got {n} and {len(E)}: project the compared rows."
    refuse_if(len(E) != n, msg)
    msg = f"n_neighbors must be at least 1 and below half of the {n} rows; got {k}: choose fewer."
    refuse_if(not 1 <= k < n / 2, msg)
    measures, neighbours = np.empty((3, len(anchors))), np.empty((len(anchors), k), dtype=np.intp)
    done = 0
    for blocks in zip(_distances(X, anchors), _distances(E, anchors), strict=True):
        report(done / len(anchors))
        for near, image in zip(*blocks, strict=True):
            in_data, in_projection = nearest(near, k), nearest(image, k)
            kept = len(np.intersect1d(in_data, in_projection, assume_unique=True))
            measures[:, done] = _excess(near, in_projection, k), _excess(image, in_data, k), kept
            neighbours[done] = in_projection
            done += 1
    worst = k * (2.0 * n - 3.0 * k - 1.0) / 2.0  # largest possible sum of (rank - k)
    return Trust(*measures / np.array([[worst], [worst], [k]])), neighbours


def knn_accuracy(
    classes: np.ndarray, neighbours: np.ndarray, anchors: np.ndarray, population: int
) -> AnchorMean:
    """Return the share of anchors (m,), of `population` rows, in the class of most near (m, k)."""
    right = np.zeros(len(anchors))
    for place, votes in enumerate(classes[neighbours]):
        counts = np.bincount(votes[votes >= 0])
        right[place] = len(counts) > 0 and counts.argmax() == classes[anchors[place]]
    return _mean(right, population)


def crowding(
    scores: np.ndarray,
    active: np.ndarray,
    other: np.ndarray,
    classes: np.ndarray,
    *,
    n_neighbors: int = NEIGHBOURS,
    most: int = 12,
    random_state: int = 0,
) -> list[tuple[Subspace, AnchorMean, AnchorMean, AnchorMean]]:
    """Compare panels of single subspaces with one picture of all rows, by k-NN accuracy.

    scores and active (N, K) are the piecewise projection, `other` (N, q) the picture, classes (N,)
    indices. For each of the `most` largest panels with enough rows, returns the accuracy of a
    sample of its rows in the panel, in the picture of these rows, and in the picture of all rows.
    """
    least, crowdings = max(LEAST_ROWS, 2 * n_neighbors + 2), []
    panels = [panel for panel in ranked(active) if panel.components and len(panel.rows) >= least]
    for panel in panels[:most]:
        rows, mine, accuracies = panel.rows, classes[panel.rows], []
        places = sample_of(len(rows), PANEL_ANCHORS, random_state)
        inside = scores[np.ix_(rows, np.asarray(panel.components))]
        shown = (inside, mine, places), (other[rows], mine, places), (other, classes, rows[places])
        for E, of, anchors in shown:
            distances = (row for block in _distances(E, anchors) for row in block)
            neighbours = np.array([nearest(row, n_neighbors) for row in distances])
            accuracies.append(knn_accuracy(of, neighbours, anchors, len(rows)))
        crowdings.append((panel, accuracies[0], accuracies[1], accuracies[2]))
    return crowdings


def nearest(distances: np.ndarray, k: int) -> np.ndarray:
    """Return the k rows with the smallest distances (N,); of equal distances, the first rows."""
    limit = np.partition(distances, k - 1)[k - 1]
    below = np.flatnonzero(distances < limit)
    return np.concatenate([below, np.flatnonzero(distances == limit)[: k - len(below)]])


def _excess(distances: np.ndarray, rows: np.ndarray, k: int) -> float:
    """Sum over rows of (rank by distance - k)."""
    total = 0
    for row in rows:
        near = distances[row]
        before = np.count_nonzero(distances < near) + np.count_nonzero(distances[:row] == near)
        total += max(int(before) + 1 - k, 0)
    return float(total)


def _mean(values: np.ndarray, population: int) -> AnchorMean:
    m, error = len(values), 0.0
    if 1 < m < population:
        error = float(values.std(ddof=1) * np.sqrt((1.0 - m / population) / m))
    return AnchorMean(float(values.mean()), error)


def _distances(X: np.ndarray, anchors: np.ndarray) -> Iterator[np.ndarray]:
    """Yield blocks (b, N) of squared distances from anchors, up to a constant per anchor."""
    from scipy.spatial.distance import cdist

    X, step = X.astype(np.float64), max(1, _BLOCK // len(X))
    direct = X.shape[1] <= FLAT or len(anchors) * X.size <= DIRECT
    if not direct:
        X -= X.mean(axis=0)
        norms = np.einsum("nd,nd->n", X, X)
    for first in range(0, len(anchors), step):
        queries = anchors[first : first + step]
        near = X[queries]  # |x_j|^2 - 2 x_i'x_j has the same order over j as |x_i - x_j|^2
        block = cdist(near, X, "sqeuclidean") if direct else norms - 2.0 * near @ X.T
        block[np.arange(len(queries)), queries] = np.inf
        yield block


def nearest_classes(
    components: np.ndarray,
    scores: np.ndarray,
    active: np.ndarray,
    codes: np.ndarray,
    names: Sequence[str],
) -> list[tuple[str | None, float]]:
    """Return the class that most rows of each class have nearest in their subspace; its share."""
    from scipy.spatial.distance import cdist

    votes = np.zeros((len(names), len(names)), dtype=int)
    for subspace in ranked(active):
        if subspace.components:  # without components, all rows coincide
            points, mine = projected(scores, components, subspace), codes[subspace.rows]
            distances = np.where(mine[:, None] == mine, np.inf, cdist(points, points))
            near, voting = mine[distances.argmin(axis=1)], np.isfinite(distances).any(axis=1)
            np.add.at(votes, (mine[voting], near[voting]), 1)
    return [
        (names[int(of.argmax())] if of.any() else None, float(of.max() / max(of.sum(), 1)))
        for of in votes
    ]
