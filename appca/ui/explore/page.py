"""The page Explore: bar, canvas and drawer."""

from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import streamlit as st

from appca.canvas.scene.colours import PANELS, TRUST, colour_choices
from appca.data.dataset import Dataset
from appca.runs.configuration import RunConfig
from appca.ui.canvas import canvas
from appca.ui.canvas.scenes import scene_of
from appca.ui.explore import bar, drawer, sizes
from appca.ui.frame import status
from appca.ui.parts import controls, progress
from appca.ui.parts.notes import preview_note
from appca.ui.rows import point, point_choice
from appca.ui.session import fitting, names, selection, state
from appca.ui.session.fitting import Shown
from appca.ui.settings import umap

HEIGHT = "calc(100vh - var(--bar) - var(--status) - var(--below))"
STYLE = Path(__file__).with_name("explore.css")


def draw() -> None:
    """Draw the page."""
    dataset = state.current_dataset()
    st.html(STYLE)
    with st.container(key="explore_title"):
        st.title("Explore", anchor=False)
    before = fitting.drawn_before()
    fit = before.config if before else state.config()
    colouring, views = bar.bar(dataset, umap.at_hand(dataset, fit))
    moved = sizes.moved_to()
    with st.container(key="fit_wait"):
        shown = (moved and fitting.while_moving(moved)) or progress.shown()
    shown = shown or before  # stays until there is something new
    if shown is None:
        return
    embedding = umap.at_hand(dataset, shown.config)
    by_data = next(iter(colour_choices(dataset))) if colouring in (TRUST, PANELS) else colouring
    if colouring == TRUST and (embedding is None or embedding.trust is None):
        colouring = by_data
    scene = scene_of(dataset, shown, colouring, embedding)
    with views:
        layout, beside = bar.views(dataset, scene, shown.config.n_active)
    there = layout if layout in scene.meta["layouts"] else scene.meta["first"]
    came = fitting.came(shown)
    with st.container(key="explore_canvas"):
        canvas.draw(
            *(dataset, scene, there, colouring),
            height=HEIGHT,
            options=({"came": came} if came else {})
            | {"beside": beside}
            | _held(dataset, shown)
            | _offers(dataset),
            on_layout=partial(bar.show_view, shown.config.n_active),
            on_point=partial(point_choice.hold, dataset),
            on_act=partial(_act, dataset),
        )
    bar.offer_map(dataset, shown, beside, waits=there != layout)
    _note(shown, moved)
    drawer.drawer(dataset, shown, by_data)


def _note(shown: Shown, moved: RunConfig | None) -> None:
    if not shown.fitted.active.any():
        st.caption("No row uses any component: the model takes all but the average for noise.")
    if moved is not None:
        st.session_state[status.SHOWN] = shown
    with st.session_state[status.NOTE]:
        if moved is None and shown.config == state.config():
            preview_note(shown)


def _held(dataset: Dataset, shown: Shown) -> dict[str, int | list[int]]:
    """Return the row that is held, and those nearest to it in the data."""
    row = point_choice.held(dataset)
    if row is None:
        return {"held": -1, "near": []}
    return {"held": row, "near": point.near_rows(dataset, shown, row).rows.tolist()}


def _offers(dataset: Dataset) -> dict[str, object]:
    """Return what the palette finds beside what is in the picture."""
    saved = [(kept.name, int(kept.mask.sum())) for kept in selection.named(dataset)]
    return {"offers": {"selections": saved, "columns": controls.offers(dataset)}}


def _act(dataset: Dataset, kind: str, name: str) -> None:
    if kind == "colour":
        controls.colour_by(dataset, name)
        return
    if kind == "class":
        with suppress(msgspec.DecodeError):  # not of the canvas
            said = msgspec.json.decode(name, type=tuple[str, str, str])
            names.rename_class(dataset.digest, *said)
        return
    for saved in selection.named(dataset):
        if saved.name == name:
            selection.put(dataset, saved.mask)
