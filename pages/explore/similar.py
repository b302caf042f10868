"""Similar objects: rows that lie close together in a subspace, whatever their class."""

import streamlit as st

from appca.ui import atlas_page, class_choice, controls, fitting, progress, similar_page, state
from appca.ui.tray import tray

dataset = state.current_dataset()
beside_title = controls.heading("Similar objects")
shown = fitting.settled()

if shown is None:
    progress.waiting() or progress.offer()
else:
    with beside_title:
        controls.in_words(shown)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        classes = class_choice.choose(dataset, "similar")
        found = similar_page.choose_groups(shown)
    similar_page.body(dataset, shown, found, classes)
    colour = similar_page.colour(dataset, shown, classes)
    tray(dataset, shown, atlas_page.sprites(dataset.digest), colour)
