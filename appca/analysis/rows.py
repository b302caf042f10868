"""Analyze rows and groups of rows: one row as an equation, outliers, similar rows."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.components import Subspace, ranked
from appca.analysis.fitted import FittedModel, FittedRun
from appca.class_overlap import clustered
from appca.data.preprocessing import Fitted
from appca.models.settings import ENUMERATED

if TYPE_CHECKING:
    from appca.data.dataset import Dataset

_BLOCK_VALUES, _TINY = 1 << 21, np.finfo(float).tiny


class RowParts(NamedTuple):
    """A row as a sum, in data units: original = average + terms + residual."""

    original: np.ndarray  # (D,)
    average: np.ndarray  # (D,) reconstruction with all scores 0
    components: tuple[int, ...]  # components used, counted from 0
    scores: np.ndarray  # (L,)
    terms: np.ndarray  # (L, D) score times component
    reconstruction: np.ndarray  # (D,) average + sum of the terms


def parts(dataset: "Dataset", fitted: FittedRun, row: int) -> RowParts:
    """Decompose a row, with missing cells imputed, into a sum of terms."""
    x = dataset.X[row].astype(np.float64)
    if dataset.missing is not None and fitted.imputed is not None:
        before, gaps = int(dataset.missing[:row].sum()), dataset.missing[row]
        x[gaps] = fitted.imputed[before : before + int(gaps.sum())]
    used = np.flatnonzero(fitted.active[row])
    scores = fitted.scores[row, used].astype(np.float64)
    steps = scores[:, None] * fitted.components[used].astype(np.float64)
    path = np.vstack([fitted.mean[None].astype(np.float64), steps]).cumsum(axis=0)
    pictures, prepare = fitted.preprocessing.inverse_transform(path), fitted.preprocessing.prepare
    pictures = pictures if prepare is None else prepare.sized(pictures, x)
    terms = np.diff(pictures, axis=0)
    return RowParts(x, pictures[0], tuple(used.tolist()), scores, terms, pictures[-1])


def alternatives(
    model: FittedModel, y: np.ndarray, most: int = 8
) -> list[tuple[tuple[int, ...], float]]:
    """Return a row's most probable supports, counted from 0, and their exact probabilities.

    Returns an empty list if there are too many supports to enumerate. y (D',) is the preprocessed
    row, with NaN for missing cells. With x integrated out, c = W'(y - mu)/sigma2 and
    Lam_S = inv(T) + W_S'W_S/sigma2,

        log p(S | y) = log p(S) - 1/2 log|T Lam_S| + 1/2 c_S' inv(Lam_S) c_S + constant
    """
    from appca.models.set_tree import CollapsedModel, supports
    from appca.models.supports import scores_given

    K, prior = len(model.components), np.asarray(0.0)
    sizes = range(K + 1) if model.n_active is None else [model.n_active]
    if sum(math.comb(K, size) for size in sizes) > ENUMERATED:
        return []
    noise, left = np.broadcast_to(model.noise_variance, len(y)), y - model.mean.astype(np.float64)
    seen = ~np.isnan(left) & (noise > 0.0)
    deviation = np.sqrt(np.maximum(model.latent_variance, _TINY))  # scale of the scores
    W = deviation[:, None] * model.components[:, seen].astype(np.float64) / np.sqrt(noise[seen])
    left = left[seen] / np.sqrt(noise[seen])
    Z = np.vstack([np.eye(K, dtype=bool)[supports(K, size)].any(axis=1) for size in sizes])
    if model.size_probabilities is not None:
        n_sets = np.array([math.comb(K, size) for size in range(K + 1)])
        prior = np.asarray(np.log(model.size_probabilities / n_sets)[Z.sum(axis=1)])
    elif model.weights is not None:
        weights = np.clip(model.weights.astype(np.float64), 1e-300, 1 - 1e-16)
        prior = Z @ np.log(weights / (1 - weights))
    scales = np.ones(1), np.ones(1)
    if model.row_scale_values is not None and model.row_scale_probabilities is not None:
        scales = model.row_scale_values, model.row_scale_probabilities
    c, collapsed = np.broadcast_to(W @ left, Z.shape), CollapsedModel(W @ W.T, 1.0)
    evidence = [
        np.log(p)
        - 0.5 * (len(left) * np.log(u) + left @ left / u)
        + scores_given(c / np.sqrt(u), Z, collapsed)[1]
        for u, p in zip(*scales, strict=True)
    ]
    log_joint = prior + np.logaddexp.reduce(evidence, axis=0)
    weight = np.exp(log_joint - log_joint.max())
    best = np.argsort(-weight, kind="stable")[:most]
    sets = [tuple(np.flatnonzero(Z[i]).tolist()) for i in best]
    return list(zip(sets, (weight[best] / weight.sum()).tolist(), strict=True))


def size_probabilities(model: FittedModel, y: np.ndarray) -> np.ndarray:
    """Return P(row uses k components) for k = 0, ..., K, if L is learned."""
    from appca.models.posterior import SubspacePosterior

    of = model.components, model.mean, model.noise_variance, model.latent_variance
    learned = model.row_scale_values, model.row_scale_probabilities, model.size_probabilities
    posterior = SubspacePosterior(*of, len(model.components), *learned)
    return np.asarray(posterior.size_probabilities(y[None])[0])


def near_in_data(X: np.ndarray, fitted: Fitted, row: int, n: int) -> np.ndarray:
    """Return the n rows of X (N, D) nearest to a row after preprocessing, nearest first."""
    y, step = fitted.transform(X[row : row + 1]), max(1, _BLOCK_VALUES // X.shape[1])
    blocks = (fitted.transform(X[at : at + step]) - y for at in range(0, len(X), step))
    squares = np.concatenate([np.einsum("nd,nd->n", B, B, dtype=np.float64) for B in blocks])
    squares[row] = np.inf
    return np.argsort(squares, kind="stable")[: min(n, len(X) - 1)]


def near_in_subspace(fitted: FittedRun, row: int, n: int) -> np.ndarray:
    """Return the n rows of the same support with the nearest reconstructions."""
    others = (fitted.active == fitted.active[row]).all(axis=1)
    others[row] = False
    rows, used = np.flatnonzero(others), np.flatnonzero(fitted.active[row])
    W = fitted.components[used].astype(np.float64)
    off = fitted.scores[np.ix_(rows, used)].astype(np.float64) - fitted.scores[row, used]
    return rows[np.argsort(np.einsum("nk,kl,nl->n", off, W @ W.T, off), kind="stable")[:n]]


_SINGULAR = 1e-6  # tolerance relative to a component's squared length
_ORTHONORMAL = 1e-4  # tolerance; float32 components are orthonormal to about 1e-6


class Distances(NamedTuple):
    """T2 and Q of every row, with their degrees of freedom."""

    t2: np.ndarray  # (N,) Hotelling's T2
    q: np.ndarray  # (N,) squared distance from the subspace divided by the noise variance
    inside: np.ndarray  # (N,) degrees of freedom of T2
    outside: np.ndarray  # (N,) degrees of freedom of Q
    scales: tuple[Any, Any] = (1.0, 1.0)  # learned scales (J,) and their probabilities (J,)

    def over(self, limits: np.ndarray) -> np.ndarray:
        """Return T2 and Q divided by their limits, (N, 2); rows above 1 are flagged."""
        return np.asarray(np.column_stack([self.t2, self.q]) / limits)


def distances(fitted: FittedRun) -> Distances:
    """Return T2 and Q of rows; with noise per feature, T2 in its units, Q 0 without freedom."""
    active, m = fitted.active, fitted.scores.astype(np.float64)
    by_feature = np.ndim(fitted.noise_variance) > 0
    noise = 1.0 if by_feature else fitted.noise_variance
    tau2, W = np.maximum(fitted.latent_variance, _TINY), fitted.components.astype(np.float64)
    gram, u = np.eye(len(W)) if by_feature else np.asarray(W @ W.T), m * (noise / tau2)
    orthonormal = np.abs(gram - np.eye(len(gram))).max() < _ORTHONORMAL
    v, inside = (u, active.sum(axis=1)) if orthonormal else _solved(gram, active, u)
    n_features, t2 = 0 if by_feature else W.shape[1], np.einsum("nk,nk->n", m + v, m / tau2)
    squares = fitted.error.astype(np.float64) * n_features - np.einsum("nk,nk->n", v, u)
    q, outside = np.maximum(squares, 0.0) / noise, np.maximum(n_features - inside, 0)
    scales = fitted.row_scale_values, fitted.row_scale_probabilities
    return Distances(t2, q, inside, outside, (1.0, 1.0) if fitted.row_scales is None else scales)


def _solved(gram: np.ndarray, active: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve G_SS v_S = u_S for every row; return v (N, K) and the ranks of G_SS (N,)."""
    v, rank = np.zeros_like(u), np.zeros(len(u), dtype=int)
    for used, rows in ranked(active):
        columns = np.array(used, dtype=int)
        values, vectors = np.linalg.eigh(gram[np.ix_(columns, columns)])
        real = values > _SINGULAR * values.sum()
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=real)
        at = np.ix_(rows, columns)
        v[at] = (u[at] @ vectors * inverse) @ vectors.T
        rank[rows] = real.sum()
    return v, rank


