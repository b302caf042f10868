"""UMAP: a map of all rows, coloured by the projection, by PCA and by class, with one selection."""

import streamlit as st

from appca.ui import atlas_page, controls, fitting, progress, state, umap_classes, umap_page
from appca.ui.tray import tray

dataset = state.current_dataset()
controls.heading("UMAP")
shown = fitting.settled()

if shown is None:
    progress.waiting() or progress.offer()
elif umap_page.is_offered(dataset):
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with row:
        config = umap_page.settings(dataset, shown)
    found = umap_page.stored(config)
    if found is None:
        umap_page.wait_or_offer(dataset, config)
    else:
        with row:
            choice = controls.colouring(dataset)
            size = controls.point_size()
            named = umap_classes.naming(dataset)
        colour = atlas_page.colour_now(dataset, shown, choice)
        umap_page.pictures(dataset, shown, found, colour, size=size, named=named)
        tray(dataset, shown, atlas_page.sprites(dataset.digest), colour)
        umap_classes.nearest_table(dataset, shown)
