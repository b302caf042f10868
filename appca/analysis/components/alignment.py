"""Draws of components brought into one order and sign before anything is said about a component.

The likelihood does not know which component is which, nor its sign, so chains and even draws may
differ in both. Matching by absolute cosine (Hungarian) to a reference draw undoes that.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Mean |cos| to the reference. A quarter turn away it is 0; at 0.95 draws lie within some 18 degrees
# of the reference, at 0.8 within some 37.
IDENTIFIED, ROUGHLY = 0.95, 0.8
USUAL = 0.5  # a component that fewer draws than this share have is an exception
MOST_DRAWS = 2000  # of all chains together; more do not sharpen a mean and a deviation to look at


class AlignedDraws(NamedTuple):
    """Components of a reference over aligned draws; a draw that lacks one does not count for it."""

    mean: Floats  # (K, D)
    sd: Floats  # (K, D)
    cosine: Floats  # (K,) mean absolute cosine to the reference, 0 if no draw has the component
    by_chain: Floats  # (chain, K) the same for each chain
    present: Floats  # (K,) share of the draws that have the component


def summarise(
    components: ArrayLike,
    reference: ArrayLike,
    view: Callable[[Floats], ArrayLike] = np.asarray,
) -> AlignedDraws:
    """Average draws (chain, draw, K, D) component by component after aligning them.

    Of very many draws an even selection is used. The reference (K', D), with K' at most K, gives
    order and signs. `view` maps aligned components linearly to what is averaged, such as units of
    the data. Raises ValueError when the axes do not fit.
    """
    from appca.models.sampling.query_draws import match

    draws, to = np.asarray(components), np.asarray(reference, dtype=np.float64)
    if draws.ndim != 4 or to.ndim != 2 or draws.shape[3:] != to.shape[1:]:
        msg = (
            "components must have the axes (chain, draw, K, D) and the reference (K, D); "
            f"got {draws.shape} and {to.shape}."
        )
        raise ValueError(msg)
    draws = draws[:, :: -(-draws.shape[0] * draws.shape[1] // MOST_DRAWS)]
    origin = np.asarray(view(to), dtype=np.float64)  # sums about it lose no digits
    total, squares = np.zeros(origin.shape), np.zeros(origin.shape)
    cosine = np.empty((*draws.shape[:2], len(to)))
    has = np.empty(cosine.shape, dtype=bool)
    for place in np.ndindex(*draws.shape[:2]):
        _, order, sign, cosine[place] = match(to, draws[place])
        moved = draws[place][order] * sign[:, None]
        has[place] = moved.any(axis=1)
        seen = np.where(has[place][:, None], np.asarray(view(moved)) - origin, 0.0)
        total += seen
        squares += np.square(seen)
    count = np.maximum(has.sum(axis=(0, 1)), 1)
    off = total / count[:, None]
    variance = np.maximum(squares / count[:, None] - np.square(off), 0.0)
    return AlignedDraws(
        origin + off,
        np.sqrt(variance),
        cosine.sum(axis=(0, 1)) / count,
        cosine.sum(axis=1) / np.maximum(has.sum(axis=1), 1),
        has.mean(axis=(0, 1)),
    )


def identification(cosine: float, present: float = 1.0) -> str:
    """Say in words how well a component is determined by the data."""
    if present < USUAL:
        return "in few draws"
    if cosine >= IDENTIFIED:
        return "identified"
    return "roughly identified" if cosine >= ROUGHLY else "not identified"
