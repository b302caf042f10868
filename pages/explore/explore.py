"""Explore: every subspace in one picture that keeps its objects while K and L move."""

import streamlit as st

from appca.ui.explore import old_pages, umap
from appca.ui.explorer import atlas, canvas
from appca.ui.parts import controls, progress
from appca.ui.parts.preview_note import preview_note
from appca.ui.parts.tray import tray
from appca.ui.parts.widgets import one_of, tabs
from appca.ui.session import state

OLD = {
    "subspaces": old_pages.subspaces,
    "fit": old_pages.fit,
    "point": old_pages.one_point,
    "umap": old_pages.map_of_rows,
}

dataset = state.current_dataset()
controls.heading("Explore")
tab = tabs(
    {"canvas": "Canvas", "subspaces": "Subspaces", "fit": "Fit", "point": "Point", "umap": "UMAP"}
)
if tab in OLD:
    OLD[tab]()
else:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
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
