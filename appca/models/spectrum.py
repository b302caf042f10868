"""Principal directions from whichever of D x D and N x N is smaller."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.random import Generator

from appca.models.numerics import Array
from appca.models.rows import Block, Observations, Rows, project, tiles, transposed_product
from appca.models.sparse_rows import ShiftedSparse
from appca.models.stiefel import polar, upright

GRAM_RESOLUTION = 1e-13  # share of the largest eigenvalue below which others are rounding
DENSE_LIMIT = 3000  # an eigenproblem of this size takes seconds
MAX_SUBSPACE_ITERATIONS = 100
SKETCHED_SHARE, SKETCH_ITERATIONS, SKETCH_TOL = 5, 4, 1e-4  # times narrower than the data


class Principal(NamedTuple):
    """Leading principal directions about the origin."""

    values: Array  # (q,) second moments along them, descending: eigenvalues of sum y y' / N
    V: Array  # (d, q) orthonormal float64


class Coordinates(NamedTuple):
    """Rows in the first directions of an orthonormal basis; basis @ W leads back."""

    rows: Rows
    basis: Array  # (d, q) float64


class Thin(NamedTuple):
    """Rows as coordinates in their own row space, and the way back."""

    rows: Rows  # X is (N, r), r <= N, columns by descending variance
    duals: Array  # (N, r) with directions = (Y - origin)' duals


def covariance(rows: Observations) -> Array:
    """Sum of y y' / N about the origin, (d, d), products in the data's dtype, sums in float64."""
    return rows.summed(_products, np.zeros((rows.d, rows.d))) / rows.mass


def _products(block: Block) -> Array:
    if isinstance(block.X, ShiftedSparse):
        return (block.X if block.origin is None else block.X - block.origin).products()
    if block.origin is None:
        return block.X.T @ block.X
    C = np.zeros((len(block.origin),) * 2, block.X.dtype)
    part = np.empty_like(C)
    for _, B in tiles(block.X, block.origin):
        C += np.matmul(B.T, B, out=part)
    return C


def gram(rows: Rows) -> Array:
    """Inner products (N, N) of the rows about the origin, in float64, by blocks of columns."""
    if isinstance(rows.X, ShiftedSparse):
        return (rows.X if rows.origin is None else rows.X - rows.origin).gram()
    n, d = rows.X.shape
    G = np.zeros((n, n))
    for start in range(0, d, 512):
        B = rows.X[:, start : start + 512].astype(np.float64)
        if rows.origin is not None:
            B -= rows.origin[start : start + 512]
        G += B @ B.T
    return G


def principal(rng: Generator, rows: Observations, q: int) -> Principal:
    """Find the q leading principal directions, largest entries positive; wide data need `rng`."""
    if isinstance(rows, Rows) and rows.weights is not None:
        axes = principal(rng, _scaled(rows, rows.weights), q)
        return axes._replace(values=axes.values * (rows.n / rows.mass))
    n, d = rows.n, rows.d
    if d <= n and d <= DENSE_LIMIT:
        values, V = _leading(covariance(rows), q)
        return Principal(np.maximum(values, 0.0), upright(V))
    if min(n, d) > DENSE_LIMIT or not isinstance(rows, Rows):
        return iterated(rng, rows, q)
    values, U = _leading(gram(rows), q)
    values = np.maximum(values, 0.0)
    # Directions Y'u / |Y'u| lose their orthogonality as eigenvalues vanish.
    least = max(GRAM_RESOLUTION * values[0], np.finfo(np.float64).tiny)
    V = transposed_product(rows, U) / np.sqrt(np.maximum(values, least))
    return Principal(values / n, upright(polar(V)))


def sketched(rng: Generator, rows: Observations, q: int) -> Array:
    """Find q orthonormal directions (d, q) that hold nearly the variance of the leading ones."""
    if isinstance(rows, Rows) and rows.weights is not None:
        return sketched(rng, _scaled(rows, rows.weights), q)
    if min(rows.n, rows.d) > DENSE_LIMIT:
        return upright(iterated(rng, rows, q, SKETCH_TOL).V)
    width, least = q + max(q // 4, 10), min(rows.n, DENSE_LIMIT)
    if not SKETCHED_SHARE * width < rows.d <= least:
        return principal(rng, rows, q).V
    C = covariance(rows)
    C = (C / np.trace(C)).astype(rows.dtype)
    V = rng.standard_normal((rows.d, width)).astype(C.dtype)
    for _ in range(SKETCH_ITERATIONS):
        V = np.linalg.qr(C @ V)[0]
    turn = np.linalg.eigh(V.T @ (C @ V))[1][:, ::-1]
    return upright(np.linalg.qr((V @ turn[:, :q]).astype(np.float64))[0])


def _scaled(rows: Rows, weights: Array) -> Rows:
    """Rows about their origin times the root of their weights."""
    root = np.sqrt(weights)
    X = rows.X if rows.origin is None else rows.X - rows.origin
    X = X.scaled(root) if isinstance(X, ShiftedSparse) else X * root[:, None]
    return Rows(X.astype(rows.dtype, copy=False), None, rows.squares * weights, rows.n_features)


def iterated(rng: Generator, rows: Observations, q: int, tol: float = 1e-10) -> Principal:
    """Find leading directions by V <- orth(Y'Y V) until eigenvalues change by less than `tol`."""
    n, d = rows.n, rows.d
    width = min(q + max(q // 2, 10), n, d)
    V = np.linalg.qr(rng.standard_normal((d, width)))[0]
    values = np.zeros(q)
    for _ in range(MAX_SUBSPACE_ITERATIONS):
        before = values

        def there_and_back(block: Block, V: Array = V) -> Array:
            return block.transposed_times(block.times(V))

        YV = rows.summed(there_and_back, np.zeros(V.shape))
        U, singular, _ = np.linalg.svd(YV, full_matrices=False)
        values, V = singular[:q] / n, U
        if np.all(np.abs(values - before) <= tol * values[0]):
            break
    return Principal(values, V[:, :q])


def thin(rows: Rows) -> Thin:
    """Coordinates of N < D rows in their row space, which EM never leaves: Y V = U S."""
    # The transpose, which is the same, is in the order of LAPACK: no copy is made.
    weights = np.ones(1) if rows.weights is None else np.sqrt(rows.weights)[:, None]
    products = gram(rows if rows.weights is None else _scaled(rows, rows.weights))
    values, U = scipy.linalg.eigh(products.T, overwrite_a=True, driver="evr")
    values, U = values[::-1], U[:, ::-1]
    r = max(int(np.sum(values > GRAM_RESOLUTION * values[0])), 1)
    root = np.sqrt(values[:r])
    coordinates = np.empty((rows.n, r), rows.dtype, order="F")
    np.multiply(U[:, :r], root / weights, out=coordinates, casting="same_kind")
    thinned = Rows(coordinates, None, rows.squares, rows.n_features, weights=rows.weights)
    return Thin(thinned, weights * U[:, :r] / root)


def lift(W: Array, space: Thin, rows: Observations) -> Array:
    """Directions (D, K) in the features of `rows` from their thin coordinates (r, K)."""
    return polar(transposed_product(rows, space.duals @ W))


def lower(W: Array, space: Thin, rows: Observations) -> Array:
    """Thin coordinates (r, K) of directions W (D, K); what lies outside the row space is lost."""
    return np.asarray(space.duals.T @ project(rows, W))


def _leading(C: Array, q: int) -> tuple[Array, Array]:
    n = len(C)
    values, V = scipy.linalg.eigh(C.T, subset_by_index=[n - q, n - 1], overwrite_a=True)
    return values[::-1], np.ascontiguousarray(V[:, ::-1])
