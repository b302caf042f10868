"""Features that have an order, such as times or wavelengths, seen from their names and values."""

import re
from collections.abc import Sequence

import numpy as np

from appca.data.pixels import likely_shapes

LEAST_FEATURES = 12
_JUDGED = 48  # rows
_SMOOTH = 0.5  # mean difference of neighbours against that of any two features
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def in_order(X: np.ndarray, names: Sequence[str] | None, stated: bool | None) -> bool:
    """Whether the columns of rows (N, D) follow each other; what was `stated` is believed."""
    if stated is not None:
        return bool(stated)
    return places_of(names, X.shape[1]) is not None and is_smooth(X)


def places_of(names: Sequence[str] | None, n_features: int) -> np.ndarray | None:
    """Return the numbers (D,) in names such as “400 nm”; None where they are not in order."""
    if names is None:
        return np.arange(n_features, dtype=float)
    rests = {_NUMBER.sub("", name, count=1) for name in names}
    numbers = [_NUMBER.search(name) for name in names]
    if len(rests) > 1 or not all(numbers):
        return None
    places = np.array([float(number[0]) for number in numbers if number])
    steps = np.diff(places)
    return places if (steps > 0).all() or (steps < 0).all() else None


def is_smooth(X: np.ndarray) -> bool:
    """Whether neighbouring columns of rows (N, D) differ little, as along a curve.

    Rows that are likely to be images have neighbours in two directions and are none.
    """
    n_features = X.shape[1]
    if n_features < LEAST_FEATURES:
        return False
    some = np.asarray(X[:: max(1, len(X) // _JUDGED)], np.float64)
    mixed = some[:, np.random.default_rng(0).permutation(n_features)]
    near, any_two = (float(np.abs(np.diff(rows, axis=1)).mean()) for rows in (some, mixed))
    shapes = likely_shapes(X) if near < _SMOOTH * any_two else []
    return near < _SMOOTH * any_two and not (shapes and shapes[0].is_likely)
