"""Rows that look alike: k-means of the projections inside each subspace.

Rows of a subspace are compared by the distance of their projections, |W_s (x_n - x_m)| with W_s the
subspace's components; for orthonormal components that is the distance of the scores. What the rows
have outside the subspace does not count: sharing a place in it is being alike in that respect.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from appca.analysis.explore.subspaces import Subspace

LEAST_ROWS = 4  # a subspace of fewer has nothing to be grouped
MOST_SUBSPACES = 40  # the fullest; a model with many components has thousands of thin ones
MOST_GROUPS = 30  # in one subspace
STARTS = 2  # of k-means, the best of which is kept
JOINED_SHARE, JOINED_ROWS = 0.1, 2  # a class belongs to a group with at least so much of it


class SimilarRows(NamedTuple):
    """Rows near each other in a subspace."""

    components: tuple[int, ...]  # of the subspace, counted from 0
    rows: np.ndarray  # (m,) row numbers, nearest the centre first
    spread: float  # root mean squared distance from the centre, over the subspace's own


class Mixture(NamedTuple):
    """The classes in a group."""

    counts: np.ndarray  # (C,) rows of each class
    effective: float  # exp of the entropy of the classes: 1 for one class, 2 for two halves
    joined: tuple[int, ...]  # classes with a tenth of the group and two rows, largest first


def similar(
    scores: np.ndarray,
    components: np.ndarray,
    subspaces: Sequence[Subspace],
    size: int = 20,
    seed: int = 0,
) -> list[SimilarRows]:
    """Group the rows of every subspace by k-means of their projections, tight groups first in each.

    Scores are (N, K), components (K, D). A group has about `size` rows; there are never more groups
    than different projections. Subspaces of fewer than `LEAST_ROWS` rows, and one without
    components, are passed over. The same seed gives the same groups.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    groups: list[SimilarRows] = []
    # Several threads add up in any order: other last bits each time. BLAS keeps what a fit set.
    with threadpool_limits(1, user_api="openmp"):
        for subspace in subspaces:
            if subspace.components and len(subspace.rows) >= LEAST_ROWS:
                points = projected(scores, components, subspace)
                means = KMeans(_count(points, size), n_init=STARTS, random_state=seed)
                groups += _groups(subspace, points, means.fit(points).labels_)
    return groups


def projected(scores: np.ndarray, components: np.ndarray, subspace: Subspace) -> np.ndarray:
    """Coordinates (m, L) of a subspace's rows whose distances are those of the projections.

    With W_s'W_s = V diag(v) V', |W_s x| = |diag(v)^(1/2) V'x|: factors that are not orthogonal,
    as those of adaptive FA do, are not taken for orthogonal ones.
    """
    chosen = list(subspace.components)
    member_scores = scores[np.ix_(subspace.rows, np.asarray(chosen))].astype(np.float64)
    W = components[chosen].astype(np.float64)
    values, vectors = np.linalg.eigh(W @ W.T)  # unlike Cholesky, also of parallel factors
    return np.asarray(member_scores @ (vectors * np.sqrt(np.maximum(values, 0.0))))


def mixture(group: SimilarRows, codes: np.ndarray, n_classes: int) -> Mixture:
    """Count the classes in a group; rows of a negative code have none."""
    member_codes = codes[group.rows]
    counts = np.bincount(member_codes[member_codes >= 0], minlength=n_classes)
    shares = counts[counts > 0] / max(counts.sum(), 1)
    entropy = float(-(shares * np.log(shares)).sum())
    least = max(JOINED_ROWS, JOINED_SHARE * len(group.rows))
    order = np.argsort(-counts, kind="stable")
    return Mixture(
        counts, float(np.exp(entropy)), tuple(int(c) for c in order if counts[c] >= least)
    )


def by_mixture(groups: Sequence[SimilarRows], mixtures: Sequence[Mixture]) -> list[int]:
    """Order of the groups by how many classes they join, the tighter first among equals."""
    return sorted(
        range(len(groups)),
        key=lambda i: (
            -len(mixtures[i].joined),
            -round(mixtures[i].effective, 9),
            groups[i].spread,
        ),
    )


def joined_pairs(mixtures: Sequence[Mixture]) -> list[tuple[tuple[int, int], int]]:
    """Pairs of classes and the number of groups that join them, the most often joined first."""
    counted = Counter(pair for item in mixtures for pair in combinations(sorted(item.joined), 2))
    return sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))


def _count(points: np.ndarray, size: int) -> int:
    """Return how many groups: about one for `size` points, never more than there are different."""
    scale = np.abs(points).max()
    # equal rows may differ in the last bits of a matrix product
    different = len(np.unique(np.round(points / scale, 9), axis=0)) if scale > 0 else 1
    return min(max(1, round(len(points) / size)), MOST_GROUPS, different)


def _groups(subspace: Subspace, points: np.ndarray, labels: np.ndarray) -> list[SimilarRows]:
    whole = _radius(points - points.mean(axis=0))
    groups = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        offsets = points[members] - points[members].mean(axis=0)  # k-means stops a little off it
        order = np.argsort(np.square(offsets).sum(axis=1), kind="stable")
        spread = _radius(offsets) / whole if whole > 0 else 0.0
        groups.append(SimilarRows(subspace.components, subspace.rows[members[order]], spread))
    return sorted(groups, key=lambda group: (group.spread, int(group.rows.min())))


def _radius(offsets: np.ndarray) -> float:
    return float(np.sqrt(np.square(offsets).sum(axis=1).mean()))
