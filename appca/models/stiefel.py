"""Orthonormal D x K matrices: polar factor, Pymanopt, draws from exp(tr F'W), leading directions.

The posterior of W in adaptive PPCA is a matrix von Mises-Fisher distribution. A sweep of `draw`
redraws every column given the others (Hoff 2009, with the cosine by Wood 1994), then every pair of
columns within its plane, because single columns move slowly, and not at all if D = K.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, i0e

from appca.models.numerics import Array, Floats
from appca.models.rows import Block, Observations, Rows, ShiftedSparse, outer_sum, project, tiles
from appca.words import naming_extra

Columns = NDArray[np.intp]

TIE = 1e-4  # tolerance relative to the largest entry of a column
WELL_CONDITIONED = 1e-6  # minimum ratio of the smallest to the largest squared singular value


def polar(A: ArrayLike, previous: ArrayLike | None = None) -> Floats:
    """Return the orthonormal W (D, K) that maximizes tr(W'A): U V' of the thin SVD A = U S V'.

    If A is rank-deficient, the maximizer nearest to `previous` is chosen. ValueError unless A is
    finite and has at least as many rows as columns.
    """
    A = _checked(A)
    with np.errstate(over="ignore", invalid="ignore"):
        G = A.T @ A
    if np.isfinite(G).all():  # twice as fast as an SVD, if no digits are lost
        squares, V = np.linalg.eigh(G)
        if squares[0] > WELL_CONDITIONED * squares[-1]:
            W = A @ ((V / np.sqrt(squares)) @ V.T)
            return np.asarray(1.5 * W - 0.5 * (W @ (W.T @ W)))  # orthonormal to rounding
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    rank = int((s > s[0] * max(A.shape) * np.finfo(np.float64).eps).sum())
    if previous is None or rank == A.shape[1]:
        return np.asarray(U @ Vt)
    W = np.asarray(previous, dtype=np.float64)
    basis, free = U[:, :rank], W @ Vt[rank:].T
    free = free - basis @ (basis.T @ free)
    # The two blocks are orthogonal, so the polar factor of both does not change the first.
    U, _, Qt = np.linalg.svd(np.hstack([basis, free]), full_matrices=False)
    return np.asarray(U @ Qt @ Vt)


def upright(W: NDArray[Any]) -> NDArray[Any]:
    """Flip columns of W (D, K) so that the largest entry of each is positive."""
    size = np.abs(W)
    largest = W[np.argmax(size >= (1.0 - TIE) * size.max(axis=0), axis=0), np.arange(W.shape[1])]
    return np.asarray(W * np.where(largest < 0.0, -1.0, 1.0))


def maximise(A: ArrayLike, start: ArrayLike) -> Floats:
    """Maximize tr(W'A) over W (D, K) by Pymanopt's conjugate gradients, as in appendix C."""
    before = np.random.get_state()  # noqa: NPY002 - the first import brings backends that seed it
    with naming_extra():
        import pymanopt
        from pymanopt.manifolds import Stiefel
        from pymanopt.optimizers import ConjugateGradient

    np.random.set_state(before)  # noqa: NPY002
    A, W = _checked(A), np.asarray(start, dtype=np.float64)
    size = np.linalg.norm(A)
    if size == 0.0:
        return W.copy()
    manifold, descent = Stiefel(*A.shape), -A / size  # so that tolerances do not depend on units
    on_manifold = pymanopt.function.numpy(manifold)
    cost = on_manifold(lambda point: float(np.vdot(descent, point)))
    gradient = on_manifold(lambda _: descent)
    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient)
    optimizer = ConjugateGradient(
        verbosity=0, max_iterations=1000, min_gradient_norm=1e-9, min_step_size=1e-14
    )
    # By default, Pymanopt draws the starting point from NumPy's global generator.
    return np.asarray(optimizer.run(problem, initial_point=W).point)


def random(rng: Generator, n_rows: int, n_columns: int) -> Floats:
    """Draw from the uniform (Haar) distribution of orthonormal n_rows x n_columns matrices."""
    Q, R = np.linalg.qr(rng.standard_normal((n_rows, n_columns)))
    # LAPACK's signs depend on the data; a positive diagonal of R makes the factor unique.
    return np.asarray(Q * np.where(np.diag(R) < 0, -1.0, 1.0))


def draw(rng: Generator, F: ArrayLike, W: ArrayLike) -> Floats:
    """Sweep over the columns of W, then over pairs; this leaves exp(tr F'W) invariant."""
    F = np.asfortranarray(_checked(F))
    # Columns come first: they are orthogonalized again, so rounding does not accumulate.
    return draw_pairs(rng, F, draw_columns(rng, F, np.asarray(W, dtype=np.float64)))


def draw_columns(rng: Generator, F: Floats, W: Floats) -> Floats:
    """Draw each column of W given the others: von Mises-Fisher on the sphere orthogonal to them."""
    W, dimension = np.array(W, order="F"), len(W) - W.shape[1] + 1
    for k in range(W.shape[1]):
        W[:, k] = 0.0  # so that W projects on the other columns
        f = _without(W, F[:, k])
        kappa, drawn = math.sqrt(f @ f), _unit(_without(W, rng.standard_normal(len(f))))
        if dimension == 1:  # the sphere is two points
            drawn = drawn if rng.random() < expit(2 * (f @ drawn)) else -drawn
        elif kappa > 0.0:
            mean = f / kappa
            sideways = _unit(drawn - mean * (mean @ drawn))
            gap = draw_cosine_gap(rng, kappa, dimension)
            drawn = (1 - gap) * mean + math.sqrt(gap * (2 - gap)) * sideways
            drawn = _unit(_without(W, drawn))
        W[:, k] = drawn
    return W


def draw_cosine_gap(rng: Generator, kappa: float, dimension: int) -> float:
    """Draw 1 - t of a cosine t with density exp(kappa t) (1 - t^2)^((dimension - 3) / 2)."""
    m = dimension - 1
    b = m / (2 * kappa + math.hypot(2 * kappa, m))
    mode = 2 * b / (1 + b)  # 1 - x0 in Wood's notation
    while True:
        z = rng.beta(m / 2, m / 2)
        gap = 2 * b * z / (1 - (1 - b) * z)
        ratio = (mode + gap - mode * gap) / (mode * (2 - mode))
        if kappa * (mode - gap) + m * math.log(ratio) >= -rng.standard_exponential():
            return min(gap, 2.0)


def pair_parameters(F: Floats, W: Floats, i: Columns, j: Columns) -> tuple[Floats, Floats]:
    """Parameters p, q (2, m) of columns (i, j) in their plane, given the other columns.

    The pair, at angle t, is a rotation ``(a cos t + b sin t, b cos t - a sin t)`` or a reflection
    ``(a cos t + b sin t, a sin t - b cos t)`` with log density ``p cos t + q sin t``.
    """
    a, b, F_i, F_j = W.T[i], W.T[j], F.T[i], F.T[j]
    aF_i, bF_j = np.vecdot(a, F_i), np.vecdot(b, F_j)
    bF_i, aF_j = np.vecdot(b, F_i), np.vecdot(a, F_j)
    return np.array([aF_i + bF_j, bF_i - aF_j]), np.array([aF_i - bF_j, bF_i + aF_j])


def draw_pairs(rng: Generator, F: Floats, W: Floats) -> Floats:
    """Draw each pair of columns of W within its plane, disjoint pairs at once, in K coordinates."""
    F, turn = W.T @ F, np.eye(W.shape[1], order="F")
    w = turn.T  # a view: row k is column k
    for i, j in _rounds(len(turn)):
        rotation, reflection = pair_parameters(F, turn, i, j)
        r_rotation, r_reflection = np.hypot(*rotation), np.hypot(*reflection)
        # Each branch has the weight 2 pi I0(radius), the integral of its density over the angle.
        log_odds = np.log(i0e(r_rotation)) - np.log(i0e(r_reflection)) + r_rotation - r_reflection
        turned = rng.random(len(i)) < expit(log_odds)
        p, q = np.where(turned, rotation, reflection)
        angle = np.arctan2(q, p) + rng.vonmises(0.0, np.hypot(p, q))
        a, b, c, s = w[i], w[j], np.cos(angle)[:, None], np.sin(angle)[:, None]
        w[i] = a * c + b * s
        w[j] = np.where(turned, 1.0, -1.0)[:, None] * (b * c - a * s)
    return np.asarray((turn.T @ W.T).T)


def _checked(A: ArrayLike) -> Floats:
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] < A.shape[1] or not A.shape[1]:
        msg = "A must be a matrix with at least one column and at least as many rows as columns; "
        msg += f"got shape {A.shape}."
        raise ValueError(msg)
    if not np.isfinite(A).all():
        msg = "A must be finite; got NaN or infinite entries: correct the data."
        raise ValueError(msg)
    return A


def _without(others: Floats, x: Floats) -> Floats:
    x = x - others @ (others.T @ x)
    return np.asarray(x - others @ (others.T @ x))  # the second projection removes rounding errors


def _unit(x: Floats) -> Floats:
    return np.asarray(x / math.sqrt(x @ x))


@functools.cache
def _rounds(n_columns: int) -> tuple[tuple[Columns, Columns], ...]:
    """Return all pairs of columns in rounds of disjoint pairs, by rotating all columns but one."""
    seats = list(range(n_columns + n_columns % 2))  # if K is odd, one column rests per round
    rounds = []
    for _ in seats[1:]:
        pairs = zip(seats[: len(seats) // 2], reversed(seats), strict=False)
        playing = [pair for pair in pairs if max(pair) < n_columns]
        i, j = np.array(playing, dtype=np.intp).reshape(-1, 2).T
        rounds.append((i, j))
        seats.insert(1, seats.pop())
    return tuple(rounds)


GRAM_RESOLUTION = 1e-13  # relative to the largest eigenvalue; smaller ones are rounding
DENSE_LIMIT = 3000  # maximum size of a dense eigenproblem, which takes seconds
MAX_SUBSPACE_ITERATIONS = 100
SKETCHED_SHARE, SKETCH_ITERATIONS, SKETCH_TOL = 5, 4, 1e-4  # least ratio of widths first


class Principal(NamedTuple):
    """Leading principal directions about the origin."""

    values: Array  # (q,) second moments along them, descending: eigenvalues of sum y y' / N
    V: Array  # (d, q) orthonormal float64


class Coordinates(NamedTuple):
    """Coordinates of rows in an orthonormal basis; basis @ W converts W back."""

    rows: Rows
    basis: Array  # (d, q) float64


class Thin(NamedTuple):
    """Coordinates of rows in their row space, and the map back."""

    rows: Rows  # X is (N, r), r <= N, columns by descending variance
    duals: Array  # (N, r) with directions = (Y - origin)' duals


def covariance(rows: Observations) -> Array:
    """Sum of y y' / N about the origin, (d, d), products in the data's dtype, sums in float64."""

    def products(block: Block) -> Array:
        if isinstance(block.X, ShiftedSparse):
            return block.centred().products()
        if block.origin is None:
            return block.X.T @ block.X
        C = np.zeros((len(block.origin),) * 2, block.X.dtype)
        part = np.empty_like(C)
        for _, B in tiles(block.X, block.origin):
            C += np.matmul(B.T, B, out=part)
        return C

    return rows.summed(products, np.zeros((rows.d, rows.d))) / rows.mass


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
    """Return the q leading principal directions, largest entries positive; wide data need `rng`."""
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
    V = outer_sum(rows, U) / np.sqrt(np.maximum(values, least))
    return Principal(values / n, upright(polar(V)))


def sketched(rng: Generator, rows: Observations, q: int) -> Array:
    """Return q orthonormal directions (d, q) that have nearly maximal variance."""
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
    """Rows minus their origin, times the root of their weights."""
    root = np.sqrt(weights)
    X = rows.X if rows.origin is None else rows.X - rows.origin
    X = X.scaled(root) if isinstance(X, ShiftedSparse) else X * root[:, None]
    return Rows(X.astype(rows.dtype, copy=False), None, rows.squares * weights, rows.n_features)


def iterated(rng: Generator, rows: Observations, q: int, tol: float = 1e-10) -> Principal:
    """Find leading directions by V <- orth(Y'Y V) until eigenvalues change by less than `tol`."""
    n, d = rows.n, rows.d
    V = np.linalg.qr(rng.standard_normal((d, min(q + max(q // 2, 10), n, d))))[0]
    values = np.zeros(q)
    for _ in range(MAX_SUBSPACE_ITERATIONS):
        before, start = values, np.zeros(V.shape)
        turned = rows.summed(lambda block, V=V: block.transposed_times(block.times(V)), start)  # type: ignore[misc]
        V, singular, _ = np.linalg.svd(turned, full_matrices=False)
        values = singular[:q] / n
        if np.all(np.abs(values - before) <= tol * values[0]):
            break
    return Principal(values, V[:, :q])


def thin(rows: Rows) -> Thin:
    """Return coordinates Y V = U S of N < D rows in their row space, which EM never leaves."""
    # The transpose is equal and in LAPACK's order, which avoids a copy.
    weights = np.ones(1) if rows.weights is None else np.sqrt(rows.weights)[:, None]
    products = gram(rows if rows.weights is None else _scaled(rows, rows.weights))
    values, U = scipy.linalg.eigh(products.T, overwrite_a=True, driver="evr")
    values, U = values[::-1], U[:, ::-1]
    r = max(int(np.sum(values > GRAM_RESOLUTION * values[0])), 1)
    root, coordinates = np.sqrt(values[:r]), np.empty((rows.n, r), rows.dtype, order="F")
    np.multiply(U[:, :r], root / weights, out=coordinates, casting="same_kind")
    thinned = Rows(coordinates, None, rows.squares, rows.n_features, weights=rows.weights)
    return Thin(thinned, weights * U[:, :r] / root)


def lift(W: Array, space: Thin, rows: Observations) -> Array:
    """Directions (D, K) in the features of `rows` from their thin coordinates (r, K)."""
    return polar(outer_sum(rows, space.duals @ W))


def lower(W: Array, space: Thin, rows: Observations) -> Array:
    """Thin coordinates (r, K) of directions W (D, K), without the part outside the row space."""
    return np.asarray(space.duals.T @ project(rows, W))


def _leading(C: Array, q: int) -> tuple[Array, Array]:
    n = len(C)
    values, V = scipy.linalg.eigh(C.T, subset_by_index=[n - q, n - 1], overwrite_a=True)
    return values[::-1], np.ascontiguousarray(V[:, ::-1])
