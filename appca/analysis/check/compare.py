"""Two fits of the same rows: which components are the same, and which rows changed theirs.

Components have neither order nor sign, so those of two fits are paired to make the sum of the
absolute cosines largest. Rows then are compared by what they use: a row has moved unless both fits
give it the same components.
"""

from typing import NamedTuple

import numpy as np

from appca.analysis.explore.subspaces import supports

LEAST = 0.5  # |cos|: more than 60 degrees apart is another component, not the same one changed


class ComponentPair(NamedTuple):
    """A component of one fit and its counterpart, counted from 0."""

    first: int
    second: int
    cosine: float  # absolute


class Moves(NamedTuple):
    """How two fits distribute the rows."""

    moved: np.ndarray  # (N,) bool
    overlap: float  # of a row's components: shared ones by all that either fit gives it, averaged
    rand: float  # adjusted Rand index of the two partitions into subspaces; 1 is the same


def matched(first: np.ndarray, second: np.ndarray, least: float = LEAST) -> list[ComponentPair]:
    """Pair the components (K, D) and (K', D) of two fits, unless their |cos| is below `least`.

    The pairs are in the order of the first fit. Unused components may be zero and have no
    counterpart. Raises ValueError when the features differ.
    """
    from appca.models.sampling.query_draws import match

    if first.shape[1] != second.shape[1]:
        msg = (
            "Components can be matched only in the same space; got "
            f"{first.shape[1]} and {second.shape[1]} features: bring both back to the data first."
        )
        raise ValueError(msg)
    matches = zip(*match(first, second), strict=True)
    every = (ComponentPair(int(i), int(j), float(cosine)) for i, j, _, cosine in matches)
    return [pair for pair in every if pair.cosine >= max(least, 1e-9)]


def moves(first: np.ndarray, second: np.ndarray, pairs: list[ComponentPair]) -> Moves:
    """Compare which components two fits give to the same rows, (N, K) and (N, K') bool.

    `pairs` are the components that are the same. Raises ValueError when the numbers of rows differ.
    """
    if len(first) != len(second):
        msg = (
            f"Rows can be compared only between fits of the same data; got {len(first)} and "
            f"{len(second)} rows."
        )
        raise ValueError(msg)
    from sklearn.metrics import adjusted_rand_score

    mine, theirs = [pair.first for pair in pairs], [pair.second for pair in pairs]
    both = (first[:, mine] & second[:, theirs]).sum(axis=1)
    either = first.sum(axis=1) + second.sum(axis=1) - both
    overlap = np.where(either > 0, both / np.maximum(either, 1), 1.0)
    rand = adjusted_rand_score(supports(first).codes, supports(second).codes)
    return Moves(both < either, float(overlap.mean()), float(rand))
