"""Where clusterwise methods start; nothing depends on the order of rows or on how they repeat."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MOST_STEPS = 50


def weighted_axes(Y: Array, w: Array, n_axes: int) -> tuple[Array, Array, Array]:
    """Mean (D,), all variances (D,) and the leading axes (D, at most n_axes) of weighted rows.

    From whichever of D x D and n x n is smaller; axes without rows are zero.
    """
    mean, D = w @ Y / w.sum(), Y.shape[1]
    some = w > 0
    B = (Y[some] - mean) * np.sqrt(w[some] / w.sum())[:, None]
    if len(B) < D:
        squares, U = np.linalg.eigh(B @ B.T)
        values, V = np.zeros(D), np.zeros((D, min(n_axes, D)))
        values[-len(B) :] = np.maximum(squares, 0.0)
        U = U[:, ::-1][:, :n_axes]
        root = np.sqrt(np.maximum(squares[::-1][: U.shape[1]], 0.0))
        far = root > 1e-7 * root[0]
        V[:, : len(root)][:, far] = B.T @ (U[:, far] / root[far])
    else:
        values, V = np.linalg.eigh(B.T @ B)
        V = V[:, ::-1][:, :n_axes]
    signs = np.where(V[np.abs(V).argmax(axis=0), range(V.shape[1])] < 0.0, -1.0, 1.0)
    return mean, values[::-1], V * signs


def first_pieces(rng: Any, Y: Array, w: Array, n_pieces: int) -> NDArray[np.intp]:
    """Piece (N,) of every row: k-means from centres drawn like rows of a normal."""
    axes = min(Y.shape[1], max(2, n_pieces))
    mean, values, V = weighted_axes(Y, w, axes)
    spread = np.sqrt(np.maximum(values[:axes], 0.0))
    centres = mean + (rng.standard_normal((n_pieces, axes)) * spread) @ V.T
    pieces = np.zeros(len(Y), np.intp)
    for _ in range(MOST_STEPS):
        before = pieces
        pieces = (np.square(centres).sum(axis=1) - 2.0 * Y @ centres.T).argmin(axis=1)
        if (pieces == before).all():
            break
        for k in range(n_pieces):
            mass = w * (pieces == k)
            if mass.sum() > 0:
                centres[k] = mass @ Y / mass.sum()
    return pieces
