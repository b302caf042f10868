"""The canvas on a page: rows in one zoomable picture, with the pages' selection or its own."""

import base64
import binascii
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.explore.umap import Embedding
from appca.data.dataset import Dataset
from appca.plots.explore.scene.scene import Map
from appca.plots.explore.scene.shown import plane
from appca.ui.explorer import bundle, serving
from appca.ui.explorer.scenes import PageScene, scene_of_fit, scene_of_run
from appca.ui.session import selection
from appca.ui.session.fitting import Shown

__all__ = ["draw", "scene", "scene_of_run", "views"]
FOLDER = bundle.FOLDER / "canvas"
TITLES = {"subspaces": "Subspaces", "pairs": "Pairs", "pca": "PCA", "umap": "UMAP"}
_canvas = st.components.v2.component(
    "appca_canvas",
    html="<div class='appca-canvas-box'></div>",
    js=bundle.closed_bundle(FOLDER / "host.js"),
    css=(FOLDER / "canvas.css").read_text(encoding="utf-8"),
    isolate_styles=False,
)
MOUNT = re.compile(r"[A-Za-z0-9-]{1,40}")
log = logging.getLogger(__name__)


def scene(
    dataset: Dataset,
    shown: Shown,
    colouring: str,
    embedding: Embedding | None = None,
) -> PageScene:
    """Return what is shown as a scene, laid out once for all visitors.

    Parameters
    ----------
    colouring : str
        Key of a colouring; a feature is one of the scene's colourings only if it is asked for.
    embedding : Embedding, optional
        A UMAP of the same rows, as a further layout.
    """
    feature = colouring if colouring.startswith("feature:") else None
    maps = {} if embedding is None else {"umap": Map("UMAP", plane(embedding.coordinates))}
    return scene_of_fit(
        dataset, shown.config, shown.fitted, key=shown.key, maps=maps, feature=feature
    )


def views(scene: PageScene) -> dict[str, str]:
    """Return the layouts that there are: key to the name on screen, the first one first."""
    headers = scene.meta["layouts"]
    found = {name: TITLES.get(name, one["title"]) for name, one in headers.items()}
    first = scene.meta["first"]
    return {first: found[first]} | found


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
) -> None:
    """Draw a scene and take over what is selected in it, at most eight on a page.

    Parameters
    ----------
    dataset : Dataset
        Of the scene's rows.
    scene : PageScene
    layout : str
        One of `views`.
    colouring : str
        A key of the scene's colourings, or "component:" and the number of a component.
    key : str
        Another one for each canvas on a page.
    height : int or str, optional
        Pixels, or a length as CSS has it; by default what a window leaves below a page's head.
    options : mapping, optional
        Further `Options` of `canvas/types.js`. "panels": names as "{2,5}", or the numbers of the
        components, of the only panels to show, without maps and title.
    selected : ndarray of shape (N,), bool, optional
        Rows to show as selected; by default those of all pages, which a lasso then changes.
    on_select : callable, optional
        Takes the rows (N,) that a hand has selected, before the page runs again; by default they
        become the selection of all pages.
    on_layout : callable, optional
        Takes the layout that a search, a kept view or a tour has opened.
    """
    take = on_select or (lambda mask: selection.put(dataset, mask))

    def on_selection() -> None:
        mask = _newer(key, dataset.n_rows)
        if mask is not None:
            take(mask)

    def on_other_layout() -> None:
        name = getattr(st.session_state.get(key), "layout", None)
        if on_layout is not None and isinstance(name, str) and name in scene.meta["layouts"]:
            on_layout(name)

    chosen = selected if selected is not None or on_select is not None else selection.get(dataset)
    told = {"layout": layout, "colouring": colouring, "keep": f"{dataset.digest[:16]}-{key}"}
    _canvas(
        key=key,
        data={
            "scene": serving.address(scene.scene, dataset, scene.key, scene.lines, scene.scores),
            "options": told | _named(options or {}),
            "height": f"{height}px" if isinstance(height, int) else height,
            "selected": _packed(chosen),
            "seen": st.session_state.get(f"{key}-seen"),
            "follows": on_layout is not None,
        },
        on_selection_change=on_selection,
        on_layout_change=on_other_layout,
        on_lost_change=_nothing,
    )


def _named(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the browser takes them: panels by name."""

    def name(panel: str | Sequence[int]) -> str:
        return panel if isinstance(panel, str) else f"{{{','.join(map(str, sorted(panel)))}}}"

    panels = options.get("panels")
    return {**options} if panels is None else {**options, "panels": [*map(name, panels)]}


def _packed(mask: np.ndarray | None) -> str | None:
    """Write a selection as the browser reads it; None where nothing is selected."""
    if mask is None or not mask.any():
        return None
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode()


def _nothing() -> None:
    """Stand for a reaction: the component's state appears in the session only with a callback."""


# What comes back from the browser, checked before it is believed


def read_stamp(state: Any) -> tuple[str, int] | None:
    """Read which selection this is, without its rows; None when there is none.

    A stamp is which life of the component on a page made it, and which one of that life it is.

    Raises
    ------
    ValueError
        When the stamp is not a short name and a count.
    """
    raw = state.get("selection") if hasattr(state, "get") else None
    if raw is None:
        return None
    mount, number = (raw.get("mount"), raw.get("number")) if hasattr(raw, "get") else (None, None)
    if isinstance(mount, str) and MOUNT.fullmatch(mount) and type(number) is int and number >= 1:
        return mount, number
    message = "The browser sent a selection without a valid stamp; it is ignored."
    raise ValueError(message)


def read_selection(state: Any, n_rows: int) -> np.ndarray | None:
    """Read the selected rows (n_rows,), bool, out of a component's state; None if cleared.

    Its key "selection" holds {"mount", "number", "bits"}.

    Raises
    ------
    ValueError
        When the bits are not base64 of exactly one bit a row.
    """
    bits = None if read_stamp(state) is None else state["selection"].get("bits")
    if bits is None:
        return None
    try:
        raw = base64.b64decode(bits, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        message = "The browser sent a selection that is not base64; it is ignored."
        raise ValueError(message) from error
    if len(raw) != -(-n_rows // 8):
        message = (
            f"The browser sent a selection of {len(raw):,} bytes for {n_rows:,} rows, which need "
            f"{-(-n_rows // 8):,}; it is ignored."
        )
        raise ValueError(message)
    flags = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little").astype(bool)
    if flags[n_rows:].any():
        message = f"The browser selected rows beyond the last of {n_rows:,}; it is ignored."
        raise ValueError(message)
    return flags[:n_rows]


def _newer(key: str, n_rows: int) -> np.ndarray | None:
    """Return what was selected since the last look, none of the rows if cleared; else None.

    Streamlit keeps the component's state over reruns, so a stamp tells what is new in it.
    """
    memory, state = f"{key}-seen", st.session_state.get(key)
    try:
        stamp = read_stamp(state)
        if stamp is None or stamp == st.session_state.get(memory):
            return None
        st.session_state[memory] = stamp
        found = read_selection(state, n_rows)
    except ValueError as error:
        log.warning("%s", error)
        return None
    return np.zeros(n_rows, bool) if found is None else found
