"""The arrays of a fit with its components in another order, some of them with flipped signs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

POSTERIOR, DRAWS = "posterior_", "draws_"  # prefixes of draws: all, and those for queries
_OF_MODEL = ("components", "latent_variance", "explained_variance", "scale", "weights")
_DRAWN = (*_OF_MODEL, "Z_mean", "X_mean")
# The axis of the components.
_AXES = (
    dict.fromkeys(_OF_MODEL, 0)
    | dict.fromkeys(("scores", "active", "inclusion"), 1)
    | {DRAWS + name: 1 for name in _DRAWN}
    | {POSTERIOR + name: 2 for name in _DRAWN}
)
_TURNED = {
    "components",
    "scores",
    *(p + n for p in (DRAWS, POSTERIOR) for n in ("components", "X_mean")),
}


def arranged(
    arrays: Mapping[str, NDArray[Any]], order: Sequence[int], signs: Sequence[int]
) -> dict[str, NDArray[Any]]:
    """Return the arrays with component ``order[j]`` in place j, turned where ``signs[j]`` is -1.

    Draws may have more components than the fit; the further ones stay in their places.
    """
    K, turned = len(order), np.flatnonzero(np.asarray(signs) == -1)
    result = dict(arrays)
    for name, values in arrays.items():
        axis = _AXES.get(name, values.ndim)
        if values.ndim <= axis or values.shape[axis] < K:
            continue
        result[name] = moved = values.take([*order, *range(K, values.shape[axis])], axis)
        if name in _TURNED and len(turned):
            place = (slice(None),) * axis + (turned,)
            moved[place] = 0 - moved[place]  # no -0.0 where a component is not used
    return result
