"""The canvas on a page: rows in one zoomable picture, with the pages' selection or its own."""

import base64
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import streamlit as st
from msgspec import Meta, Struct

from appca.canvas.bundle import JS
from appca.data.dataset import Dataset
from appca.storage.schema import FromOne, fitted
from appca.ui.canvas import routes, serving
from appca.ui.canvas.scenes import PageScene
from appca.ui.session import selection
from appca.ui.session.callbacks import guarded

VIEWS = ("subspaces", "pairs", "pca", "slices", "umap")  # in this order in the bar
_canvas = st.components.v2.component(
    "appca_canvas",
    html="<div class='appca-canvas-box'></div>",
    js=routes.LOADER,
    css=(JS / "canvas.css").read_text(encoding="utf-8"),
    isolate_styles=False,
)
SENT_S = 0.02  # Streamlit sends what a page has so far every 0.01 s
log = logging.getLogger(__name__)
M = TypeVar("M")


def draw(  # noqa: PLR0913 - one call draws everything; all but four have defaults
    dataset: Dataset,
    scene: PageScene,
    layout: str,
    colouring: str,
    *,
    key: str = "canvas",
    height: int | str | None = None,
    options: Mapping[str, Any] | None = None,
    selected: np.ndarray | None = None,
    on_select: Callable[[np.ndarray], None] | None = None,
    on_layout: Callable[[str], None] | None = None,
    on_point: Callable[[int | None], None] | None = None,
    on_act: Callable[[str, str], None] | None = None,
) -> None:
    """Draw a scene and take over what is selected in it, at most eight on a page.

    The layout and the colouring are keys of the scene's; "component:" and a number colours, too.
    Each canvas of a page has its own `key`. The height is in pixels or as CSS has it; by default it
    is what a window leaves below a page's head. `options` are further ones of `js/types.d.ts`.
    Rows `selected` (N,) are by default those of all pages, which a lasso then changes.

    `on_select` takes the rows (N,) that a lasso has selected, before the page runs again;
    `on_layout` the layout that a search or a tour has opened; `on_point` the row that
    a click holds, None when it lets go (without it a click selects the row); `on_act` what was
    chosen of the offers in `options`: "selection" or "colour", and which, or "class" and, as JSON,
    a label with the old and the new name of a class.
    """
    take = on_select or partial(selection.put, dataset)

    @guarded
    def on_other_layout() -> None:
        name = getattr(st.session_state.get(key), "layout", None)
        if on_layout is not None and isinstance(name, str) and name in scene.meta["layouts"]:
            on_layout(name)

    chosen = selection.get(dataset) if selected is None else selected
    _canvas(
        key=key,
        data={
            "scene": serving.address(scene, dataset, key),
            "options": {"layout": layout, "colouring": colouring} | dict(options or {}),
            "height": f"{height}px" if isinstance(height, int) else height,
            "selected": _packed(chosen),
            "seen": st.session_state.get(f"{key}-seen"),
            "follows": on_layout is not None,
            "holds": on_point is not None,
        },
        on_selection_change=guarded(partial(_selected, key, dataset.n_rows, take)),
        on_layout_change=on_other_layout,
        on_point_change=guarded(partial(_pointed, key, dataset.n_rows, on_point)),
        on_act_change=guarded(partial(_acted, key, on_act)),
        on_lost_change=lambda: None,  # a state is there only with a reaction to it
    )
    if st.session_state.get(f"{key}-shown") != scene.key:
        st.session_state[f"{key}-shown"] = scene.key
        time.sleep(SENT_S)  # on its way before the rest of the page, with which the browser is busy


def _packed(mask: np.ndarray) -> str | None:
    """Write a selection as the browser reads it; None where nothing is selected."""
    if not mask.any():
        return None
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode()


# What comes back from the browser, checked before it is believed


class _Message(Struct):
    """What a hand has done in the picture.

    Its stamp is which life of the component on a page made it, and which one of that life it is:
    Streamlit keeps the component's state over reruns, so the stamp tells what is new in it.
    """

    mount: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,40}\Z")]
    number: FromOne


class SelectionMessage(_Message):
    """A selection: one bit a row, the first the lowest; None where nothing is selected."""

    bits: bytes | None = None


class PointMessage(_Message):
    """The row that a click holds, counted from 0; -1 when it lets go."""

    row: Annotated[int, Meta(ge=-1)]


class ActMessage(_Message):
    """An offer that was chosen, or a class that was renamed."""

    kind: Literal["selection", "colour", "class"]
    name: Annotated[str, Meta(max_length=1000)]


def read_selection(bits: bytes | None, n_rows: int) -> np.ndarray:
    """Return the selected rows (n_rows,), bool.

    Raises ValueError when there is not exactly one bit a row.
    """
    if bits is None:
        return np.zeros(n_rows, bool)
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(bool)
    if len(bits) != -(-n_rows // 8) or flags[n_rows:].any():
        message = f"It has {len(bits):,} bytes for {n_rows:,} rows, or rows beyond the last."
        raise ValueError(message)
    return flags[:n_rows]


def _selected(key: str, n_rows: int, take: Callable[[np.ndarray], None]) -> None:
    """Take over what was selected since the last look, none of the rows if cleared."""
    memory, message = f"{key}-seen", _message(key, "selection", SelectionMessage)
    if message is None or (message.mount, message.number) == st.session_state.get(memory):
        return
    st.session_state[memory] = message.mount, message.number
    try:
        mask = read_selection(message.bits, n_rows)
    except ValueError as error:
        log.warning("The browser sent a selection that is ignored: %s", error)
    else:
        take(mask)


def _pointed(key: str, n_rows: int, on_point: Callable[[int | None], None] | None) -> None:
    """Tell which row a click holds, None where it lets go."""
    message = _message(key, "point", PointMessage)
    if on_point is not None and message is not None and message.row < n_rows:
        on_point(None if message.row < 0 else message.row)


def _acted(key: str, on_act: Callable[[str, str], None] | None) -> None:
    """Tell which of the offers was chosen."""
    message = _message(key, "act", ActMessage)
    if on_act is not None and message is not None:
        on_act(message.kind, message.name)


def _message(key: str, name: str, kind: type[M]) -> M | None:
    """Return a message of the browser, or None where there is none that makes sense."""
    sent = st.session_state.get(key)
    message = sent.get(name) if isinstance(sent, Mapping) else None
    if message is None:
        return None
    try:
        checked: M = fitted(kind, dict(message))
    except (TypeError, ValueError) as error:
        log.warning("The browser sent a %s that is ignored: %s", name, error)
        return None
    return checked
