"""How many components rows of one class share with rows of another, and how popular each one is.

With z_n the 0/1 row of the components that row n uses, rows n and m share z_n'z_m of them. The sum
over all pairs of rows of classes a and b is s_a's_b, where s_a adds up the rows of class a; within
a class the N_a pairs of a row with itself, which add up to the entries of s_a, are taken away. So
the means over all distinct pairs are exact and cost one product of (classes, K) matrices.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np


class Sharing(NamedTuple):
    """Mean number of shared components between classes."""

    shared: np.ndarray  # (C, C) mean over distinct pairs of rows; NaN where there is no pair
    counts: np.ndarray  # (C,) rows of each class
    overall: float  # mean over all distinct pairs of rows that have a class

    @property
    def grid(self) -> np.ndarray:
        """The means over the largest of them, shape (C, C), as in the paper's figure."""
        largest = np.nanmax(self.shared, initial=0.0)
        return self.shared / largest if largest > 0 else self.shared


class ClassPair(NamedTuple):
    """Two different classes and what their rows share."""

    first: int
    second: int
    shared: float  # mean number of components


def sharing(active: np.ndarray, codes: np.ndarray, n_classes: int) -> Sharing:
    """Mean number of components that distinct rows of two classes share, for all pairs of classes.

    `active` is (N, K); `codes` (N,) are classes, negative for rows without one, which are left out.
    If labels were permuted among the rows, every entry would have the expectation `overall`.
    """
    sums = class_sums(active, codes, n_classes)
    counts = np.bincount(codes[codes >= 0], minlength=n_classes).astype(np.float64)
    totals = sums @ sums.T - np.diag(sums.sum(axis=1))
    number = np.outer(counts, counts) - np.diag(counts)
    shared = np.divide(totals, number, out=np.full_like(totals, np.nan), where=number > 0)
    overall = totals.sum() / number.sum() if number.sum() else np.nan
    return Sharing(shared, counts.astype(np.int64), float(overall))


def class_sums(active: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """How many rows of each class use each component, shape (C, K), float64."""
    return np.stack([active[codes == c].sum(axis=0) for c in range(n_classes)]).astype(np.float64)


def popularity(active: np.ndarray) -> np.ndarray:
    """Share of the rows that use each component, shape (K,)."""
    return np.asarray(active.mean(axis=0, dtype=np.float64))


def popularity_by_class(active: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Share of each class's rows that use each component, shape (C, K); NaN without rows."""
    counts = np.bincount(codes[codes >= 0], minlength=n_classes)[:, None]
    sums = class_sums(active, codes, n_classes)
    return np.asarray(np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0))


def closest_pairs(shared_counts: Sharing) -> list[ClassPair]:
    """All pairs of different classes, those that share most first; ties by class number."""
    every = [
        ClassPair(a, b, float(shared_counts.shared[a, b]))
        for a, b in combinations(range(len(shared_counts.counts)), 2)
    ]
    return sorted((pair for pair in every if not np.isnan(pair.shared)), key=lambda p: -p.shared)


def least_shared(n_components: int, n_active: int) -> int:
    """Components that any two rows with L of K share whatever the data: max(0, 2 L - K)."""
    return max(0, 2 * n_active - n_components)
