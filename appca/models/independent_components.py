"""Starts of adaptive factor analysis: independent components, principal components, rows.

Scores x * z have heavy tails and are independent except for their number, so independent component
analysis finds W up to scale and order. From PCA, the paper's start, EM ends far above the noise.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from appca.models import stiefel
from appca.models.numerics import Array
from appca.models.rows import Block, Rows, project, some_rows
from appca.models.stiefel import Principal, principal

MAX_PASSES = 200
LEAST_VARIANCE = 1e-12  # relative to the largest; smaller variances are rounding
TOL = 1e-4  # maximum of 1 - |cos| between successive directions
SAMPLE_ROWS, SAMPLE_ROWS_PER_COMPONENT = 10_000, 100
UNKNOWN_NOISE = 0.05  # relative to the mean feature variance, if it cannot be estimated
DICTIONARY_PASSES = 30


class Start(NamedTuple):
    """First loadings and noise variance."""

    W: Array  # (d, K)
    noise: float
    annealing: int = 0  # minimum number of iterations with drawn supports
    shift: Array | None = None  # (K,) shift of the mean of a fit


def fast_ica(rng: Generator, P: Array, most: int = MAX_PASSES, weights: Any = None) -> Array:
    """Return the rotation R (q, q) that makes the columns of P R most independent.

    Symmetric FastICA (Hyvarinen 1999) with g = tanh on scores P (N, q), whitened to p:

        R <- polar(E[p g(R'p)'] - R diag(E[g'(R'p)]))
    """
    q = P.shape[1]
    rows = Rows(P, None, np.empty(0), q, weights=weights)
    n = rows.mass

    def squared(block: Block) -> Array:
        return (block.X.T @ block.weighted(block.X)).astype(np.float64)

    def squashed(block: Block) -> tuple[Array, Array]:
        U = block.times(axes)
        np.tanh(U, out=U)
        V = block.weighted(U)
        return block.transposed_times(V), np.einsum("nq,nq->q", U, V, dtype=np.float64)

    values, V = np.linalg.eigh(rows.summed(squared, np.zeros((q, q))) / n)
    some = values > LEAST_VARIANCE * values[-1]
    white = V * np.where(some, 1.0 / np.sqrt(np.where(some, values, 1.0)), 0.0) @ V.T
    R = stiefel.polar(rng.standard_normal((q, q)))
    for _ in range(most):
        axes = (white @ R).astype(P.dtype)
        A, squares = rows.summed(squashed, (np.zeros((q, q)), np.zeros(q)))
        following = stiefel.polar(white @ A / n - R * (1.0 - squares / n))
        turned = np.abs(np.einsum("ij,ij->j", R, following)).min()
        R = following
        if turned > 1.0 - TOL:
            break
    return R


def ica(rng: Generator, rows: Rows, n_components: int, n_active: int) -> Start:
    """Independent components of the PPCA subspace, scaled by sqrt(K/L); PCA if L = K."""
    if n_components == n_active:
        return pca(rng, rows, n_components, n_active)
    if n_components > min(len(rows.X) - 1, rows.X.shape[1]):
        return dictionary(rng, rows, n_components, n_active)
    lead = principal(rng, rows, n_components)
    start = _closed_form(rows, lead, n_components, n_active)
    some = _sample(rng, rows, n_components)
    P = project(some, lead.V).astype(np.float64, copy=False)
    return Start(start.W @ fast_ica(rng, P, weights=some.weights), start.noise)


def pca(rng: Generator, rows: Rows, n_components: int, n_active: int) -> Start:
    """PPCA in closed form, scaled by sqrt(K/L); directions beyond the data's rank are random."""
    q = min(n_components, len(rows.X) - 1, rows.X.shape[1])
    start = _closed_form(rows, principal(rng, rows, q), n_components, n_active)
    if q == n_components:
        return start
    return Start(np.hstack([start.W, random(rng, rows, n_components - q, n_active).W]), start.noise)


def turned(rng: Generator, rows: Rows, n_components: int, n_active: int) -> Start:
    """Principal components in a random rotation."""
    start = pca(rng, rows, n_components, n_active)
    return Start(start.W @ stiefel.random(rng, n_components, n_components), start.noise)


def dictionary(rng: Generator, rows: Rows, n_components: int, n_active: int) -> Start:
    """Rows as loadings, each drawn by its squared distance from the lines through earlier rows."""
    some = _sample(rng, rows, n_components)
    Y = some.X.astype(np.float64)
    if some.origin is not None:
        Y -= some.origin
    power = np.square(Y).sum(axis=1)
    counted, U = some.weighted(power), Y / np.sqrt(np.where(power > 0.0, power, 1.0))[:, None]
    far, chosen = np.ones(len(U)), np.empty((n_components, Y.shape[1]))
    for k in range(n_components):
        distance = counted * far
        total = distance.sum()
        i = rng.choice(len(U), p=distance / total if total > 0.0 else counted / counted.sum())
        chosen[k] = U[i]
        far = np.minimum(far, np.maximum(1.0 - np.square(U @ U[i]), 0.0))
        far[i] = 0.0
    size = np.sqrt(_variance(rows) * rows.n_features / n_active)
    return Start(size * chosen.T, UNKNOWN_NOISE * _variance(rows), DICTIONARY_PASSES)


def random(rng: Generator, rows: Rows, n_components: int, n_active: int) -> Start:
    """Isotropic Gaussian loadings that explain all variance."""
    W = np.sqrt(_variance(rows) / n_active) * rng.standard_normal((rows.X.shape[1], n_components))
    return Start(W, UNKNOWN_NOISE * _variance(rows))


def from_loadings(rows: Rows, W: Array) -> Start:
    """Use given loadings W (d, K), with the noise outside their span."""
    Q = np.linalg.qr(W)[0]
    left = rows.total - rows.weighted(np.square(project(rows, Q), dtype=np.float64)).sum()
    spare = rows.n_features - Q.shape[1]
    noise = float(left) / (rows.mass * spare) if spare > 0 else 0.0
    return Start(W, max(noise, UNKNOWN_NOISE * _variance(rows)))


NAMED: dict[str, Any] = {"ica": ica, "pca": pca, "dictionary": dictionary, "random": random}
NAMED["random rotation"] = turned  # (rng, rows, K, L) -> Start


def _closed_form(rows: Rows, lead: Principal, n_components: int, n_active: int) -> Start:
    """Return PPCA's loadings sqrt(lambda - sigma2) v times sqrt(K/L)."""
    q, spare = len(lead.values), rows.n_features - len(lead.values)
    noise = (rows.total / rows.mass - float(lead.values.sum())) / spare if spare else 0.0
    if noise <= 1e-8 * _variance(rows):
        noise = UNKNOWN_NOISE * _variance(rows)
    scale = np.sqrt(np.maximum(lead.values - noise, 1e-3 * lead.values[0]))
    return Start(lead.V[:, :q] * scale * np.sqrt(n_components / n_active), noise)


def _sample(rng: Generator, rows: Rows, n_components: int) -> Rows:
    """Draw a sample of the rows, relative to their mean."""
    size = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_COMPONENT * n_components)
    if rows.n <= size:
        return rows
    return some_rows(rng, rows, size, learn_mean=rows.origin is not None)


def _variance(rows: Rows) -> float:
    return rows.total / (rows.mass * rows.n_features)
