"""Images of rows as pages show them: strokes are dark on a light page, tiles of one size."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from appca.canvas import sprites
from appca.data.dataset import Dataset
from appca.plots.components.components import data_uri, montage, row_lines
from appca.plots.groups.group import image_row
from appca.ui.parts.text import tag, words
from appca.ui.session.caching import by_key


def is_dark() -> bool:
    """Whether the page is dark."""
    return bool(st.context.theme.type == "dark")


def is_ink(dataset: Dataset) -> bool:
    """Whether rows are images of strokes, bright on black as stored."""
    return _is_ink(dataset.digest, dataset)


_is_ink = by_key(64)(sprites.is_ink)


def tiles(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Return rows as images or lines, uint8 (n, h, w) or (n, h, w, 3), as they are drawn here."""
    if dataset.image_shape is None:
        lines = row_lines(dataset, np.asarray(rows))
        return lines if is_dark() else 255 - lines
    return on_page(dataset, sprites.tiles_of(dataset, np.asarray(rows)))


def on_page(dataset: Dataset, images: np.ndarray) -> np.ndarray:
    """Turn strokes dark where the page is light."""
    return 255 - images if is_ink(dataset) and not is_dark() else images


def strip(dataset: Dataset, rows: np.ndarray, colours: Sequence[str] | None = None) -> str:
    """Return the images of rows side by side as text for an <img>, on strips of their colours."""
    return data_uri(image_row(tiles(dataset, rows), colours))


def figure(image: np.ndarray, name: str, alt: str = "") -> str:
    """Return an image over its name as HTML."""
    picture = tag("img", "", src=data_uri(image), alt=alt or name)
    return tag("figure", picture + tag("figcaption", words(name)))


def sheet_of(dataset: Dataset, rows: np.ndarray, columns: int) -> np.ndarray:
    """Return the images of rows in one picture; ink is dark on a light page."""
    return drawn(dataset, sprites.tiles_of(dataset, rows), columns)


def drawn(dataset: Dataset, tiles: np.ndarray, columns: int) -> np.ndarray:
    """Lay out pictures in the manner of a data set's own."""
    ground = 0 if is_ink(dataset) and is_dark() else 255
    return montage(on_page(dataset, tiles), columns, ground=ground)
