"""Rows that may be images: which height and width suit them, and the order of their pixels."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from appca.words import InputError

LEAST_SIDE, MOST_RATIO = 4, 16
MOST_PIXELS = 1 << 18
_JUDGED = 48  # rows
_SMOOTH, _ALIKE = 0.75, 2.5  # neighbours against any two pixels; one direction against the other


class PixelShape(NamedTuple):
    """How the values of a row make an image."""

    height: int
    width: int
    channels: int = 1
    by_column: bool = False  # values run down the columns first, as in MATLAB

    @property
    def sides(self) -> tuple[int, ...]:
        """The image shape of a data set."""
        return (self.height, self.width, *((3,) if self.channels == 3 else ()))


class Judged(NamedTuple):
    """A shape, and how much neighbouring pixels differ against any two of them."""

    shape: PixelShape
    roughness: float
    is_likely: bool


def pixel_order(shape: PixelShape) -> np.ndarray:
    """Return the places (D,) in a row of the values in row-major order of its image.

    Raises InputError where rows of another length are meant; see `check_length`.
    """
    h, w, channels, by_column = shape
    places = np.arange(h * w * channels)
    if not by_column:
        return places
    return np.moveaxis(places.reshape(channels, w, h), (2, 1), (0, 1)).ravel()


def check_length(shape: PixelShape, n_values: int) -> None:
    """Refuse a shape of another number of values."""
    total = shape.height * shape.width * shape.channels
    if total != n_values:
        msg = (
            f"Images of {shape.height} x {shape.width} pixels have {total:,} values; the rows "
            f"have {n_values:,}, so give another height and width."
        )
        raise InputError(msg)


def likely_shapes(X: np.ndarray, prefer_columns: bool = False) -> list[Judged]:
    """Return shapes that rows (N, D) can have as images, the most plausible first.

    In the right shape, neighbouring pixels differ little along both sides. Orders of a square that
    differ by turning the image alone are as plausible; `prefer_columns` says which comes first.
    """
    n_values = X.shape[1]
    if n_values > MOST_PIXELS:
        return []
    some = np.asarray(X[:: max(1, len(X) // _JUDGED)], np.float64)
    any_two = float(np.abs(some - some[:, np.random.default_rng(0).permutation(n_values)]).mean())
    judged = [_judged(some, shape, any_two or 1.0) for shape in _shapes(n_values)]

    def rank(each: Judged) -> tuple[float, bool, float]:
        shape = each.shape
        turned = shape.by_column != prefer_columns
        return round(each.roughness, 6), turned, abs(math.log(shape.height / shape.width))

    return sorted(judged, key=rank)


def _shapes(n_values: int) -> Iterator[PixelShape]:
    for channels in (1, 3):
        pixels, rest = divmod(n_values, channels)
        sides = [h for h in range(1, math.isqrt(pixels) + 1) if pixels % h == 0 and not rest]
        for h in sorted({*sides, *(pixels // side for side in sides)}):
            w = pixels // h
            if min(h, w) >= LEAST_SIDE and max(h, w) <= MOST_RATIO * min(h, w):
                yield PixelShape(h, w, channels)
                yield PixelShape(h, w, channels, by_column=True)


def _judged(rows: np.ndarray, shape: PixelShape, any_two: float) -> Judged:
    images = rows[:, pixel_order(shape)].reshape(len(rows), shape.height, shape.width, -1)
    down, across = (float(np.abs(np.diff(images, axis=axis)).mean()) for axis in (1, 2))
    rough = max(down, across) / any_two
    likely = rough < _SMOOTH and max(down, across) < _ALIKE * min(down, across)
    line = shape.height if shape.by_column else shape.width * shape.channels
    near, half = (float(np.abs(rows[:, n:] - rows[:, :-n]).mean()) for n in (line, line // 2))
    return Judged(shape, rough, likely and near < half)  # of a series, it grows with the distance
