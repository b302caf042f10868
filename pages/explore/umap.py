"""UMAP: a map of all rows, coloured by the projection, by PCA and by class, with one selection."""

import streamlit as st

from appca.ui.explore import umap, umap_classes
from appca.ui.explorer import atlas
from appca.ui.parts import controls, progress
from appca.ui.parts.tray import tray
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("UMAP")
shown = progress.finished()

if shown is not None and umap.is_offered(dataset):
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with row:
        config = umap.settings(dataset, shown)
    found = umap.stored(config)
    if found is None:
        umap.wait_or_offer(dataset, config)
    else:
        with row:
            choice = controls.colouring(dataset)
            size = controls.point_size()
            named = umap_classes.naming(dataset)
        colour = atlas.colour_now(dataset, shown, choice)
        umap.pictures(dataset, shown, found, colour, size=size, named=named)
        tray(dataset, shown, colour)
        umap_classes.nearest_table(dataset, shown)
