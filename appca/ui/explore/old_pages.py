"""The pages Subspaces, Fit, Point and UMAP, as tabs of Explore until the canvas replaces them."""

import streamlit as st

from appca.ui.data import vae
from appca.ui.explore import masked, point, point_choice, umap, umap_classes
from appca.ui.explore.settings import settings
from appca.ui.explore.summary import next_steps, summary
from appca.ui.explorer import atlas
from appca.ui.parts import controls, progress
from appca.ui.parts.component_list import component_list
from appca.ui.parts.preview_note import preview_note
from appca.ui.parts.tray import tray
from appca.ui.session import state


def subspaces() -> None:
    """Draw every used set of components as its own scatter, with K and L beside it."""
    dataset = state.current_dataset()
    with st.container(key="beside"):
        main, side = st.columns([4.4, 1.2], gap="medium")
    with main:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            controls.k_and_l(dataset)
            choice = controls.colouring(dataset)
            size = controls.point_size()
        shown = progress.shown()
    if shown is None:
        return
    colour = atlas.colour_now(dataset, shown, choice)
    with main:
        preview_note(shown) or st.caption(controls.of_panels(shown))
        by_pair, axes, page = controls.which_panels(shown)
        atlas.draw(dataset, shown, colour, by_pair=by_pair, axes=axes, page=page, point_size=size)
        tray(dataset, shown, colour)
    with side:
        st.subheader("Components", anchor=False)
        component_list(dataset, shown)
        atlas.pca_beside(dataset, shown, colour, size)


def fit() -> None:
    """Draw the model's settings at the left, the fit and what came out of it at the right."""
    dataset = state.current_dataset()
    with st.container(key="beside"):
        left, right = st.columns([1, 1.5], gap="large")
    with left:
        settings(dataset)
    with right:
        shown = progress.finished()
        if shown is not None:
            summary(shown)
            masked.section(dataset, shown)
            vae.of_run(dataset, shown)
            next_steps()


def one_point() -> None:
    """Draw one row taken apart, the rows near it, and the rows of its run that stand out."""
    dataset = state.current_dataset()
    shown = progress.shown()
    if shown is not None:
        preview_note(shown)
        row = point_choice.choose(dataset)
        with st.container(key="point_page"):
            point.sum_of(dataset, shown, row)
            point.how_sure(dataset, shown, row)
            point.near(dataset, shown, row)
        tray(dataset, shown, atlas.first_colour(dataset, shown))


def map_of_rows() -> None:
    """Draw a map of all rows, coloured by the projection, by PCA and by class."""
    dataset = state.current_dataset()
    shown = progress.finished()
    if shown is None or not umap.is_offered(dataset):
        return
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with row:
        config = umap.settings(dataset, shown)
    found = umap.stored(config)
    if found is None:
        umap.wait_or_offer(dataset, config)
        return
    with row:
        choice = controls.colouring(dataset)
        size = controls.point_size()
        named = umap_classes.naming(dataset)
    colour = atlas.colour_now(dataset, shown, choice)
    umap.pictures(dataset, shown, found, colour, size=size, named=named)
    tray(dataset, shown, colour)
    umap_classes.nearest_table(dataset, shown)
