"""Subspaces: every used set of components as its own scatter, with K and L beside it."""

import streamlit as st

from appca.ui.explorer import atlas
from appca.ui.frame import tour
from appca.ui.parts import controls, progress
from appca.ui.parts.component_list import component_list
from appca.ui.parts.preview_note import preview_note
from appca.ui.parts.tray import tray
from appca.ui.session import state

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
    shown = progress.shown()

if shown is not None:
    colour = atlas.colour_now(dataset, shown, choice)
    with beside_title:
        preview_note(shown) or st.caption(controls.of_panels(shown))
    with main:
        by_pair, axes, page = controls.which_panels(shown)
        atlas.draw(dataset, shown, colour, by_pair=by_pair, axes=axes, page=page, point_size=size)
        tray(dataset, shown, colour)
    with side:
        st.subheader("Components", anchor=False)
        component_list(dataset, shown)
        atlas.pca_beside(dataset, shown, colour, size)
