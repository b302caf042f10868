"""Components as pictures: blue-white-red images, and ranked loadings for tables."""

import base64
import io
from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset

COURSE = (64, 96)  # height and width of a component as a line, in pixels
SPARK = (24, 32)  # and of a row
SCALED_BY = 500  # rows
NEGATIVE, ZERO, POSITIVE = LIGHT = (47, 111, 179), (250, 250, 250), (200, 60, 40)
DARK = (106, 169, 233), (22, 29, 39), (242, 133, 123)  # where zero is the panel's own ground


class Loading(NamedTuple):
    """Weight of one feature in a component."""

    name: str
    value: float
    share: float  # |value| relative to the largest of the component, 0 .. 1
    place: int  # of the feature


def diverging(values: np.ndarray, limit: float | None = None, *, dark: bool = False) -> np.ndarray:
    """Return values as colours, uint8 (..., 3): blue below zero, the ground at zero, red above.

    `limit` is the magnitude of full colour, by default the largest; `dark` is for a dark page.
    """
    values = np.asarray(values, dtype=np.float64)
    limit = float(np.abs(values).max(initial=0)) if limit is None else limit
    strength = np.clip(values / limit, -1, 1)[..., None] if limit > 0 else values[..., None] * 0
    low, zero, high = (np.array(end, np.float64) for end in (DARK if dark else LIGHT))
    end = np.where(strength < 0, low, high)
    colours: np.ndarray = np.round(zero + (end - zero) * np.abs(strength))
    return colours.astype(np.uint8)


def pixels_of(component: np.ndarray, image_shape: tuple[int, ...]) -> np.ndarray:
    """One component (D,) as signed values (h, w); colour channels are averaged."""
    image = np.asarray(component).reshape(image_shape)
    return image.mean(axis=2) if image.ndim == 3 else image


def component_image(
    component: np.ndarray,
    image_shape: tuple[int, ...],
    limit: float | None = None,
    *,
    dark: bool = False,
) -> np.ndarray:
    """One component (D,) as a diverging image (h, w, 3); see `diverging`."""
    return diverging(pixels_of(component, image_shape), limit, dark=dark)


def course_image(component: np.ndarray, *, dark: bool = False) -> np.ndarray:
    """Return a component (D,) of ordered features as a line, uint8 (h, w, 3), around zero."""
    limit = float(np.abs(component).max(initial=0)) or 1.0
    ink = lines_of_rows(component[None], (-limit / 0.9, limit / 0.9), COURSE)[0]
    ink[COURSE[0] // 2] = np.maximum(ink[COURSE[0] // 2], 0.25)
    return diverging(-ink, 1.0, dark=dark)


def lines_of_rows(
    rows: np.ndarray, scale: tuple[float, float], shape: tuple[int, int]
) -> np.ndarray:
    """Return rows (n, D) of ordered features as lines, (n, h, w) from 0 to 1.

    The lower end of the `scale` is at the bottom, the upper one at the top.
    """
    height, width = shape
    places = np.linspace(0, rows.shape[1] - 1, width)
    left = np.minimum(places.astype(int), max(rows.shape[1] - 2, 0))
    share = places - left
    values = rows[:, left] * (1 - share) + rows[:, left + 1] * share
    y = np.clip((scale[1] - values) / ((scale[1] - scale[0]) or 1.0), 0.0, 1.0) * height
    before = np.concatenate([y[:, :1], y[:, :-1]], axis=1)
    lines = np.arange(height)[None, :, None]
    low, high = np.minimum(y, before)[:, None], np.maximum(y, before)[:, None]
    off = np.maximum(np.maximum(low - lines, lines - high), 0.0)
    return np.asarray(np.clip(1.5 - off, 0.0, 1.0))


def row_lines(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Return rows of ordered features as sparklines, uint8 (n, h, w), bright on black."""
    some = dataset.X[:: max(1, dataset.n_rows // SCALED_BY)]
    low, high = (float(end) for end in np.percentile(some, [0.5, 99.5]))
    margin = 0.08 * (high - low)
    drawn = lines_of_rows(
        np.asarray(dataset.X[rows], np.float64), (low - margin, high + margin), SPARK
    )
    return np.round(255 * drawn).astype(np.uint8)


def picture_shape(dataset: Dataset) -> tuple[int, ...] | None:
    """Return the shape of a row that is drawn: (h, w[, 3]) as an image, (D,) as a line."""
    return dataset.image_shape or ((dataset.n_features,) if dataset.is_ordered else None)


def picture_of(component: np.ndarray, dataset: Dataset, *, dark: bool = False) -> np.ndarray | None:
    """Return a component (D,) as its data are: an image or a line; None of a table."""
    if dataset.image_shape is not None:
        return component_image(component, dataset.image_shape, dark=dark)
    return course_image(component, dark=dark) if dataset.is_ordered else None


def ranked_loadings(
    component: np.ndarray, names: tuple[str, ...] | None, n: int = 4
) -> list[Loading]:
    """Return the `n` features with the largest weights in a component (D,), the largest first.

    Features without names are called "feature 1" and so on.
    """
    largest = np.argsort(-np.abs(component), kind="stable")[:n]
    unit = max(float(np.abs(component).max(initial=0)), np.finfo(float).tiny)
    return [
        Loading(
            names[j] if names else f"feature {j + 1}",
            float(component[j]),
            abs(float(component[j])) / unit,
            int(j),
        )
        for j in largest
    ]


def montage(images: np.ndarray, columns: int, gap: int = 1, ground: int = 255) -> np.ndarray:
    """Lay images (n, h, w) or (n, h, w, 3), uint8, out line by line.

    There are `gap` pixels between them; `ground` is the grey value between and behind them.
    """
    n, h, w, *colour = images.shape
    lines = -(-n // columns)
    sheet = np.full((lines * (h + gap) - gap, columns * (w + gap) - gap, *colour), ground, np.uint8)
    for i, image in enumerate(images):
        top, left = (i // columns) * (h + gap), (i % columns) * (w + gap)
        sheet[top : top + h, left : left + w] = image
    return sheet


def png(image: np.ndarray, compress_level: int = 6) -> bytes:
    """Encode a uint8 image of shape (h, w) or (h, w, 3) as PNG; a low level is fast, not small."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=compress_level)
    return buffer.getvalue()


def data_uri(image: np.ndarray) -> str:
    """Return a picture as text that an <img> shows without another request."""
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()
