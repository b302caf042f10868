"""The bar above the canvas: data set, K and L, model, colour and view."""

from contextlib import suppress

import streamlit as st

from appca.analysis.explore.umap import Embedding
from appca.canvas.scene.colours import PANELS, TRUST
from appca.data.dataset import Dataset
from appca.ui.canvas import canvas
from appca.ui.canvas.scenes import PageScene
from appca.ui.explore import model, sizes
from appca.ui.parts import controls
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import history, services, state
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.ui.session.state import KEYS
from appca.ui.settings import umap
from appca.words.errors import InputError
from appca.words.wording import counted

READING = (
    "Pink: rows around the point are far from it in the data, so do not read them as alike. Teal: "
    "rows that are near it in the data are elsewhere; hover over it to see lines to them."
)
WORKS = 5  # in the menu at the data set's name


def bar(
    dataset: Dataset, embedding: Embedding | None
) -> tuple[str, st.delta_generator.DeltaGenerator]:
    """Draw the bar; return the colouring, and the place of the views, which need the picture.

    Colours offer the trust of the map, where there is one.
    """
    trust = None if embedding is None else embedding.trust
    with st.container(key="explore_bar", horizontal=True, vertical_alignment="center", gap="small"):
        _data(dataset)
        sizes.k_and_l(dataset)
        model.popover(dataset)
        label = f"Colour **{markdown(controls.colour_name(dataset))}**"
        with st.popover(label, key="bar_colour", width="content"):
            colouring = controls.colouring(dataset, with_trust=trust is not None, flat=True)
            if colouring in (TRUST, PANELS):
                st.caption(READING)
            if trust is not None and colouring == TRUST:
                st.caption(umap.trust_sentence(trust))
        _undo_and_redo()
        place = st.container(
            key="bar_views", horizontal=True, vertical_alignment="center", width="content"
        )
    return colouring, place


def views(dataset: Dataset, scene: PageScene, active: int | None) -> tuple[str, str]:
    """Draw the choice of the view, among them the map that may have to be laid out first.

    Returns it and the view beside it, which is empty unless the picture is split.
    """
    first, there = scene.meta["first"], scene.meta["layouts"]
    places = {"slices": "Map", "umap": "UMAP"} if "slices" in there else {"umap": "Map"}
    names = {key: there[key]["title"] for key in canvas.VIEWS if key in there} | places
    key = controls.view_key(active)
    with st.container(width="content"):  # to the left, so that no view moves when it is chosen
        if st.session_state.get(key) == "umap":
            with st.popover("", icon=":material/tune:", key="bar_map", help="Settings of the map"):
                umap.settings(dataset)
    layout = one_of("View", names, key=key, default=first, label_visibility="collapsed")
    with st.container(key="bar_split", width="content"):
        split = st.segmented_control(
            "Split",
            ["Split"],
            selection_mode="multi",
            key="split",
            persist_state="session",
            label_visibility="collapsed",
        )
    maps = [name for name in ("slices", "umap", "pca") if name in there]
    beside = first if layout in maps else next(iter(maps), "")
    return layout, beside if split else ""


def offer_map(dataset: Dataset, shown: Shown, beside: str, *, waits: bool) -> None:
    """Offer to lay out the map that is waited for; once there is one, to split the picture."""
    if beside:
        st.session_state.pop(KEYS.map_ready, None)
    if not (waits or st.session_state.get(KEYS.map_ready)):
        return
    with st.container(key="map_offer"):
        if waits:
            umap.offer(dataset, shown)
            return
        with st.container(horizontal=True, gap="small"):
            for label, split in (("Show map and panels side by side", True), ("Not now", False)):
                key = f"offer_split_{split}".lower()
                st.button(label, key=key, type="tertiary", on_click=_answer_offer, args=[split])


@guarded
def _answer_offer(split: bool) -> None:
    st.session_state.pop(KEYS.map_ready, None)
    if split:
        st.session_state["split"] = ["Split"]


def show_view(active: int | None, name: str) -> None:
    """Press the button of the view that the picture has opened itself."""
    st.session_state[controls.view_key(active)] = name


def _undo_and_redo() -> None:
    steps = {
        "undo": (history.undo, history.can_undo(), "Undo (Ctrl+Z)"),
        "redo": (history.redo, history.can_redo(), "Redo (Ctrl+Shift+Z)"),
    }
    with st.container(key="bar_steps", horizontal=True, gap="small", width="content"):
        for name, (act, possible, hint) in steps.items():
            st.button(
                "",
                key=f"bar_{name}",
                icon=f":material/{name}:",
                type="tertiary",
                help=hint,
                on_click=act,
                disabled=not possible,
            )


def _data(dataset: Dataset) -> None:
    label = f"**{markdown(dataset.name)}**"
    if f"{dataset.n_rows:,}" not in dataset.name:
        label += f" :gray[{counted(dataset.n_rows, 'row')}]"
    with st.popover(label, icon=":material/database:", key="bar_data", width="content"):
        columns = counted(dataset.n_features, "column")
        if dataset.image_shape is not None:
            columns = f"{' × '.join(map(str, dataset.image_shape))} pixels"
        st.markdown(f"**{markdown(dataset.name)}**  \n{dataset.n_rows:,} rows, {columns}")
        _recent()
        st.page_link("pages/data/data.py", label="Other data", icon=":material/add:")


def _recent() -> None:
    """Draw a button for each of the last works beside the present one, which opens it."""
    here = state.config().id
    others = [run for run in services.runs().list() if run.kept and run.id != here]
    for run in sorted(others, key=lambda run: -run.created)[:WORKS]:
        with suppress(InputError):  # its data are no longer here
            data = services.datasets().summary(run.config.dataset).name
            title = markdown(run.custom_name or f"{data} · {', '.join(run.config.sizes)}")
            act = guarded(state.open_config)
            st.button(title, key=f"work-{run.id}", type="tertiary", on_click=act, args=[run.config])
