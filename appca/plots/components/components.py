"""Components as pictures: blue-white-red images, and ranked loadings for tables."""

import base64
import io
from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset

COURSE = (64, 96)  # height and width of a course over time, in pixels
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
    """Return a component (T,) of a recording as a line over time, uint8 (h, w, 3), around zero."""
    height, width = COURSE
    limit = float(np.abs(component).max(initial=0)) or 1.0
    places = np.linspace(0, len(component) - 1, width)
    y = (0.5 - 0.45 * np.interp(places, np.arange(len(component)), component) / limit) * height
    before = np.concatenate([y[:1], y[:-1]])
    rows = np.arange(height)[:, None]
    off = np.maximum(np.minimum(y, before) - rows, rows - np.maximum(y, before))
    ink = np.clip(1.5 - np.maximum(off, 0.0), 0.0, 1.0)
    ink[height // 2] = np.maximum(ink[height // 2], 0.25)
    return diverging(-ink, 1.0, dark=dark)


def picture_of(component: np.ndarray, dataset: Dataset, *, dark: bool = False) -> np.ndarray | None:
    """Return a component (D,) as its data are: an image or a course over time; None of a table."""
    if dataset.image_shape is not None:
        return component_image(component, dataset.image_shape, dark=dark)
    return course_image(component, dark=dark) if dataset.is_recording else None


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


def png(image: np.ndarray) -> bytes:
    """Encode a uint8 image of shape (h, w) or (h, w, 3) as PNG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


def data_uri(image: np.ndarray) -> str:
    """Return a picture as text that an <img> shows without another request."""
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()
