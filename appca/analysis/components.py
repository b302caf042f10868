"""Components of a run and the subspaces they span: names, images, use, shares of variance."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun
from appca.data.dataset import Dataset

Floats = NDArray[np.float64]

# Mean |cos| with the reference; 0.95 is an angle of about 18 degrees, and 0.8 one of about 37.
IDENTIFIED, ROUGHLY, USUAL = 0.95, 0.8, 0.5  # |cos|; minimum share of draws with a component
MOST_SAMPLED = 2000  # draws, summed over all chains, or rows


class AlignedDraws(NamedTuple):
    """Statistics of each reference component over the aligned draws that contain it."""

    mean: Floats  # (K, D)
    sd: Floats  # (K, D)
    cosine: Floats  # (K,) mean |cos| with the reference; 0 if no draw contains the component
    by_chain: Floats  # (chain, K) the same per chain
    present: Floats  # (K,) share of draws that contain the component


def summarise(
    components: np.ndarray, reference: np.ndarray, view: Callable[[Floats], ArrayLike] = np.asarray
) -> AlignedDraws:
    """Average aligned draws (chain, draw, K, D) after the linear map `view`; some, if many."""
    from appca.models.draws import match

    to = reference.astype(np.float64)
    draws = components[:, :: -(-components.shape[0] * components.shape[1] // MOST_SAMPLED)]
    origin = np.asarray(view(to), dtype=np.float64)  # subtracting an origin loses fewer digits
    total, squares = np.zeros(origin.shape), np.zeros(origin.shape)
    cosine = np.empty((*draws.shape[:2], len(to)))
    has = np.empty(cosine.shape, dtype=bool)
    for place in np.ndindex(*draws.shape[:2]):
        _, order, sign, cosine[place] = match(to, draws[place])
        moved = draws[place][order] * sign[:, None]
        has[place] = moved.any(axis=1)
        seen = np.where(has[place][:, None], np.asarray(view(moved)) - origin, 0.0)
        total += seen
        squares += np.square(seen)
    count = np.maximum(has.sum(axis=(0, 1)), 1)
    off = total / count[:, None]
    variance = np.maximum(squares / count[:, None] - np.square(off), 0.0)
    by_chain = cosine.sum(axis=1) / np.maximum(has.sum(axis=1), 1)
    mean_cosine = cosine.sum(axis=(0, 1)) / count
    return AlignedDraws(origin + off, np.sqrt(variance), mean_cosine, by_chain, has.mean((0, 1)))


def identification(cosine: float, present: float = 1.0) -> str:
    """Describe how well the data determine a component."""
    if present < USUAL:
        return "in few draws"
    levels = "not identified", "roughly identified", "identified"
    return levels[int(cosine >= ROUGHLY) + int(cosine >= IDENTIFIED)]


DOUBTFUL, RARELY = 0.5, 0.01  # probability of a support, and share of rows of a component, below


def own_name(model: FittedModel, k: int) -> str:
    """Return the name that a user gave component k, counted from 0, or an empty text."""
    return model.names[k] if model.names else ""


def name_of(model: FittedModel, k: int) -> str:
    """Return the title of component k, counted from 0: "component 3" or "3 · slant"."""
    name = own_name(model, k)
    return f"{k + 1} · {name}" if name else f"component {k + 1}"


def in_data_space(model: FittedModel) -> np.ndarray:
    """Return the components (K, D) in units of the data, after a preparation if there is one."""
    return model.preprocessing.directions(model.components.T).T


def patterns(model: FittedModel, image_shape: tuple[int, ...] | None) -> np.ndarray:
    """Return the components (K, D): in data space for images, else weights of scaled features."""
    before = model.preprocessing
    if image_shape is None:
        before = before._replace(divide=1.0, scale=np.ones_like(before.scale))
    return before.directions(model.components.T).T


def extremes(
    rows: FittedRun, k: int, n: int, missing: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return up to n rows at each end of component k, farthest first, that use and measure it."""
    users, squares = np.flatnonzero(rows.active[:, k]), np.square(rows.components[k])
    if missing is not None and missing.shape[1] == rows.components.shape[1]:
        users = users[2 * (missing[users] @ squares) < squares.sum()]
    order = users[np.argsort(rows.scores[users, k], kind="stable")]
    at_low = min(n, len(order) // 2)
    return order[:at_low], order[at_low:][::-1][:n]


def rarely_used(fitted: DescribedRows) -> list[int]:
    """Return the numbers of the components that under 1% of rows use."""
    return (np.flatnonzero(fitted.active.mean(axis=0, dtype=np.float64) < RARELY) + 1).tolist()


MOST_OF_A_ROW = 0.1  # share of the squared projections above which one row dominates them


def farthest(fitted: FittedRun) -> tuple[int, float, bool]:
    """Return the row with most of the squared projections, and if that is more than by chance."""
    from scipy.special import betaincinv

    norms = np.linalg.norm(fitted.components, axis=1)
    power = np.square(fitted.scores * norms, dtype=np.float64).sum(axis=1)
    row = int(power.argmax())
    share = float(power[row] / max(power.sum(), np.finfo(float).tiny))
    n, L = len(fitted.active), max(1.0, float(fitted.active.sum(axis=1).mean()))
    return row, share, share > max(MOST_OF_A_ROW, betaincinv(L / 2, L * (n - 1) / 2, 1 - 0.01 / n))


def common(names: list[str], codes: np.ndarray, most: int = 3) -> list[tuple[str, float]]:
    """Return the `most` frequent classes among rows with codes (m,), with their shares."""
    counts = np.bincount(codes, minlength=len(names))
    largest = np.argsort(-counts, kind="stable")[:most]
    return [(names[c], float(counts[c] / len(codes))) for c in largest if counts[c]]


class Steering(NamedTuple):
    """A linear map from scores to some columns of the data."""

    average: np.ndarray  # (m,) in units of the (prepared) data
    patterns: np.ndarray  # (K, m)
    reach: np.ndarray  # (K,) largest absolute score of any row
    columns: np.ndarray  # (m,) indices of these columns in the data


def steering(fitted: FittedRun, most_columns: int | None = None) -> Steering:
    """Return the linear map to the columns that components move most, in comparable units."""
    before = fitted.preprocessing._replace(prepare=None)
    average = before.inverse_transform(fitted.mean[None].astype(np.float64))[0]
    patterns = before.directions(fitted.components.T.astype(np.float64)).T
    reach = np.abs(fitted.scores).max(axis=0, initial=0.0).astype(np.float64)
    unit = np.abs(before.scale * before.divide)  # converts columns to comparable units
    moved = np.abs(patterns * fitted.scale[:, None] / np.where(unit > 0, unit, 1.0)).max(axis=0)
    columns = np.sort(np.argsort(-moved, kind="stable")[:most_columns])
    return Steering(average[columns], patterns[:, columns], reach, columns)


LEAST_ROWS = 30  # fewer points show no shape in a scatter plot


class Subspace(NamedTuple):
    """The rows that use a set of components."""

    components: tuple[int, ...]  # ascending, counted from 0; empty for rows that use none
    rows: np.ndarray  # (m,) ascending row indices


def ranked(active: np.ndarray) -> list[Subspace]:
    """Return each support of rows (N, K) and its rows, most frequent first, then by numbers."""
    codes = np.packbits(np.ascontiguousarray(active, dtype=bool), axis=1)
    keys = codes.view(np.dtype((np.void, codes.shape[1]))).ravel()
    _, first, member = np.unique(keys, return_index=True, return_inverse=True)
    groups = np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])
    sets = (tuple(np.flatnonzero(active[start]).tolist()) for start in first)
    return sorted(map(Subspace, sets, groups), key=lambda s: (-len(s.rows), s.components))


