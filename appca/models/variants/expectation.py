"""The E step of the variants, over a few rows at a time: all is asked of them while in cache."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np

from appca.models.algebra import aligned, gaussian
from appca.models.algebra.gaussian import Array
from appca.models.rows.observations import Block, Observations, added, tile_rows, tiles
from appca.models.rows.shifted_sparse import dense
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


class RowWork(Protocol):
    """Weighs the scales and supports of rows, some at a time, and adds up what they say."""

    def __call__(self, P: Array, squares: Array, weights: Array) -> Array:
        """Return E[1 / u] (n,) times the weights (n,) of rows, from their squared distances (n,).

        Projections P (K, n) are overwritten by E[x z / u] times the weight.
        """

    def sums(self) -> RowSums:
        """Return the sums over all rows so far."""


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
    directions = scale[:, None] * V
    about = m if block.origin is None else block.origin + m
    centre = about.astype(X.dtype)
    thin, rest = (
        ThinProducts(directions, scale if moving else None, X),
        (about - centre) @ directions,
    )
    weights = np.ones(len(X)) if block.weights is None else block.weights
    A, power = np.zeros((K + 1, d)), np.zeros(d)
    for part, B, squares in thin.tiles(X, centre):
        P = thin.project(B)
        P -= rest[:, None]
        inverse = work(P, squares, weights[part])
        A += thin.outer(P, inverse, B)
        if moving:
            power += thin.power(inverse, B)
    row = work.sums()
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
    """Products of a few rows of X with a few directions (d, K), compiled where that is faster.

    Squares are weighted by those of `scale` (d,), where it is given.
    """

    def __init__(self, directions: Array, scale: Array | None, X: Array) -> None:
        from appca.models.algebra import product_kernels as kernels

        self._kernels = kernels if kernels.suits(X.dtype, *directions.shape) else None
        self._quad = kernels.QUAD if self._kernels else 1
        (d, K), size = directions.shape, tile_rows(X)
        self._K, self._W = K, aligned.zeros((-(-K // self._quad) * self._quad, d), X.dtype)
        self._W[:K] = directions.T
        self._squared = None if scale is None else np.square(scale).astype(X.dtype)
        self._room = np.empty((0 if scale is None or self._kernels else size, d), X.dtype)

    def tiles(self, X: Array, centre: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield a few rows about a centre (d,) at a time, and their weighted squares (n,)."""
        if self._kernels is None or self._squared is None:
            for part, B in tiles(X, centre):
                yield part, B, self._squares(B)
            return
        size = tile_rows(X)
        place, squares = aligned.zeros((size, X.shape[1]), X.dtype), np.empty(size, X.dtype)
        for start in range(0, len(X), size):
            rows = np.ascontiguousarray(dense(X[start : start + size])).view()
            rows.flags.writeable = False  # whether the data are or not: one kernel serves both
            self._kernels.centre(rows, centre, self._squared, place, squares)
            yield slice(start, start + len(rows)), place[: len(rows)], squares[: len(rows)]

    def _squares(self, B: Array) -> Array:
        if self._squared is None:
            return np.zeros(len(B))
        weighted: Array = np.square(B, out=self._room[: len(B)]) @ self._squared
        return weighted

    def project(self, B: Array) -> Array:
        """Return projections (K, n) float64 of rows B (n, d)."""
        if self._kernels is None:
            return (self._W @ B.T).astype(np.float64)
        P = np.empty((len(self._W), len(B)))
        self._kernels.project(B, self._W, P)
        return P[: self._K]

    def outer(self, S: Array, last: Array, B: Array) -> Array:
        """Sum S (K, n) and, in the last line, `last` (n,) times rows B: (K + 1, d)."""
        K, quad = self._K, self._quad
        both = np.zeros((K + 1 + (K + 1) % 2, -(-len(B) // quad) * quad), B.dtype)
        both[:K, : len(B)], both[K, : len(B)] = S, last
        if self._kernels is None:
            return both[: K + 1] @ B
        A: Array = np.zeros((len(both), B.shape[1]), B.dtype)
        self._kernels.add_outer(B, both, A)
        return A[: K + 1]

    def power(self, last: Array, B: Array) -> Array:
        """Sum `last` (n,) times squares of the rows B of the tile at hand, (d,)."""
        if self._kernels is None:
            return np.asarray(last.astype(B.dtype) @ self._room[: len(B)])
        weights = np.zeros(-(-len(B) // self._quad) * self._quad, B.dtype)
        weights[: len(B)], power = last, np.zeros(B.shape[1], B.dtype)
        self._kernels.add_squares(B, weights, power)
        return power


class ByNumpy:
    """Weighs rows of any variant."""

    def __init__(self, model: RowModel) -> None:
        self._model, self._sums = model, list[RowSums]()
        self._shrink, self._v = gaussian.posterior(model.noise, model.latent)

    def __call__(self, P: Array, squares: Array, weights: Array) -> Array:
        """See `RowWork`."""
        row, m = weighed(P.T, squares, self._model), self._shrink[:, None] * P
        P[:] = row.by_scale.T * m * weights
        used, scales = weights @ row.inclusion, weights @ row.scales
        inverse = weights * (row.scales @ (1.0 / self._model.grid))
        second = np.einsum("kn,kn->k", P, m) + used * self._v
        sizes = np.zeros(len(m) + 1) if row.sizes is None else weights @ row.sizes
        value, G = float(weights @ row.log_density), np.asarray(inverse.sum())
        self._sums.append(RowSums(value, P.sum(axis=1), second, used, G, scales, sizes))
        return np.asarray(inverse)

    def sums(self) -> RowSums:
        """See `RowWork`."""
        return reduce(added, self._sums)


class ByKernel:
    """Weighs rows of L components, 0 < L < K, by compiled code."""

    def __init__(self, model: RowModel) -> None:
        L, K, u = int(np.asarray(model.sizes)), len(model.latent), model.grid
        J, sign = (L, 1.0) if 2 * L <= K else (K - L, -1.0)
        offset, supports = 0.5 * np.log1p(model.latent / model.noise), gaussian.log_binomial(K, L)
        posterior = gaussian.posterior(model.noise, model.latent)
        least = np.sort(offset)
        costs = least[:L].sum()
        gap = supports + least[K - L :].sum() - costs + NEGLIGIBLE
        nothing = background(np.zeros(1), model)[0] + np.log(model.weights) - supports
        scales = np.array([u, nothing, 1.0 / (2.0 * u * model.noise)])
        q = np.array([slope(model), offset, *posterior])
        self._fixed = q, scales, np.array([sign, costs, gap])
        table = np.zeros((K + 1, J + 2))
        table[0, 1] = 1.0
        self._room = table, np.empty((len(u), K)), np.empty((2, len(u))), np.empty((5, K + 1))
        self._moments, self._scales, self._value = np.zeros((3, K)), np.zeros(len(u)), 0.0

    def __call__(self, P: Array, squares: Array, weights: Array) -> Array:
        """See `RowWork`."""
        from appca.models.variants.mixture_kernels import weigh

        inverse = np.empty(len(squares))
        out = self._moments, self._scales, inverse
        squares = squares.astype(np.float64)
        self._value += weigh(P, squares, weights, *self._fixed, out, self._room)
        return inverse

    def sums(self) -> RowSums:
        """See `RowWork`."""
        second, used, s = self._moments
        inverse, sizes = np.asarray(self._scales @ (1.0 / self._fixed[1][0])), np.zeros(len(s) + 1)
        return RowSums(self._value, s, second, used, inverse, self._scales, sizes)


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
