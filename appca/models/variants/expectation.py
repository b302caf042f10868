"""The E step of the variants, over a few rows at a time: all is asked of them while in cache."""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.rows.observations import Block, Observations, added, tile_rows, tiles
from appca.models.variants.row_mixture import NEGLIGIBLE, RowModel, background, slope
from appca.models.variants.row_mixture import weigh as weighed


class VariantStatistics(NamedTuple):
    """Expected sufficient statistics of one pass over the rows; u is the scale of a row."""

    log_likelihood: float  # total, nats
    A: Array  # (d, K) sum of E[(y - origin) s' / u]
    s: Array  # (K,) sum of E[s / u]
    second: Array  # (K,) sum of E[(x z)^2 / u]
    used: Array  # (K,) sum of inclusion probabilities
    inverse: Array  # () sum of E[1 / u]
    first: Array  # (d,) sum of E[1 / u] (y - origin)
    power: Array  # (d,) sum of E[1 / u] (y - origin)_d^2
    scales: Array  # (J,) sum of the posterior probabilities of scales
    sizes: Array  # (K + 1,) of sizes


class RowSums(NamedTuple):
    """What some rows add up to, but for products with them."""

    log_likelihood: float
    s: Array
    second: Array
    used: Array
    inverse: Array
    scales: Array
    sizes: Array


# Of projections P (K, n), overwritten by E[x z / u] times the weight of a row, squared distances
# (n,) and weights (n,): sums, and E[1 / u] (n,) times the weight.
RowWork = Callable[[Array, Array, Array], tuple[RowSums, Array]]


def expect_block(
    block: Block,
    *,
    scale: Array,
    V: Array,
    m: Array,
    model: RowModel,
    weigh: Callable[[RowModel], RowWork],
    moving: bool,
) -> VariantStatistics:
    """Add up one block about origin + m (d,); `moving`: rows have scales, and squares count."""
    X, (d, K), work = block.X, V.shape, weigh(model)
    directions, squared = scale[:, None] * V, np.square(scale).astype(X.dtype)
    about = m if block.origin is None else block.origin + m
    centre = about.astype(X.dtype)
    thin, rest = ThinProducts(directions, X.dtype), (about - centre) @ directions
    weights = np.ones(len(X)) if block.weights is None else block.weights
    A, power, sums = np.zeros((K + 1, d)), np.zeros(d), list[RowSums]()
    room = np.empty((tile_rows(X) if moving else 0, d), X.dtype)  # fresh memory costs more
    for part, B in tiles(X, centre):
        P = thin.project(B)
        P -= rest[:, None]
        squares = np.square(B, out=room[: len(B)]) if moving else room
        row, inverse = work(P, squares @ squared if moving else np.zeros(len(B)), weights[part])
        sums.append(row)
        A += thin.outer(P, inverse, B)
        if moving:
            power += inverse.astype(X.dtype) @ squares
    row = reduce(added, sums)
    away = centre - (0.0 if block.origin is None else block.origin.astype(np.float64))
    first, G = A[K], row.inverse
    A, first, power = (
        A[:K].T + np.outer(away, row.s),
        first + G * away,
        power + 2.0 * away * first + G * np.square(away),
    )
    value, s, second, used, inverse, scales, sizes = row
    return VariantStatistics(value, A, s, second, used, inverse, first, power, scales, sizes)


