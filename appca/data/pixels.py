"""Rows that may be images: possible heights and widths, and the order of pixels."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

KINDS = ("csv", "sheet", "parquet", "npy", "npz", "mat", "hdf5", "idx")  # files that contain rows
LEAST_SIDE, MOST_RATIO = 4, 16
MOST_PIXELS = 1 << 18
_JUDGED = 48  # number of rows used to compare shapes
_SMOOTH, _ALIKE = 0.75, 2.5  # most difference / random pairs; / other direction


class PixelShape(NamedTuple):
    """The shape of a row as an image."""

    height: int
    width: int
    channels: int = 1
    by_column: bool = False  # column by column, as in MATLAB

    @property
    def sides(self) -> tuple[int, ...]:
        """Return the image shape of a data set."""
        return (self.height, self.width, *((3,) if self.channels == 3 else ()))


def shape_of(kind: str | None, options: Mapping[str, Any]) -> PixelShape | None:
    """Return the image shape in a reader's options."""
    sides = options.get("image_shape")
    if not sides or kind not in KINDS:
        return None
    by_column = bool(options.get("by_column", kind == "mat"))
    return PixelShape(sides[0], sides[1], 3 if len(sides) == 3 else 1, by_column)


def with_shape(
    kind: str | None, options: Mapping[str, Any], shape: PixelShape | None
) -> dict[str, Any]:
    """Return a reader's options with an image shape; None: rows are not images."""
    rest = {key: old for key, old in options.items() if key not in ("by_column", "image_shape")}
    if shape is None:
        return rest | ({"image_shape": None} if kind == "csv" else {})
    by_column = {"by_column": shape.by_column} if shape.by_column or kind == "mat" else {}
    return rest | by_column | {"image_shape": shape.sides}


class Judged(NamedTuple):
    """A shape, and the differences of neighbouring pixels relative to random pairs."""

    shape: PixelShape
    roughness: float
    is_likely: bool


def pixel_order(shape: PixelShape) -> np.ndarray:
    """Return the indices (D,) in a row of its pixels in row-major order."""
    h, w, channels, by_column = shape
    places = np.arange(h * w * channels)
    if not by_column:
        return places
    return np.moveaxis(places.reshape(channels, w, h), (2, 1), (0, 1)).ravel()


def likely_shapes(X: np.ndarray, prefer_columns: bool = False) -> list[Judged]:
    """Return possible image shapes of rows (N, D), most plausible first.

    In the right shape, neighbouring pixels differ little in both directions. The two pixel orders
    of a square image are equally plausible; `prefer_columns` decides between them.
    """
    n_values = X.shape[1]
    if n_values > MOST_PIXELS:
        return []
    some = np.asarray(X[:: max(1, len(X) // _JUDGED)], np.float64)
    mixed = some[:, np.random.default_rng(0).permutation(n_values)]
    any_two = float(np.abs(some - mixed).mean()) or 1.0
    ranked: list[tuple[tuple[float, bool, float], int, Judged]] = []
    for shape in _shapes(n_values):
        h, w, channels, by_column = shape
        images = some[:, pixel_order(shape)].reshape(len(some), h, w, channels)
        down, across = (float(np.abs(np.diff(images, axis=axis)).mean()) for axis in (1, 2))
        rough, line = max(down, across) / any_two, h if by_column else w * channels
        # in a series, differences grow with distance
        near, half = (float(np.abs(some[:, n:] - some[:, :-n]).mean()) for n in (line, line // 2))
        is_even = max(down, across) < _ALIKE * min(down, across)
        judged = Judged(shape, rough, rough < _SMOOTH and is_even and near < half)
        rank = round(rough, 6), by_column != prefer_columns, abs(math.log(h / w))
        ranked.append((rank, len(ranked), judged))
    return [judged for _, _, judged in sorted(ranked)]


def _shapes(n_values: int) -> Iterator[PixelShape]:
    for channels in (1, 3):
        pixels, rest = divmod(n_values, channels)
        for h in range(LEAST_SIDE, math.isqrt(MOST_RATIO * pixels) + 1):
            w = pixels // h
            if not rest and w * h == pixels and LEAST_SIDE <= w <= MOST_RATIO * h:
                yield PixelShape(h, w, channels)
                yield PixelShape(h, w, channels, by_column=True)
