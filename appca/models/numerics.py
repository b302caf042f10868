"""Arrays aligned for vector instructions; unaligned, the E step takes a fifth longer."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Members = NDArray[np.int64]


def share_of(log_share: Array) -> Array:
    """Return probabilities, given logs that rounding may leave above 0."""
    return np.asarray(np.exp(np.minimum(log_share, 0.0)))


def inverse_or_zero(x: Array) -> Array:
    """Return 1 / x, or 0 if x is 0."""
    return np.asarray(np.divide(1.0, x, out=np.zeros(x.shape), where=x > 0.0))


LINE = 64  # alignment in bytes


def zeros(shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Return an array of zeros whose memory begins at a multiple of 64 bytes."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    return np.asarray(room[begin : begin + size].view(dtype).reshape(shape))
