"""The explorer: linked small scatters with their images, one selection, in the browser.

Three components make it. ``appca_plotly`` hands the installed plotly.js to the page,
``appca_parcel`` keeps named bytes there (geometry, hover texts, sprite sheets), ``appca_explorer``
draws. They are separate so that a rerun sends only what changed.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import streamlit as st
from streamlit.errors import StreamlitDuplicateElementKey

from appca.plots.explore import sprites as sheets
from appca.plots.explore.panel import Panel
from appca.plots.palette import Colour
from appca.ui.explorer import bundle, messages, payload
from appca.ui.explorer.payload import ExplorerView, HoverData, Parcel

FIRST_SHEETS = 2  # 2,048 small images: enough for an overview without asking

_plotly = st.components.v2.component(
    "appca_plotly", js=bundle.plotly_script(), isolate_styles=False
)
_parcel = st.components.v2.component(
    "appca_parcel", js=bundle.bundle("parcel"), isolate_styles=False
)
_explorer = st.components.v2.component(
    "appca_explorer",
    js=bundle.bundle("explorer"),
    css=(bundle.FOLDER / "explorer.css").read_text(encoding="utf-8"),
    isolate_styles=False,
)


class ExplorerResult(NamedTuple):
    """What the person has selected."""

    selection: np.ndarray | None  # (N,) bool; None: nothing is selected
    changed: bool  # whether the browser changed it since the last run


def explorer(  # noqa: PLR0913 - one call draws everything; all but three have defaults
    key: str,
    panels: Sequence[Panel],
    *,
    n_rows: int,
    revision: str,
    colour: Colour | None = None,
    sprites: sheets.Sprites | None = None,
    selection: np.ndarray | None = None,
    hover: HoverData | None = None,
    thumbnail_px: int = 22,
    point_size: float = 3,
    columns: int = 3,
    height: int | None = None,
) -> ExplorerResult:
    """Draw linked scatters of one data set and return the selection.

    Call it once a run with the same key; hand the selection you keep back in, so that it survives
    reruns and page changes. The root element has the class ``appca-explorer`` and the attributes
    ``data-renders``, ``data-points``, ``data-thumbnails`` and ``data-selected``.

    Parameters
    ----------
    key : str
        Of the component; one explorer a key and page.
    panels : sequence of Panel
        At most 12.
    n_rows : int
        Rows of the data set; row numbers in the panels count into it.
    revision : str
        Zoom is kept while this is the same: say what makes another picture (run, page of panels).
    colour : Colour, optional
        Of all rows; changing it sends one byte a row and keeps zoom and selection.
    sprites : Sprites, optional
        Thumbnails; without them points and hover texts are drawn alone.
    selection : ndarray of shape (n_rows,), bool, optional
        Rows to show as selected; a newer selection from the browser goes first.
    hover : HoverData, optional
        Ids and further lines of the hover card; the coordinates are always there.
    thumbnail_px : int
        Size at the start, 0 for none; the person changes it in the explorer's own toolbar.
    point_size : float
        Diameter in pixels.
    columns : int
        Most panels side by side; fewer when the page is narrow.
    height : int, optional
        Of one panel in pixels; default by its width.

    Raises
    ------
    ValueError
        When panels, colouring or selection do not fit the data set.
    """
    _check(panels, n_rows, selection, sprites)
    state = st.session_state.get(key)
    selection, seen, changed = messages.latest_selection(key, state, n_rows, selection)
    geometry = payload.geometry(panels)
    names: dict[str, str | None] = dict.fromkeys(("geometry", "hover", "ids", "order"))
    with st.container(key=f"{key}-parcels"):  # hidden by the style sheet
        _mount_once(_plotly, "appca-plotly", None)
        names["geometry"] = _mount(f"{key}-geometry", geometry)
        if hover is not None:
            names["hover"] = _mount(f"{key}-hover", payload.hover_parcel(hover))
            ids = payload.ids_parcel(hover.ids)
            names["ids"] = None if ids is None else _mount(f"{key}-ids", ids)
        if sprites is not None:
            names["order"] = _mount(f"{key}-order", payload.order_parcel(sprites))
            _mount_sheets(key, state, sprites)
    view = ExplorerView(key, revision, int(thumbnail_px), float(point_size), int(columns), height)
    _explorer(
        key=key,
        data=payload.message(names, n_rows, colour, view, selection, seen),
        on_selection_change=_nothing,
        on_need_change=_nothing,
    )
    return ExplorerResult(selection, changed)


def _check(
    panels: Sequence[Panel],
    n_rows: int,
    selection: np.ndarray | None,
    sprites: sheets.Sprites | None,
) -> None:
    for panel in panels:
        if len(panel.rows) and not 0 <= panel.rows.min() <= panel.rows.max() < n_rows:
            message = (
                f"The panel {panel.title!r} has row {int(panel.rows.max()):,} but the data set has "
                f"{n_rows:,} rows, counted from 0; give row numbers of this data set."
            )
            raise ValueError(message)
    if selection is not None and (shape := np.shape(selection)) != (n_rows,):
        message = f"The selection has shape {shape} for {n_rows:,} rows; give one flag a row."
        raise ValueError(message)
    if sprites is not None and sprites.n_rows != n_rows:
        message = (
            f"The thumbnails are of {sprites.n_rows:,} rows but the panels of {n_rows:,}; "
            "give both for the same data set."
        )
        raise ValueError(message)


def _mount_sheets(key: str, state: object, sprites: sheets.Sprites) -> None:
    """Send the first sheets and all that the browser has asked for so far."""
    asked: set[int] = st.session_state.setdefault(f"{key}-sheets-{sprites.key}", set())
    asked |= messages.read_need(state, sprites.n_sheets)
    first = range(min(FIRST_SHEETS, sprites.n_sheets))
    for number in sorted(asked.union(first)):
        png = _sheet_png(sprites.key, sprites.tile, number, sprites)
        parcel = payload.sheet_parcel(sprites, number, png)
        _mount_once(_parcel, f"{sprites.key}-sheet-{number}", parcel.data)


def _mount(key: str, parcel: Parcel) -> str:
    _mount_once(_parcel, key, parcel.data)
    return parcel.name


def _mount_once(component: Callable[..., object], key: str, data: bytes | None) -> None:
    """Mount a part unless another explorer on this page has already."""
    with contextlib.suppress(StreamlitDuplicateElementKey):
        component(key=key, data=data)


@st.cache_data(show_spinner=False, max_entries=256)
def _sheet_png(key: str, tile: tuple[int, int], number: int, _sprites: sheets.Sprites) -> bytes:
    del key, tile  # they name the picture for the cache
    return sheets.sheet(_sprites, number)


def _nothing() -> None:
    """Stand for a reaction: the component's state appears in the session only with a callback."""
