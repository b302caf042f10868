"""Subspaces: every used set of components as its own scatter, with K and L beside it."""

import streamlit as st

from appca.ui import atlas_page, controls, fitting, progress, state, tour
from appca.ui.component_list import component_list
from appca.ui.preview_note import preview_note
from appca.ui.tray import tray

dataset = state.current_dataset()
with st.container(key="beside"):
    main, side = st.columns([4.4, 1.2], gap="medium")

with main:
    beside_title = controls.heading("Subspaces")
    tour.strip(
        with_l="n_active" in state.config().parameters,
        with_images=dataset.image_shape is not None,
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        controls.k_and_l(dataset)
        choice = controls.colouring(dataset)
        size = controls.point_size()
    shown = fitting.shown()

if shown is None:
    with main:
        progress.waiting() or progress.offer()
else:
    colour = atlas_page.colour_now(dataset, shown, choice)
    with beside_title:
        preview_note(shown) or controls.in_words(shown)
    with main:
        by_pair, axes, page = controls.which_panels(shown)
        atlas_page.draw(
            dataset, shown, colour, by_pair=by_pair, axes=axes, page=page, point_size=size
        )
        tray(dataset, shown, atlas_page.sprites(dataset.digest), colour)
    with side:
        st.subheader("Components", anchor=False)
        component_list(dataset, shown)
        atlas_page.pca_beside(dataset, shown, colour, size)
