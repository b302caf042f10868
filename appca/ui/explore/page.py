"""The page Explore: bar, canvas and drawer."""

from pathlib import Path

import streamlit as st

from appca.ui.explore import bar, drawer, umap
from appca.ui.explorer import canvas
from appca.ui.parts import progress
from appca.ui.parts.preview_note import preview_note
from appca.ui.parts.widgets import one_of
from appca.ui.session import state

STYLE = Path(__file__).with_name("explore.css")


def draw() -> None:
    """Draw the page."""
    dataset = state.current_dataset()
    st.html(STYLE)
    colouring, views = bar.bar(dataset)
    shown = progress.shown()
    if shown is None:
        return
    scene = canvas.scene(dataset, shown, colouring, umap.at_hand(dataset, shown))
    with views:
        names = canvas.views(scene)
        layout = one_of(
            "View", names, key=f"view-{shown.config.n_active}", label_visibility="collapsed"
        )
    with st.container(key="explore_canvas"):
        canvas.draw(dataset, shown, scene, layout, colouring)
    with st.container(key="explore_note"):
        preview_note(shown)
    drawer.drawer(dataset, shown, colouring)
