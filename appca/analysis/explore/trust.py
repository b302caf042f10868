"""Which rows' neighbours a picture shows rightly: false and missing neighbours of every row.

A false neighbour is near in the picture and far in the data, a missing one near in the data and far
in the picture. With r and s the ranks of other rows by distance in the data and in the picture,

    false(i) = sum over j with s(j) <= k of max(r(j) - k, 0) / worst
    missing(i) = sum over j with r(j) <= k of max(s(j) - k, 0) / worst
    worst = k (2 N - 3 k - 1) / 2

so that 1 less their means are trustworthiness and continuity (Venna & Kaski 2001). Up to `EXACT`
rows all ranks are counted. Beyond, the k nearest rows in the data are those of the graph that the
map was made from, those in the picture are exact, and the ranks of all others are estimated: by how
many of `REFERENCES` random rows are nearer.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from appca.analysis.check.quality import NEIGHBOURS, compared_rows, refuse_neighbours, worst_excess
from appca.analysis.explore.neighbours import nearest
from appca.analysis.explore.subspaces import ranked
from appca.analysis.explore.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted
from appca.words.errors import InputError

Report = Callable[[float], object]  # share done; raising from it ends the work
EXACT = 20_000
REFERENCES = 1000
LINES = 6  # nearest rows that a picture draws lines to
_BLOCK = 1 << 20  # products at a time, which stay in the processor's cache


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
    if n > EXACT:
        if graph is None:
            msg = f"Above {EXACT:,} rows trust needs the graph of a map; got {n:,} rows without it."
            raise InputError(msg)
        refuse_neighbours(n, graph.shape[1] - 1, E)
        return _estimated(X, E, np.asarray(graph[:, 1:]), report)
    refuse_neighbours(n, n_neighbors, E)
    rows = compared_rows(X, E, np.arange(n), n_neighbors, report)
    false, missing, kept = np.array([row[:3] for row in rows]).T
    return Trust(false, missing, kept, n_neighbors, exact=True)


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
    image = nearest(E, k + 1).indices[:, 1:]
    references = np.random.default_rng(0).choice(n, min(REFERENCES, n), replace=False)
    kept = (image[:, :, None] == graph[:, None, :]).any(axis=2)
    false = _excess(X, image, kept, references, lambda share: report(0.8 * share))
    stays = (graph[:, :, None] == image[:, None, :]).any(axis=2)
    missing = _excess(E, graph, stays, references, lambda share: report(0.8 + 0.2 * share))
    worst = worst_excess(n, k)
    return Trust(false / worst, missing / worst, kept.mean(axis=1), k, exact=False)


def _excess(
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
    step = max(1, _BLOCK // max(len(references), Y.shape[1]))
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
