"""The bar above the canvas: data set, K and L, model, colour and view."""

import streamlit as st

from appca.analysis.explore.umap import Embedding
from appca.canvas.scene.colours import TRUST
from appca.data.dataset import Dataset
from appca.ui.explore import model, sizes
from appca.ui.parts import controls
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import history
from appca.ui.settings import umap
from appca.words.wording import counted


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
            colouring = controls.colouring(dataset, with_trust=trust is not None)
            if trust is not None and colouring == TRUST:
                st.caption(umap.trust_sentence(trust))
        _undo_and_redo()
        place = st.container(
            key="bar_views", horizontal=True, vertical_alignment="center", width="content"
        )
    return colouring, place


def views(dataset: Dataset, there: dict[str, str], active: int | None) -> str:
    """Draw the choice of the view, among them the map that may have to be laid out first."""
    names = {key: title for key, title in there.items() if key != "umap"} | {"umap": "Map"}
    key = controls.view_key(active)
    with st.container(width="content"):  # to the left, so that no view moves when it is chosen
        if st.session_state.get(key) == "umap":
            with st.popover("", icon=":material/tune:", key="bar_map", help="Settings of the map"):
                umap.settings(dataset)
    return one_of("View", names, key=key, label_visibility="collapsed")


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
        st.page_link("pages/data/data.py", label="Other data", icon=":material/add:")
