"""How far classes of rows lie apart: by their nearest rows, by features, by discriminants."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from appca.words import minus, percent

NEAREST, TYPICAL = 10, 7  # nearest rows; those of a usual row's class in classes that stand apart
MOST_SHOWN, NAMED, MARKED = 10, 3, 5  # features; pairs of classes; of one class or name
MOST_VALUES, WIDE, AXES = 1 << 24, 200, 100  # numbers to rank or tell; features to tell; axes
KINDS, LEAST, STARTS, SCORES, CLOUDS = 4, 5, 10, 4, 19  # kinds of a class; fewest rows; of k-means
LEAST_IN_CLASS, FEW_APART, FIFTH, APART, FAR = 20, 3, 5, 1.5, 2.0  # rows; listed; how far
NEARLY, MOST, UNLIKE = 0.3, 0.5, 1.4  # of a median distance; share of a class to be told; groups
SLIGHT, REPEATS, FIRM = 0.1, 3, 0.1  # share of a deviation; cross-validations; least silhouette
UNLIKELY, FOLDS = 0.05, 5  # probability of the own class to be told; also the fewest of a class
VARIOUS = 10  # number of values that codes have at most


def votes(codes: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Count the classes (m, C) of the nearest rows (m, NEAREST)."""
    of = codes[near]
    return np.stack([(of == code).sum(axis=1) for code in range(codes.max() + 1)], axis=1)