def limits_of(distances: Distances, level: float, data: Distances | None = None) -> np.ndarray:
    """Return the `level` quantiles of T2 and Q, (N, 2).

    By default, quantiles of chi-square variables times row scales, infinite without freedom. With
    `data`, empirical ones over the model's limits, because T2 grows with the number of components.
    """
    limits = np.empty((len(distances.t2), 2))
    u, p = (np.atleast_1d(each).astype(np.float64) for each in distances.scales)
    for inside, first in zip(*np.unique(distances.inside, return_index=True), strict=True):
        freedoms = int(inside), int(distances.outside[first])
        limits[distances.inside == inside] = [_quantile(n, level, u, p) for n in freedoms]
    if data is None:
        return limits
    shares = np.quantile(data.over(limits_of(data, level)), level, axis=0)
    return np.asarray(limits * np.maximum(shares, _TINY))


def _quantile(freedom: int, level: float, u: np.ndarray, p: np.ndarray) -> float:
    """Return a quantile of u chi2, for scales u (J,) with probabilities p (J,)."""
    from scipy.optimize import brentq
    from scipy.stats import chi2

    if not freedom:
        return np.inf
    most = u.max() * chi2.ppf(level, freedom)
    below = len(u) > 1 and (lambda x: p @ chi2.cdf(x / u, freedom) - level)
    return float(brentq(below, 0.0, most) if below else most)


