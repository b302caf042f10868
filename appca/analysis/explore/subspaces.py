"""Which rows share which components: subspaces by occupancy, and pairs.

A model with `n_active` = L gives every row the L components it uses; the rows with the same set of
components lie in one subspace. Everything here depends on that boolean matrix alone, and speaks of
rows by their number in the data set.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

LEAST_ROWS = 30  # a scatter of fewer points shows no shape


class Subspace(NamedTuple):
    """The rows that use a set of components."""

    components: tuple[int, ...]  # ascending, counted from 0; empty for rows that use none
    rows: np.ndarray  # (m,) ascending row numbers


def ranked(active: np.ndarray) -> list[Subspace]:
    """Every used set of components with its rows, the most occupied first.

    `active` (N, K) says which components each row uses. Ties in occupancy are broken by the numbers
    of the components, so that the order is unique.
    """
    codes = np.packbits(np.ascontiguousarray(active, dtype=bool), axis=1)
    keys = codes.view(np.dtype((np.void, codes.shape[1]))).ravel()
    _, first, member = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(member, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(member))[:-1])
    subspaces = [
        Subspace(tuple(np.flatnonzero(active[start]).tolist()), rows)
        for start, rows in zip(first, groups, strict=True)
    ]
    return sorted(subspaces, key=lambda s: (-len(s.rows), s.components))


class Supports(NamedTuple):
    """The support of each row as a category."""

    codes: np.ndarray  # (N,) int64 places in `names`
    names: list[str]  # "{1,3}", the most frequent first


def supports(active: np.ndarray) -> Supports:
    """Return the support of each row (N, K), in the order of `ranked`."""
    groups = ranked(active)
    codes = np.empty(len(active), np.int64)
    for place, group in enumerate(groups):
        codes[group.rows] = place
    return Supports(codes, [title(group.components) for group in groups])


def pair_counts(active: np.ndarray) -> list[tuple[tuple[int, int], int]]:
    """Every pair of components that some row uses together, with its number of rows, largest first.

    `active` (N, K) says which components each row uses.
    """
    together = active.T.astype(np.float32) @ active.astype(np.float32)  # exact below 2^24 rows
    pairs = [
        (pair, int(together[pair]))
        for pair in combinations(range(active.shape[1]), 2)
        if together[pair] > 0
    ]
    return sorted(pairs, key=lambda item: (-item[1], item[0]))


def pairs(active: np.ndarray, most: int | None = None) -> list[Subspace]:
    """Pairs of components with the rows that use both, by occupancy; at most so many.

    A row appears once for each of its L(L-1)/2 pairs.
    """
    return [
        Subspace(pair, np.flatnonzero(active[:, pair[0]] & active[:, pair[1]]))
        for pair, _ in pair_counts(active)[:most]
    ]


def opens_in_pair_view(active: np.ndarray) -> bool:
    """Whether panels should show pairs of components rather than whole subspaces.

    True when some row uses more than two components (for two, both views are the same) and under
    half of the rows lie in subspaces of at least `LEAST_ROWS` rows.
    """
    sizes = np.array([len(subspace.rows) for subspace in ranked(active)])
    in_large = sizes[sizes >= LEAST_ROWS].sum()
    return bool(active.sum(axis=1).max() > 2 and in_large < 0.5 * len(active))


def fullest(active: np.ndarray, most: int) -> list[Subspace]:
    """Return the fullest subspaces of rows that use components, or pairs where these are shown."""
    if opens_in_pair_view(active):
        return pairs(active, most)
    return [subspace for subspace in ranked(active) if subspace.components][:most]


def title(components: tuple[int, ...]) -> str:
    """Name of a subspace of components, counted from 0, for people: "{1,3}"; "none" of none."""
    if not components:
        return "none"
    return "{" + ",".join(str(k + 1) for k in sorted(components)) + "}"