class Supports(NamedTuple):
    """The support of each row as a category."""

    codes: np.ndarray  # (N,) int64 indices into `names`
    names: list[str]  # "{1,3}", the most frequent first


def supports(active: np.ndarray) -> Supports:
    """Return the support of each row (N, K) as a category, in the order of `ranked`."""
    groups, codes = ranked(active), np.empty(len(active), np.int64)
    for place, group in enumerate(groups):
        codes[group.rows] = place
    return Supports(codes, [title(group.components) for group in groups])


def pair_counts(active: np.ndarray) -> list[tuple[tuple[int, int], int]]:
    """Return the pairs of components that rows (N, K) use together, with counts, largest first."""
    together = active.T.astype(np.float32) @ active.astype(np.float32)  # exact below 2^24 rows
    every = ((pair, int(together[pair])) for pair in combinations(range(active.shape[1]), 2))
    return sorted(filter(lambda item: item[1], every), key=lambda item: (-item[1], item[0]))


def opens_in_pair_view(active: np.ndarray) -> bool:
    """Whether rows use more than two components, and most rows are in small subspaces."""
    sizes = np.array([len(subspace.rows) for subspace in ranked(active)])
    in_large = sizes[sizes >= LEAST_ROWS].sum()
    return bool(active.sum(axis=1).max() > 2 and in_large < 0.5 * len(active))


def fullest(active: np.ndarray, most: int) -> list[Subspace]:
    """Return the `most` subspaces (or pairs, if pairs are shown) with the most rows."""
    if not opens_in_pair_view(active):
        return [subspace for subspace in ranked(active) if subspace.components][:most]
    pairs = [pair for pair, _ in pair_counts(active)[:most]]
    return [Subspace(pair, np.flatnonzero(active[:, pair].all(axis=1))) for pair in pairs]


def title(components: tuple[int, ...]) -> str:
    """Return the title of a set of components, counted from 0: "{1,3}", or "none" if empty."""
    numbers = ",".join(str(k + 1) for k in sorted(components))
    return f"{{{numbers}}}" if numbers else "none"