def most_near(codes: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return the commonest class (N,) of nearest rows; of equal ones the nearer."""
    counts, rows = votes(codes, near).astype(float), np.arange(len(near))
    for rank, of in enumerate(codes[near].T):
        counts[rows, of] -= 1e-3 * rank * (of >= 0)
    return np.asarray(counts.argmax(axis=1))


def mixed(codes: np.ndarray, near: np.ndarray) -> list[int]:
    """Return the classes of which the median row has too few of its own among its nearest rows."""
    counts, sizes = votes(codes, near), np.bincount(codes[codes >= 0])
    least = np.minimum(TYPICAL, TYPICAL / NEAREST * (sizes - 1))  # a small class has fewer others
    return [c for c, n in enumerate(counts.T) if np.median([*n[codes == c], 0]) < least[c]]


def strays(codes: np.ndarray, near: np.ndarray) -> dict[int, int]:
    """Map rows among others, surest first, to the class of most of their nearest rows, or to -1.

    Of classes that mix, only rows with none of their own and nearly all of another one.
    """
    if not len(near):
        return {}
    counts, most = votes(codes, near), most_near(codes, near)
    largest, alike = counts.max(axis=1), counts[range(len(near)), codes]
    is_sure = (alike == 0) & (largest >= NEAREST - 1) | ~np.isin(codes, mixed(codes, near))
    is_stray = (alike < largest) & (codes >= 0) & is_sure
    rows = np.lexsort((-largest, alike))
    rows = rows[is_stray[rows]]
    return {row: int(most[row]) if 2 * largest[row] >= NEAREST else -1 for row in rows.tolist()}


def mixing(codes: np.ndarray, near: np.ndarray, n: int) -> np.ndarray:
    """Count rows by their class and, in columns (n, n), the class of most of their nearest rows."""
    rows, table = codes >= 0, np.zeros((n, n), dtype=int)
    np.add.at(table, (codes[rows], most_near(codes, near)[rows]), 1)
    return table


def sentence(table: np.ndarray, label: str, names: Sequence[str]) -> str:
    """Say how many rows lie among their own class, and what mixes most, given `mixing`."""
    mixed = table - np.diag(np.diag(table))
    pairs = np.transpose(np.unravel_index(np.argsort(-mixed, axis=None)[:NAMED], mixed.shape))
    most = [f"{names[a]} among {names[b]} ({mixed[a, b]:,})" for a, b in pairs if mixed[a, b]]
    said = f"{percent(np.trace(table) / table.sum())} of rows lie among their own {label}"
    share, largest = table.sum(axis=1).max() / table.sum(), names[table.sum(axis=1).argmax()]
    said += f", where {percent(share)} are {largest}" * bool(share > MOST)
    return said + f"; most mixed: {', '.join(most)}" * bool(most)


def two_apart(X: np.ndarray, codes: np.ndarray, prepare: Any = None) -> list[int]:
    """Return the feature that tells classes best, and the best one without what it predicts."""
    if prepare is not None and not prepare.is_by_row:
        X = prepare.apply(X.astype(np.float64))
    Z, first = X - X.mean(axis=0), int(between(X, codes).argmax())
    slopes = Z.T @ Z[:, first] / max(Z[:, first] @ Z[:, first], np.finfo(float).tiny)
    rest = Z - np.outer(Z[:, first], slopes)
    is_new = rest.std(axis=0) > SLIGHT * Z.std(axis=0)  # else the first one says the same
    return [first, int(np.where(is_new, between(rest, codes), -1).argmax())]


def _sums(X: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre features (N, D); return their squares (D,), and sums and counts by class (C, D)."""
    of, Z = np.eye(codes.max() + 1)[codes[codes >= 0]], X[codes >= 0]
    present = ~np.isnan(Z)
    Z = np.nan_to_num(Z - np.nanmean(Z, axis=0))
    return np.square(Z).sum(axis=0), of.T @ Z, of.T @ present


def between(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the share of each feature's variance (D,) between classes of rows (N, D)."""
    return _shares(*_sums(X, codes))


def _shares(squares: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.asarray((sums**2 / np.maximum(counts, 1)).sum(axis=0) / np.maximum(squares, 1e-300))


Ends = list[tuple[str, str]]  # by class, features that are highest and lowest in it


def marked(X: np.ndarray, names: Sequence[str], codes: np.ndarray) -> tuple[list[str], Ends]:
    """Return features with the largest shares of their ranks' variance between classes, and `Ends`.

    The ends are by Cliff's delta of a class against the rest. NaN is missing.
    """
    from scipy.stats import rankdata

    ranks = rankdata(np.where((codes < 0)[:, None], np.nan, X), axis=0, nan_policy="omit")
    squares, sums, counts = _sums(ranks, codes)
    shares, told, rest = _shares(squares, sums, counts), Ends(), counts.sum(axis=0) - counts
    for delta in 2 * sums / np.maximum(counts, 1) / np.maximum(rest, 1):
        order = np.argsort(-delta, kind="stable")
        ends = order[delta[order] > 0][:MARKED], order[::-1][delta[order[::-1]] < 0][:MARKED]
        each = ([f"{names[j]} {minus(f'{delta[j]:+.2f}')}" for j in end] for end in ends)
        told.append((", ".join(next(each)), ", ".join(next(each))))
    return [f"{names[j]} {shares[j]:.2f}" for j in np.argsort(-shares)[:MOST_SHOWN]], told


def at_one_contrast(X: np.ndarray) -> np.ndarray:
    """Scale images (N, D) to one mean and one length, so that faint ones are not near for it."""
    Z = X - X.mean(axis=1, keepdims=True, dtype=np.float64)
    return np.asarray(Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300))


Pairs = list[tuple[str, str, str, float]]  # group, two classes, distance


def inside_groups(Y: np.ndarray, codes: np.ndarray, names: Sequence[str], of: np.ndarray) -> Pairs:
    """Return pairs of rows of different classes inside groups `of` (N,), the nearest first."""
    pairs = Pairs()
    for group in np.unique(of):
        rows = np.flatnonzero((of == group) & (codes >= 0))
        rows = rows[np.argsort(codes[rows], kind="stable")]
        apart = np.linalg.norm(Y[rows][:, None] - Y[rows], axis=2)
        for i, j in np.argwhere(codes[rows][:, None] < codes[rows]).tolist():
            first, second = codes[rows[[i, j]]]
            pairs.append((str(group), names[first], names[second], float(apart[i, j])))
    return sorted(pairs, key=lambda pair: pair[3])


def closest_inside(pairs: Pairs) -> str:
    """Count in how many groups two classes are nearest, from either one; the closest come first."""
    nearest = dict[tuple[str, str], tuple[str, str]]()
    for group, *two, _ in reversed(pairs):  # the nearest come first
        nearest |= {(group, name): (two[0], two[1]) for name in two}
    once = sorted({(two, group) for (group, _), two in nearest.items()})
    apart = dict[tuple[str, str], list[float]]()
    for _, first, second, away in pairs:
        apart.setdefault((first, second), []).append(away)
    most = Counter(two for two, _ in once).most_common(MARKED)
    usual = sorted((float(np.median(apart[two])), two, n) for two, n in most)
    said = (f"{n:,} of {len(apart[two]):,}, usually {away:.2f} apart" for away, two, n in usual)
    return ", ".join(
        f"{a} and {b} ({how})" for (_, (a, b), _), how in zip(usual, said, strict=True)
    )


def apart_in_class(Y: np.ndarray, codes: np.ndarray) -> dict[int, float]:
    """Map rows far from others of their class, farthest first, to how far they lie, usually 1."""
    from sklearn.neighbors import NearestNeighbors

    far = list[tuple[float, int]]()
    for code in range(codes.max() + 1):
        if len(rows := np.flatnonzero(codes == code)) >= LEAST_IN_CLASS:
            model = NearestNeighbors(n_neighbors=FIFTH, algorithm="brute").fit(Y[rows])
            away = model.kneighbors()[0][:, -1]
            times = away / max(np.median(away), np.finfo(float).tiny)
            limit = min(FAR, max(APART, np.partition(times, -FEW_APART)[-FEW_APART]))
            far += [(float(times[i]), int(rows[i])) for i in np.flatnonzero(times >= limit)]
    return {row: ratio for ratio, row in sorted(far, reverse=True)}


def far_groups(Y: np.ndarray, codes: np.ndarray, of: np.ndarray) -> dict[int, float]:
    """Map rows of groups `of` (N,) far from the means of their classes to how far, usually 1.

    A row of each group comes first, the farthest groups first.
    """
    away = np.zeros(len(Y))
    for code in range(codes.max() + 1):
        rows = np.flatnonzero(codes == code)
        far = np.linalg.norm(Y[rows] - Y[rows].mean(axis=0), axis=1)
        away[rows] = far / max(np.median(far), np.finfo(float).tiny)
    _, group, sizes = np.unique(of, return_inverse=True, return_counts=True)
    mean = (np.bincount(group, away) / sizes)[group]
    rows = np.flatnonzero(mean > UNLIKE)
    earlier = [np.count_nonzero(group[:row] == group[row]) for row in rows]
    return {int(row): float(mean[row]) for row in rows[np.lexsort((-mean[rows], earlier))]}


def clustered(
    points: np.ndarray, n: int, seed: int = 0, starts: int = 2
) -> list[tuple[np.ndarray, float]]:
    """Return the members of clusters by k-means, nearest to the centre first; mean squares."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="openmp"):  # otherwise, the order of sums would vary
        labels, clusters = KMeans(n, n_init=starts, random_state=seed).fit(points).labels_, []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        away = points[members] - points[members].mean(axis=0)  # the centres of k-means are inexact
        squares = np.square(away).sum(axis=1)
        clusters.append((members[np.argsort(squares, kind="stable")], float(squares.mean())))
    return clusters


def are_clear(P: np.ndarray, of: np.ndarray) -> bool:
    """Whether types `of` scores P (N, K) have larger silhouettes than parts of normal clouds.

    The clouds have the deviations of the scores, and are parted by k-means.
    """
    from sklearn.metrics import silhouette_score

    silhouette = silhouette_score(P, of)
    for cloud in np.random.default_rng(0).normal(size=(CLOUDS, *P.shape)) * P.std(axis=0):
        parted = np.empty(len(P))
        for kind, (rows, _) in enumerate(clustered(cloud, of.max() + 1)):
            parted[rows] = kind
        if silhouette_score(cloud, parted) >= silhouette:
            return False
    return True


def beyond_gap(Y: np.ndarray) -> np.ndarray:
    """Return the rows (N,) above the widest gap of a feature, none if it is narrow."""
    inner = np.sort(Y, axis=0)[LEAST - 1 : len(Y) - LEAST + 1]
    gaps = np.diff(inner, axis=0) / np.maximum(Y.std(axis=0), np.finfo(float).tiny)
    gaps *= [len(np.unique(y)) > VARIOUS for y in Y.T]
    if gaps.max(initial=0) <= APART:
        return np.zeros(len(Y), bool)
    i, j = np.unravel_index(gaps.argmax(), gaps.shape)
    return np.asarray(Y[:, j] > inner[i, j])


def kinds(Y: np.ndarray, codes: np.ndarray, most: int, types: Any = None) -> list[np.ndarray]:
    """Return the rows of `most` clusters in each class, largest first, from the centre outwards.

    With `types`, a function of points (n, K) and their number, clusters are the types of principal
    scores, fewer until they are clear.
    """
    split = list[np.ndarray]()
    for code in range(codes.max() + 1):
        rows = np.flatnonzero(codes == code)
        n, parts = min(most, len(rows) // LEAST), [np.arange(len(rows))]
        if types is None and n > 1:
            parts = [part for part, _ in clustered(Y[rows], n, starts=STARTS)]
        elif types is not None and n:
            left, sizes, _ = np.linalg.svd(Y[rows] - Y[rows].mean(axis=0), full_matrices=False)
            scores = (left * sizes)[:, : max(1, min(SCORES, len(rows) // FOLDS, len(sizes)))]
            parts = [np.flatnonzero(beyond_gap(Y[rows]) == is_far) for is_far in (True, False)]
            for number in range(n, 1, -1):
                of = types(scores, number)
                members = [np.flatnonzero(of == kind) for kind in range(of.max() + 1)]
                if min(silhouettes(Y[rows], 0 * of, members)) > FIRM and are_clear(scores, of):
                    parts = members
                    break
        split += sorted((rows[part] for part in parts if len(part)), key=len, reverse=True)
    return split


def silhouettes(Y: np.ndarray, codes: np.ndarray, split: list[np.ndarray]) -> list[float]:
    """Return the mean silhouette (Rousseeuw, 1987) of each kind within its class; 0 if alone."""
    from sklearn.metrics import silhouette_samples

    of, each = np.full(len(Y), -1), np.zeros(len(Y))
    for kind, rows in enumerate(split):
        of[rows] = kind
    for code in {int(codes[rows[0]]) for rows in split}:
        rows = np.flatnonzero(codes == code)
        if 1 < len(np.unique(of[rows])) < len(rows):
            each[rows] = silhouette_samples(Y[rows], of[rows])
    return [float(each[rows].mean()) for rows in split]


def equal_to_others(equal: dict[int, int], codes: np.ndarray) -> dict[int, int]:
    """Map each row to the first row of another class in its set of equal rows, if any."""
    sets, others = dict[int, list[int]](), dict[int, int]()
    for row, first in equal.items():
        sets.setdefault(first, [first]).append(row)
    for first, *rest in sets.values():
        if unlike := [row for row in rest if codes[row] != codes[first]]:
            others |= dict.fromkeys((first, *rest), unlike[0]) | dict.fromkeys(unlike, first)
    return dict(sorted(others.items()))


def nearly_equal(Y: np.ndarray, near: np.ndarray) -> dict[int, int]:
    """Map rows of Y (N, D) far nearer to another one than is usual to it, nearest first."""
    other = near[:, 0]
    apart = np.linalg.norm(Y - Y[other], axis=1)
    once = (other[other] != np.arange(len(Y))) | (other < np.arange(len(Y)))
    rows = np.flatnonzero(once & (apart > 0) & (apart < NEARLY * np.median(apart[apart > 0])))
    return {row: int(other[row]) for row in rows[np.argsort(apart[rows])].tolist()}


def unlike_class(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the feature (N,) in which each row of X (N, D) is most unlike its class, or -1."""
    worst, spread = np.full(len(X), -1), X.std(axis=0)
    for code in range(codes.max() + 1 if X.size <= MOST_VALUES else 0):
        rows = np.flatnonzero(codes == code)
        away = np.abs(X[rows] - np.median(X[rows], axis=0))
        usual = X[rows].std(axis=0) + SLIGHT * spread
        worst[rows] = np.divide(away, usual, out=np.zeros_like(away), where=usual > 0).argmax(
            axis=1
        )
    return worst


def discriminated(
    Y: np.ndarray, codes: np.ndarray, units: np.ndarray
) -> tuple[np.ndarray, dict[int, tuple[int, float]]]:
    """Count rows by class and the class that linear discriminants of others tell, (C, C).

    Also map unlikely rows to that class and the probability of their own, the least likely first.

    Y (N, D) are prepared rows. Covariances are shrunk (Ledoit and Wolf, 2004); units stay together.
    The counts are 0 if classes are small or the data are large.
    """
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_predict

    classes, counts = np.unique(codes[codes >= 0], return_counts=True)
    classes = classes[counts >= FOLDS]
    rows = np.flatnonzero(np.isin(codes, classes))
    table = np.zeros((codes.max() + 1,) * 2, int)
    if len(classes) < 2 or Y.size > MOST_VALUES:
        return table, {}
    if Y.shape[1] > WIDE:  # scores on principal axes, which are found without the classes
        Y = PCA(min(AXES, len(Y) - 1), svd_solver="randomized", random_state=0).fit_transform(Y)
    alone = len(np.unique(units[rows])) == len(rows)
    kind, groups = (StratifiedKFold, None) if alone else (StratifiedGroupKFold, units[rows])
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    P = np.zeros((len(rows), len(classes)))
    for seed in range(REPEATS):
        how = {"cv": kind(FOLDS, shuffle=True, random_state=seed), "method": "predict_proba"}
        P += cross_val_predict(model, Y[rows], codes[rows], groups=groups, **how) / REPEATS
    told, p = classes[P.argmax(axis=1)], P[codes[rows][:, None] == classes]
    np.add.at(table, (codes[rows], told), 1)
    is_right = 2 * np.diag(table) > table.sum(axis=0)  # of the rows told to be of a class, most are
    unlikely = [i for i in np.argsort(p, kind="stable") if p[i] < UNLIKELY and is_right[told[i]]]
    return table, {int(rows[i]): (int(told[i]), float(p[i])) for i in unlikely}
