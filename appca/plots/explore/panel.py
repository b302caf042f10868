"""A panel: one small scatter, the rows it holds and the sign cells it falls into."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

MOST_PANELS = 12  # of one figure; more are paged by the caller
PADDING = 0.07  # of the data's span, so that thumbnails at the rim are whole
CELL_PADDING = 0.17  # above and below, where the corners name the sign cells


class Cell(NamedTuple):
    """A sign cell: the rows of a panel whose coordinates share their signs."""

    label: str  # "+1 −3"
    n_rows: int
    rows: np.ndarray  # (n_rows,) data set rows
    corner: tuple[int, int]  # signs of x and y: (1, -1) is the lower right corner
    image: np.ndarray | None = None  # (h, w) or (h, w, 3) uint8, the mean of the cell


class Name(NamedTuple):
    """A word written on a panel, such as a class's where it lies."""

    text: str
    x: float
    y: float


class Panel(NamedTuple):
    """One small scatter with the rows it holds and nothing of the others."""

    title: str
    subtitle: str
    rows: np.ndarray  # (m,) int32, which data set row each point is
    x: np.ndarray  # (m,) float32
    y: np.ndarray  # (m,) float32
    x_title: str = ""
    y_title: str = ""
    symbol: np.ndarray | None = None  # (m,) uint8, counts into MARKERS, round and round
    hollow: np.ndarray | None = None  # (m,) bool, drawn as an outline: doubtful membership
    rgb: np.ndarray | None = None  # (m, 3) uint8, colours of its own
    cells: Sequence[Cell] = ()
    origin: bool = True  # False: coordinates without a meaning of zero, as UMAP's
    names: Sequence[Name] = ()  # the most important first


def check(panels: Sequence[Panel]) -> None:
    """Refuse what would be drawn wrongly: too many panels, arrays that differ in length."""
    if len(panels) > MOST_PANELS:
        message = (
            f"{len(panels)} panels were given; one figure holds at most {MOST_PANELS}, "
            "so page through them."
        )
        raise ValueError(message)
    for panel in panels:
        lengths = {
            name: len(getattr(panel, name))
            for name in ("rows", "x", "y", "symbol", "hollow", "rgb")
            if getattr(panel, name) is not None
        }
        if len(set(lengths.values())) > 1:
            message = (
                f"The panel {panel.title!r} has arrays of different lengths ({lengths}); "
                "give one entry a point."
            )
            raise ValueError(message)


def ranges(panel: Panel) -> tuple[list[float], list[float]]:
    """Choose the ranges of both axes: all points, a rim, and zero where signs matter."""
    with_zero = bool(len(panel.cells))
    return (
        _range(panel.x, with_zero, PADDING),
        _range(panel.y, with_zero, CELL_PADDING if with_zero else PADDING),
    )


def plain(text: str) -> str:
    """Disarm the small markup that Plotly reads in annotations."""
    return escape(text, quote=False)


def _range(values: np.ndarray, with_zero: bool, padding: float) -> list[float]:
    finite = np.asarray(values, np.float64)
    finite = finite[np.isfinite(finite)]
    low, high = (finite.min(), finite.max()) if len(finite) else (-1.0, 1.0)
    if with_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    rim = padding * (high - low) or max(abs(high), 1.0) * 0.1
    return [float(low - rim), float(high + rim)]