def principal_scores(Y: Any, n_components: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `n_components` scores (N, n), shares, directions (n, D) of rows Y, or of blocks."""
    from appca.models.blocks import stream
    from appca.models.rows import Observations, about, centre_of, project
    from appca.models.stiefel import principal, upright

    rows: Observations = stream(Y) if callable(Y) else about(Y, centre_of(Y))
    axes = principal(np.random.default_rng(0), rows, min(n_components, rows.n, rows.d))
    scores = upright(projections := project(rows, axes.V))
    signs = np.sign(np.einsum("nk,nk->k", projections, scores))[:, None]
    shares = axes.values / max(rows.total / rows.mass, np.finfo(float).tiny)
    return scores.astype(np.float32), shares, signs * axes.V.T


def explained_shares(fitted: FittedRun, dataset: Dataset) -> tuple[np.ndarray, float]:
    """Return the share of variance lost without each component, (K,), and without all of them.

    A row is y = m + W s + r. Its squared distance from the mean row is that of W (s - s_mean) + r
    - r_mean. Fixing s_k at its mean raises |r|^2 by 2 (s_k - s_mean_k) w_k'r + (s_k - s_mean_k)^2
    |w_k|^2. r is computed for up to 2,000 rows, without missing cells. Orthonormal shares add up.
    """
    s, W = fitted.scores.astype(np.float64), fitted.components.astype(np.float64)
    moved, gram, lengths = s - s.mean(axis=0), W @ W.T, np.square(W).sum(axis=1)
    at = np.arange(len(s))[:: -(-len(s) // MOST_SAMPLED)]
    X = dataset.with_gaps(at) if fitted.preprocessing.takes_gaps else dataset.X[at]
    Y = fitted.preprocessing.transform(X) - fitted.mean
    r = np.nan_to_num(Y - s[at] @ W)
    if np.isnan(Y).any():
        total = max(float(np.square(np.nan_to_num(Y - np.nanmean(Y, axis=0))).sum()), 1e-300)
        lost = np.square(moved[at]) * (~np.isnan(Y) @ np.square(W).T) + 2 * moved[at] * (r @ W.T)
        return lost.sum(axis=0) / total, 1 - float(np.square(r).sum()) / total
    cross = 2 * len(s) * (moved[at] * (r @ W.T)).mean(axis=0)
    off, squares = len(s) * float(np.square(r.mean(axis=0)).sum()), moved.T @ moved
    explained = float(np.sum(squares * gram) + cross.sum() - off)
    whole = max(float(fitted.error.sum(dtype=np.float64)) * W.shape[1] + explained, 1e-300)
    return (np.diagonal(squares) * lengths + cross) / whole, explained / whole


def effect(values: np.ndarray, inside: np.ndarray) -> tuple[int, float, float, float, float]:
    """Return number, mean, sd, Cohen's d and its error of values (N,) `inside` against others."""
    members, rest = values[inside], values[~inside]
    n, m = len(members), len(rest)
    mean, sd = (float(members.mean()), float(members.std(ddof=1))) if n > 1 else (np.nan, np.nan)
    if n < 2 or m < 2:
        return n, mean, sd, np.nan, np.nan
    pooled = np.sqrt(((n - 1) * members.var(ddof=1) + (m - 1) * rest.var(ddof=1)) / (n + m - 2))
    d = float((members.mean() - rest.mean()) / max(pooled, 1e-12))
    return n, mean, sd, d, float(np.sqrt((n + m) / (n * m) + d**2 / (2 * (n + m))))


class Sharing(NamedTuple):
    """Use of K components by C classes, and components that classes share; NaN without rows."""

    shared: np.ndarray  # (C, C) mean number of shared components, over pairs of distinct rows
    counts: np.ndarray  # (C,) rows per class
    overall: float  # the same over all pairs of distinct rows with a class
    uses: np.ndarray  # (C, K) share of a class's rows that use each component


def sharing(active: np.ndarray, codes: np.ndarray, n_classes: int) -> Sharing:
    """Return the use of components by the rows of each class, and the number that classes share.

    With s_a the sum of supports `active` of class a, rows of a and b share s_a @ s_b components,
    without pairs of a row with itself; with permuted labels, all have the expectation `overall`.
    """
    sums = np.stack([active[codes == c].sum(axis=0) for c in range(n_classes)]).astype(np.float64)
    counts = np.bincount(codes[codes >= 0], minlength=n_classes)
    totals = sums @ sums.T - np.diag(sums.sum(axis=1))
    number = np.outer(counts, counts) - np.diag(counts)
    overall = float(totals.sum() / number.sum()) if number.sum() else np.nan
    with np.errstate(invalid="ignore"):
        return Sharing(totals / number, counts, overall, sums / counts[:, None])