LEAST_ROWS = 4
MOST_GROUPS = 30  # maximum number of groups in a subspace
JOINED_SHARE, JOINED_ROWS = 0.1, 2  # minimum share and number of rows of a joined class


class SimilarRows(NamedTuple):
    """A cluster of rows in a subspace."""

    components: tuple[int, ...]  # counted from 0
    rows: np.ndarray  # (m,) row indices, nearest to the centre first
    spread: float  # root mean squared distance from the centre, relative to the subspace's


class Mixture(NamedTuple):
    """Class counts of a group."""

    counts: np.ndarray  # (C,) rows of each class
    effective: float  # exp of the class entropy: 1 for one class, 2 for two equal classes
    joined: tuple[int, ...]  # classes of at least two rows and a tenth of the group, largest first


def similar(
    scores: np.ndarray,
    components: np.ndarray,
    subspaces: Sequence[Subspace],
    size: int = 20,
    seed: int = 0,
) -> list[SimilarRows]:
    """Group rows of each subspace by k-means of projections, `size` a group, tightest first."""
    groups: list[SimilarRows] = []
    for subspace in subspaces:
        if not subspace.components or len(subspace.rows) < LEAST_ROWS:
            continue
        points = projected(scores, components, subspace)
        scale = np.abs(points).max()
        # rounded, because equal rows may differ in the last bits
        different = len(np.unique(np.round(points / scale, 9), axis=0)) if scale > 0 else 1
        n_groups = min(max(1, round(len(points) / size)), MOST_GROUPS, different)
        whole, of_subspace = np.square(points - points.mean(axis=0)).sum(axis=1).mean(), []
        for members, square in clustered(points, n_groups, seed):
            spread = float(np.sqrt(square / whole)) if whole > 0 else 0.0
            of_subspace.append(SimilarRows(subspace.components, subspace.rows[members], spread))
        groups += sorted(of_subspace, key=lambda group: (group.spread, int(group.rows.min())))
    return groups


def projected(scores: np.ndarray, components: np.ndarray, subspace: Subspace) -> np.ndarray:
    """Return coordinates (m, L) of a subspace's rows that preserve distances of projections.

    With W_s'W_s = V diag(v) V', |W_s x| = |diag(v)^(1/2) V'x|.
    """
    chosen = list(subspace.components)
    member_scores = scores[np.ix_(subspace.rows, np.asarray(chosen))].astype(np.float64)
    W = components[chosen].astype(np.float64)
    values, vectors = np.linalg.eigh(W @ W.T)  # unlike Cholesky, works for a singular matrix
    return np.asarray(member_scores @ (vectors * np.sqrt(np.maximum(values, 0.0))))


def mixtures(
    groups: Sequence[SimilarRows], codes: np.ndarray, n_classes: int
) -> list[tuple[SimilarRows, Mixture]]:
    """Count the classes (N,) in groups, most joined classes first; negative codes have none."""
    mixed = []
    for group in groups:
        counts = np.bincount(codes[group.rows][codes[group.rows] >= 0], minlength=n_classes)
        shares = counts[counts > 0] / max(counts.sum(), 1)
        effective = float(np.exp(-(shares * np.log(shares)).sum()))
        least = max(JOINED_ROWS, JOINED_SHARE * len(group.rows))
        joined = tuple(c for c in np.argsort(-counts, kind="stable").tolist() if counts[c] >= least)
        mixed.append((group, Mixture(counts, effective, joined)))
    return sorted(mixed, key=lambda m: (-len(m[1].joined), -round(m[1].effective, 9), m[0].spread))
