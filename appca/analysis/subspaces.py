"""Subspaces of a run: their order, titles and colours, and explained variance."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from appca.analysis.fitted import FittedRun

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
    every = ((pair, int(together[pair])) for pair in combinations(range(active.shape[1]), 2))
    return sorted(filter(lambda item: item[1], every), key=lambda item: (-item[1], item[0]))


def opens_in_pair_view(active: np.ndarray) -> bool:
    """Whether panels should show pairs of components rather than whole subspaces.

    True when some row uses more than two components (for two, both views are the same) and under
    half of the rows lie in subspaces of at least `LEAST_ROWS` rows.
    """
    sizes = np.array([len(subspace.rows) for subspace in ranked(active)])
    in_large = sizes[sizes >= LEAST_ROWS].sum()
    return bool(active.sum(axis=1).max() > 2 and in_large < 0.5 * len(active))


def fullest(active: np.ndarray, most: int) -> list[Subspace]:
    """Return the fullest subspaces of rows that use components, or pairs where these are shown.

    With pairs, a row appears once for each of its L(L-1)/2.
    """
    if not opens_in_pair_view(active):
        return [subspace for subspace in ranked(active) if subspace.components][:most]
    pairs = [pair for pair, _ in pair_counts(active)[:most]]
    return [Subspace(pair, np.flatnonzero(active[:, pair].all(axis=1))) for pair in pairs]


def title(components: tuple[int, ...]) -> str:
    """Name of a subspace of components, counted from 0, for people: "{1,3}"; "none" of none."""
    if not components:
        return "none"
    return "{" + ",".join(str(k + 1) for k in sorted(components)) + "}"


MISSING = 0.5  # a channel without a component of its own, as the paper's figures have it for L = 2


def rgb(scores: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Colour (N, 3) of every row by its projection, uint8: near rows of a panel look alike.

    Channel j (red, green, blue) is the score of the row's j-th active component, components in
    ascending order, scaled by its rank among all rows to 0.01 .. 0.99; from the fourth on they do
    not enter the colour. `scores` and `active` are (N, K).
    """
    from scipy.stats import rankdata

    position = np.cumsum(active, axis=1)
    channels = np.full((len(scores), 3), MISSING)
    for j in range(3):
        of_row = active & (position == j + 1)
        has = of_row.any(axis=1)
        if has.any():
            values = scores[has, of_row[has].argmax(axis=1)]
            if len(values) > 1:  # equal values share the middle of their ranks
                channels[has, j] = 0.01 + 0.98 * (rankdata(values) - 1) / (len(values) - 1)
    return np.round(255 * channels).astype(np.uint8)


def principal_scores(Y: np.ndarray, n_components: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Scores (N, n) of preprocessed rows Y on principal components, and their variance shares (n,).

    The sign of a component makes its largest score positive, so that pictures are repeatable. There
    are fewer than `n_components` if N or D is smaller.
    """
    from appca.models.rows import about, centre_of, project
    from appca.models.spectrum import principal

    rows = about(Y, centre_of(Y))
    axes = principal(np.random.default_rng(0), rows, min(n_components, *Y.shape))
    scores = project(rows, axes.V)
    extreme = np.abs(scores).argmax(axis=0)
    scores *= np.where(scores[extreme, range(len(extreme))] < 0, -1, 1)
    return scores.astype(np.float32), axes.values / max(rows.squares.mean(), np.finfo(float).tiny)


def variance_shares(fitted: FittedRun) -> np.ndarray:
    """Share of the data's variance that is lost without a component of a run, shape (K,).

    With r the rest of a row y - W s, taking component k away raises the row's squared error by
    2 s_k w_k'r + s_k^2 |w_k|^2; and since s is the posterior mean given the row's set,
    w_k'r = s_k sigma2/tau2_k. So nothing but the run is read. With orthonormal components the
    shares add up to `explained_share`; those of factors that are not orthogonal do not.
    """
    return _explained(fitted)[0]


def explained_share(fitted: FittedRun) -> float:
    """Share of the data's variance that all components of a run explain together."""
    return _explained(fitted)[1]


def _explained(fitted: FittedRun) -> tuple[np.ndarray, float]:
    """Both shares, of the sum over rows |y|^2 = |r|^2 + 2 s'W'r + |W s|^2."""
    tiny, scores = np.finfo(float).tiny, fitted.scores.astype(np.float64)
    W = fitted.components.astype(np.float64)
    squares, gram = scores.T @ scores, W @ W.T
    power, lengths = np.diagonal(squares), np.diagonal(gram)
    # W'r is s times this; of unlike features only as if each had the mean noise.
    by_feature = np.ndim(fitted.noise_variance) > 0
    noise = lengths if by_feature else fitted.noise_variance
    ratio = noise / np.maximum(fitted.latent_variance, tiny)
    left = float(fitted.error.sum(dtype=np.float64)) * W.shape[1]
    explained = float(np.sum(squares * gram) + 2 * power @ ratio)
    whole = max(left + explained, tiny)
    return power * (lengths + 2 * ratio) / whole, explained / whole
