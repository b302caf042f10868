"""One row of a run taken apart: its sum, the sets it might have used instead, and rows near it."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.analysis.fitted import FittedModel, FittedRun
from appca.data.preprocessing import Fitted
from appca.models.settings.table import ENUMERATED

if TYPE_CHECKING:
    from appca.data.dataset import Dataset

_BLOCK_VALUES = 1 << 21


class RowParts(NamedTuple):
    """A row as a sum, in data units: original = average + terms + residual."""

    original: np.ndarray  # (D,)
    average: np.ndarray  # (D,) what a row without any component would be
    components: tuple[int, ...]  # used ones, counted from 0
    scores: np.ndarray  # (L,)
    terms: np.ndarray  # (L, D) score times component, or what that step changes in the picture
    reconstruction: np.ndarray  # (D,) average + sum of the terms
    residual: np.ndarray  # (D,) what the run leaves unexplained


class Alternatives(NamedTuple):
    """The most probable sets of components of a row."""

    sets: list[tuple[int, ...]]  # counted from 0, the most probable first
    probability: np.ndarray  # (m,) posterior probabilities
    n_sets: int  # how many there are altogether


class NearRows(NamedTuple):
    """Nearest rows, the nearest first, without the row itself."""

    rows: np.ndarray  # (m,)
    distances: np.ndarray  # (m,) in the units after preprocessing


def parts(fitted: FittedRun, x: np.ndarray, row: int) -> RowParts:
    """Take row x (D,), in data units, apart; `row` is its number."""
    used = np.flatnonzero(fitted.active[row])
    scores = fitted.scores[row, used].astype(np.float64)
    steps = scores[:, None] * fitted.components[used].astype(np.float64)
    path = np.vstack([fitted.mean[None].astype(np.float64), steps]).cumsum(axis=0)
    pictures = fitted.preprocessing.inverse_transform(path)
    average, terms, reconstruction = pictures[0], np.diff(pictures, axis=0), pictures[-1]
    original = x.astype(np.float64)
    residual = original - reconstruction
    return RowParts(
        original, average, tuple(used.tolist()), scores, terms, reconstruction, residual
    )


def row_of(dataset: "Dataset", fitted: FittedRun, row: int) -> np.ndarray:
    """Return a row (D,) in data units, with what the run puts into its missing cells."""
    if dataset.missing is None or fitted.imputed is None:
        return np.asarray(dataset.X[row])
    before, gaps = int(dataset.missing[:row].sum()), dataset.missing[row]
    x: np.ndarray = dataset.X[row].astype(np.float64)
    x[gaps] = fitted.imputed[before : before + int(gaps.sum())]
    return x


def alternatives(model: FittedModel, y: np.ndarray, most: int = 8) -> Alternatives | None:
    """Return the most probable sets of a row, exactly; None where there are too many sets to count.

    With x integrated out, c = W'(y - mu)/sigma2 and Lam_S = inv(T) + W_S'W_S/sigma2,

        log p(S | y) = log p(S) - 1/2 log|T Lam_S| + 1/2 c_S' inv(Lam_S) c_S + constant

    y (D',) is the row after preprocessing, NaN where a cell is missing, which then does not count.
    """
    W = model.components.astype(np.float64)
    K = len(W)
    sizes = list(range(K + 1)) if model.n_active is None else [model.n_active]
    count = sum(math.comb(K, size) for size in sizes)
    if count > ENUMERATED:
        return None
    tau2 = np.maximum(model.latent_variance, np.finfo(float).tiny)
    noise = np.broadcast_to(model.noise_variance, len(y))
    left = y - model.mean.astype(np.float64)
    seen = ~np.isnan(left) & (noise > 0.0)
    scale = 1.0 / np.sqrt(noise[seen])
    W, left = W[:, seen] * scale, left[seen] * scale
    members: list[tuple[int, ...]] = []
    value: list[np.ndarray] = []
    for size in sizes:
        same_size, evidence = _over_scales(model, W, left, tau2, size)
        members += [tuple(S) for S in same_size.tolist()]
        value.append(evidence + _prior(model, same_size))
    joined = np.concatenate(value)
    weight = np.exp(joined - joined.max())
    probability = weight / weight.sum()
    best = np.argsort(-probability, kind="stable")[:most]
    return Alternatives([members[i] for i in best], probability[best], count)


def size_probabilities(model: FittedModel, y: np.ndarray) -> np.ndarray | None:
    """Return the probabilities (K + 1,) that a row (D',) uses 0 to K components, if learned."""
    from appca.models.variants.posterior import VariantPosterior

    if model.size_probabilities is None:
        return None
    posterior = VariantPosterior(
        model.components,
        model.mean,
        model.noise_variance,
        model.latent_variance,
        len(model.components),
        model.row_scale_values,
        model.row_scale_probabilities,
        model.size_probabilities,
    )
    return np.asarray(posterior.size_probabilities(y[None])[0])


def near_in_data(X: np.ndarray, fitted: Fitted, row: int, n: int) -> NearRows:
    """Return the n rows of X (N, D) nearest to a row after preprocessing, among all of them.

    X is walked over in blocks.
    """
    y = fitted.transform(X[row : row + 1])
    squares = np.empty(len(X))
    step = max(1, _BLOCK_VALUES // X.shape[1])
    for start in range(0, len(X), step):
        block = fitted.transform(X[start : start + step])
        block -= y
        squares[start : start + step] = np.einsum("nd,nd->n", block, block, dtype=np.float64)
    return _nearest(np.arange(len(X)), squares, row, n)


def near_in_subspace(fitted: FittedRun, row: int, n: int) -> NearRows:
    """Return the n nearest rows among those that use the same components as a row.

    Near means that the reconstructions are: |W s_i - W s_j|, after preprocessing.
    """
    active = fitted.active
    rows = np.flatnonzero((active == active[row]).all(axis=1))
    used = np.flatnonzero(active[row])
    W = fitted.components[used].astype(np.float64)
    off = fitted.scores[np.ix_(rows, used)].astype(np.float64) - fitted.scores[row, used]
    return _nearest(rows, np.einsum("nk,kl,nl->n", off, W @ W.T, off), row, n)


def _nearest(rows: np.ndarray, squares: np.ndarray, row: int, n: int) -> NearRows:
    others = rows != row
    rows, squares = rows[others], squares[others]
    n = min(n, len(rows))
    first = np.argpartition(squares, n - 1)[:n] if n else np.arange(0)
    order = first[np.lexsort((rows[first], squares[first]))]
    return NearRows(rows[order], np.sqrt(np.maximum(squares[order], 0.0)))


def _over_scales(
    model: FittedModel, W: np.ndarray, left: np.ndarray, tau2: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return sets (C, size), and their log evidence up to a constant, over all scales of rows."""
    from appca.models.supports import enumeration
    from appca.models.supports.row_supports import CollapsedModel

    def of(u: float) -> tuple[np.ndarray, np.ndarray]:
        table = enumeration.table(CollapsedModel(W @ W.T / u, 1.0 / (u * tau2)), size)
        return table.sets, enumeration.densities(table, (W @ left / u)[None])[0]

    if model.row_scale_values is None or model.row_scale_probabilities is None:
        return of(1.0)
    grid = model.row_scale_values
    joint = [
        of(u)[1] - 0.5 * (len(left) * np.log(u) + left @ left / u) + np.log(p)
        for u, p in zip(grid, model.row_scale_probabilities, strict=True)
    ]
    return of(1.0)[0], np.asarray(np.logaddexp.reduce(joint, axis=0))


def _prior(model: FittedModel, sets: np.ndarray) -> np.ndarray:
    """Log prior of sets up to a constant: uniform, or independent components."""
    if model.size_probabilities is not None:
        K, size = len(model.components), sets.shape[1]
        share = model.size_probabilities[size] / math.comb(K, size)
        return np.full(len(sets), np.log(share))
    if model.weights is None:
        return np.zeros(len(sets))
    weights = np.clip(model.weights.astype(np.float64), 1e-300, 1 - 1e-16)
    return np.asarray(np.log(weights / (1 - weights))[sets].sum(axis=1))