class ThinProducts:
    """Products of a few rows with a few directions (d, K), compiled where that is faster."""

    def __init__(self, directions: Array, dtype: Any) -> None:
        from appca.models.algebra import product_kernels as kernels

        self._kernels = kernels if kernels.suits(dtype, *directions.shape) else None
        d, K = directions.shape
        lines = -(-K // kernels.QUAD) * kernels.QUAD if self._kernels else K
        self._K, self._W = K, np.zeros((lines, d), dtype)
        self._W[:K] = directions.T

    def project(self, B: Array) -> Array:
        """Return projections (K, n) float64 of rows B (n, d)."""
        if self._kernels is None:
            return (self._W @ B.T).astype(np.float64)
        P = np.empty((len(self._W), len(B)))
        self._kernels.project(B, self._W, P)
        return P[: self._K]

    def outer(self, S: Array, last: Array, B: Array) -> Array:
        """Sum S (K, n) and, in the last line, `last` (n,) times rows B: (K + 1, d)."""
        K, quad = self._K, 1 if self._kernels is None else self._kernels.QUAD
        both = np.zeros((K + 1 + (K + 1) % 2, -(-len(B) // quad) * quad), B.dtype)
        both[:K, : len(B)], both[K, : len(B)] = S, last
        if self._kernels is None:
            return both[: K + 1] @ B
        A = np.zeros((len(both), B.shape[1]), B.dtype)
        self._kernels.add_outer(B, both, A)
        return A[: K + 1]


def by_numpy(model: RowModel) -> RowWork:
    """Return what weighs rows of any variant."""
    shrink, v = gaussian.posterior(model.noise, model.latent)

    def work(P: Array, squares: Array, weights: Array) -> tuple[RowSums, Array]:
        row, m = weighed(P.T, squares, model), shrink[:, None] * P
        P[:] = row.by_scale.T * m * weights
        used, scales = weights @ row.inclusion, weights @ row.scales
        inverse = weights * (row.scales @ (1.0 / model.grid))
        second = np.einsum("kn,kn->k", P, m) + used * v
        sizes = np.zeros(len(v) + 1) if row.sizes is None else weights @ row.sizes
        value = float(weights @ row.log_density)
        G = np.asarray(inverse.sum())
        return RowSums(value, P.sum(axis=1), second, used, G, scales, sizes), inverse

    return work


def by_kernel(model: RowModel) -> RowWork:
    """Return what weighs rows of L components, 0 < L < K, by compiled code."""
    from appca.models.variants import mixture_kernels

    L, K, u = int(model.sizes), len(model.latent), model.grid
    J, sign = (L, 1.0) if 2 * L <= K else (K - L, -1.0)
    offset, supports = 0.5 * np.log1p(model.latent / model.noise), gaussian.log_binomial(K, L)
    q = np.array([slope(model), offset, *gaussian.posterior(model.noise, model.latent)])
    least = np.sort(offset)
    costs = least[:L].sum()
    how = np.array([sign, costs, supports + least[K - L :].sum() - costs + NEGLIGIBLE])
    nothing = background(np.zeros(1), model)[0] + np.log(model.weights) - supports
    scales = np.array([u, nothing, 1.0 / (2.0 * u * model.noise)])
    table = np.zeros((K + 1, J + 2))
    table[0, 1] = 1.0
    room = table, np.empty((len(u), K)), np.empty((2, len(u))), np.empty((5, K + 1))
    sizes = np.zeros(K + 1)

    def work(P: Array, squares: Array, weights: Array) -> tuple[RowSums, Array]:
        out = np.zeros((2, K)), np.zeros(len(u)), np.empty(len(squares))
        value = mixture_kernels.weigh(
            P, squares.astype(np.float64), weights, q, scales, how, out, room
        )
        (second, used), by_scale, inverse = out
        sums = RowSums(
            value, P.sum(axis=1), second, used, np.asarray(inverse.sum()), by_scale, sizes
        )
        return sums, inverse

    return work


def squared_distances(block: Block, m: Array, weights: Array) -> Array:
    """Weighted squares (n,) of rows about origin + m: sum over features of w_d (y - o - m)_d^2."""
    out, X = np.empty(len(block.X)), block.X
    about = m if block.origin is None else block.origin + m
    for part, B in tiles(X, about.astype(X.dtype)):
        out[part] = np.square(B) @ weights.astype(X.dtype)
    return out


def feature_powers(rows: Observations) -> Array:
    """Sum (y - origin)_d^2 and (y - origin)_d^4 over rows, (2, d)."""

    def powers(block: Block) -> Array:
        out = np.zeros((2, rows.d))
        weights = np.ones(len(block.X)) if block.weights is None else block.weights
        for part, B in tiles(block.X, block.origin):
            squares = np.square(B)
            out[0] += weights[part].astype(B.dtype) @ squares
            out[1] += weights[part] @ np.square(squares, dtype=np.float64)
        return out

    return rows.summed(powers, np.zeros((2, rows.d)))
