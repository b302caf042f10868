"""Explore: every subspace in one picture that keeps its objects while K and L move."""

import streamlit as st

from appca.ui.explore import umap
from appca.ui.explorer import atlas, canvas
from appca.ui.parts import controls, progress
from appca.ui.parts.preview_note import preview_note
from appca.ui.parts.tray import tray
from appca.ui.parts.widgets import one_of
from appca.ui.session import state

dataset = state.current_dataset()
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    st.title("Explore", anchor=False, width="content")
    controls.k_and_l(dataset)
    choice = controls.colouring(dataset)
    place = st.container(width="content")
shown = progress.shown()

if shown is not None:
    preview_note(shown)
    scene = canvas.scene(dataset, shown, choice, umap.at_hand(dataset, shown))
    with place:
        layout = one_of("View", canvas.views(scene), key=f"view-{shown.config.n_active}")
    canvas.draw(dataset, scene, layout, choice)
    tray(dataset, shown, atlas.colour_now(dataset, shown, choice))
