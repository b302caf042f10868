"""Orthonormal D x K matrices: polar factor, Pymanopt, and draws from exp(tr F'W).

The posterior of W in adaptive PPCA is a matrix von Mises-Fisher distribution. A sweep of `draw`
redraws every column given the others (Hoff 2009, with the cosine by Wood 1994), then every pair of
columns within its plane, because columns alone rotate slowly and cannot at D = K.
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, i0e

from appca.words import naming_extra

Floats = NDArray[np.float64]
Columns = NDArray[np.intp]

TIE = 1e-4  # share of the largest entry of a column
WELL_CONDITIONED = 1e-6  # squared singular values, the least over the largest


def polar(A: ArrayLike, previous: ArrayLike | None = None) -> Floats:
    """Orthonormal W (D, K) of largest tr(W'A): the polar factor U V' of the thin SVD A = U S V'.

    Of rank-deficient A the maximiser nearest to `previous` is taken. ValueError unless A is finite
    and has at least as many rows as columns.
    """
    A = np.asarray(A, dtype=np.float64)
    _check_shape(A)
    with np.errstate(over="ignore", invalid="ignore"):
        G = A.T @ A
    if np.isfinite(G).all():  # half the time of singular values, where no digits are lost
        squares, V = np.linalg.eigh(G)
        if squares[0] > WELL_CONDITIONED * squares[-1]:
            W = A @ ((V / np.sqrt(squares)) @ V.T)
            return np.asarray(1.5 * W - 0.5 * (W @ (W.T @ W)))  # orthonormal to rounding
    _check(A)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    rank = int((s > s[0] * max(A.shape) * np.finfo(np.float64).eps).sum())
    if previous is None or rank == A.shape[1]:
        return np.asarray(U @ Vt)
    W = np.asarray(previous, dtype=np.float64)
    basis, free = U[:, :rank], W @ Vt[rank:].T
    free = free - basis @ (basis.T @ free)
    # The two blocks are orthogonal, so the polar factor of both leaves the first as it is.
    U, _, Qt = np.linalg.svd(np.hstack([basis, free]), full_matrices=False)
    return np.asarray(U @ Qt @ Vt)


def upright(W: NDArray[Any]) -> NDArray[Any]:
    """Turn the columns of W (D, K) so that the largest entry of each is positive."""
    size = np.abs(W)
    first = np.argmax(size >= (1.0 - TIE) * size.max(axis=0), axis=0)
    largest = W[first, np.arange(W.shape[1])]
    return np.asarray(W * np.where(largest < 0.0, -1.0, 1.0))


def maximise(A: ArrayLike, start: ArrayLike) -> Floats:
    """Maximise tr(W'A) over W (D, K) by Pymanopt's conjugate gradients, as in appendix C."""
    before = np.random.get_state()  # noqa: NPY002 - the first import brings backends that seed it
    with naming_extra():
        import pymanopt
        from pymanopt.manifolds import Stiefel
        from pymanopt.optimizers import ConjugateGradient

    np.random.set_state(before)  # noqa: NPY002
    A, W = np.asarray(A, dtype=np.float64), np.asarray(start, dtype=np.float64)
    _check(A)
    size = np.linalg.norm(A)
    if size == 0.0:
        return W.copy()
    manifold, descent = Stiefel(*A.shape), -A / size  # so that tolerances do not depend on the unit
    on_manifold = pymanopt.function.numpy(manifold)
    cost = on_manifold(lambda point: float(np.vdot(descent, point)))
    gradient = on_manifold(lambda _: descent)
    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient)
    optimizer = ConjugateGradient(
        verbosity=0, max_iterations=1000, min_gradient_norm=1e-9, min_step_size=1e-14
    )
    # Without a starting point Pymanopt would take one from NumPy's global generator.
    return np.asarray(optimizer.run(problem, initial_point=W).point)


def random(rng: Generator, n_rows: int, n_columns: int) -> Floats:
    """Draw from the uniform (Haar) distribution of orthonormal n_rows x n_columns matrices."""
    Q, R = np.linalg.qr(rng.standard_normal((n_rows, n_columns)))
    # LAPACK's signs depend on the data; a positive diagonal of R makes the factor unique.
    return np.asarray(Q * np.where(np.diag(R) < 0, -1.0, 1.0))


def draw(rng: Generator, F: ArrayLike, W: ArrayLike) -> Floats:
    """Make a sweep over columns of W and then pairs, which leaves exp(tr F'W) invariant."""
    F, W = np.asarray(F, dtype=np.float64, order="F"), np.asarray(W, dtype=np.float64, order="F")
    _check(F)
    # Columns come first: each is made orthogonal anew, so rounding does not add up over a chain.
    return draw_pairs(rng, F, draw_columns(rng, F, W))


def draw_columns(rng: Generator, F: Floats, W: Floats) -> Floats:
    """Draw each column of W given the others, in turn."""
    W = np.array(W, order="F")
    for k in range(W.shape[1]):
        W[:, k] = 0.0  # with a zero in its place W projects on the other columns
        W[:, k] = _draw_column(rng, _without(W, F[:, k]), W)
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
    """Parameters p, q (2, m) of columns (i, j) in their plane, the others held.

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
        # Each branch weighs 2 pi I0(radius), the integral of its density over the angle.
        log_odds = np.log(i0e(r_rotation)) - np.log(i0e(r_reflection)) + r_rotation - r_reflection
        turned = rng.random(len(i)) < expit(log_odds)
        p, q = np.where(turned, rotation, reflection)
        angle = np.arctan2(q, p) + rng.vonmises(0.0, np.hypot(p, q))
        a, b, c, s = w[i], w[j], np.cos(angle)[:, None], np.sin(angle)[:, None]
        w[i] = a * c + b * s
        w[j] = np.where(turned, 1.0, -1.0)[:, None] * (b * c - a * s)
    return np.asarray((turn.T @ W.T).T)


def _check(A: Floats) -> None:
    _check_shape(A)
    if not np.isfinite(A).all():
        msg = "A must be finite; got NaN or infinite entries: look for them in the data."
        raise ValueError(msg)


def _check_shape(A: Floats) -> None:
    if A.ndim != 2 or A.shape[0] < A.shape[1] or not A.shape[1]:
        msg = (
            "A must be a matrix with at least one column and at least as many rows as columns; "
            f"got shape {A.shape}."
        )
        raise ValueError(msg)


def _without(others: Floats, x: Floats) -> Floats:
    x = x - others @ (others.T @ x)
    return np.asarray(x - others @ (others.T @ x))  # once leaves rounding errors of the size of x


def _unit(x: Floats) -> Floats:
    return np.asarray(x / math.sqrt(x @ x))


def _draw_column(rng: Generator, f: Floats, others: Floats) -> Floats:
    """Von Mises-Fisher draw with parameter f on the unit sphere orthogonal to ``others``."""
    kappa, dimension = math.sqrt(f @ f), len(f) - others.shape[1] + 1
    anywhere = _unit(_without(others, rng.standard_normal(len(f))))
    if dimension == 1:  # two points are left
        return anywhere if rng.random() < expit(2 * (f @ anywhere)) else -anywhere
    if kappa == 0.0:
        return anywhere
    mean = f / kappa
    sideways = _unit(anywhere - mean * (mean @ anywhere))
    gap = draw_cosine_gap(rng, kappa, dimension)
    return _unit(_without(others, (1 - gap) * mean + math.sqrt(gap * (2 - gap)) * sideways))


@functools.cache
def _rounds(n_columns: int) -> tuple[tuple[Columns, Columns], ...]:
    """All pairs of columns in rounds of disjoint pairs: one sits, the others move round."""
    seats = list(range(n_columns + n_columns % 2))  # odd K: who meets the extra seat rests
    rounds = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        pairs = zip(seats[:half], reversed(seats[half:]), strict=True)
        playing = [pair for pair in pairs if max(pair) < n_columns]
        i, j = np.array(playing, dtype=np.intp).reshape(-1, 2).T
        rounds.append((i, j))
        seats.insert(1, seats.pop())
    return tuple(rounds)
