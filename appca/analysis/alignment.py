"""Draws of components brought into one order and sign before anything is said about a component.

The likelihood does not know which component is which, nor its sign, so chains and even draws may
differ in both. Matching by absolute cosine (Hungarian) to a reference draw undoes that.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Aligned", "align", "match"]

Floats = NDArray[np.float64]


class Aligned(NamedTuple):
    """Draws in the order and with the signs of a reference."""

    components: Floats  # (chain, draw, K, D)
    order: NDArray[np.intp]  # (chain, draw, K) which component of the draw came to each place
    sign: Floats  # (chain, draw, K)
    cosine: Floats  # (chain, draw, K) absolute cosine to the reference; 0 for an unused component


def match(components: ArrayLike, reference: ArrayLike) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Match components (K, D) to a reference (K', D), K' at most K.

    Returns
    -------
    order (K',), sign (K',), absolute cosine (K',)
    """
    from scipy.optimize import linear_sum_assignment

    similarity = _unit(np.asarray(reference)) @ _unit(np.asarray(components)).T
    order = linear_sum_assignment(-np.abs(similarity))[1]
    cosine = similarity[np.arange(len(order)), order]
    return order, np.where(cosine < 0, -1.0, 1.0), np.abs(cosine)


def align(components: ArrayLike, reference: ArrayLike | None = None) -> Aligned:
    """Align draws (chain, draw, K, D); the reference is the last draw of the first chain."""
    draws = np.asarray(components, dtype=np.float64)
    to = draws[0, -1] if reference is None else np.asarray(reference, dtype=np.float64)
    if draws.ndim != 4 or to.shape != draws.shape[2:]:
        msg = (
            "components must have the axes (chain, draw, K, D) and the reference (K, D); "
            f"got {draws.shape} and {to.shape}."
        )
        raise ValueError(msg)
    shape = draws.shape[:3]
    order, sign, cosine = np.empty(shape, np.intp), np.empty(shape), np.empty(shape)
    for place in np.ndindex(*shape[:2]):
        order[place], sign[place], cosine[place] = match(draws[place], to)
    moved = np.take_along_axis(draws, order[..., None], axis=2) * sign[..., None]
    return Aligned(moved, order, sign, cosine)


def _unit(W: Floats) -> Floats:
    """Rows at length one; a row of zeros stays."""
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    return np.asarray(W / np.where(norms > 0, norms, 1.0))
