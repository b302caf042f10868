"""Similar objects: rows that lie close together in a subspace, whatever their class."""

import streamlit as st

from appca.ui.groups import similar
from appca.ui.parts import class_choice, controls, progress
from appca.ui.parts.tray import tray
from appca.ui.session import state

dataset = state.current_dataset()
beside_title = controls.heading("Similar objects")
shown = progress.finished()

if shown is not None:
    with beside_title:
        st.caption(controls.of_panels(shown))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        classes = class_choice.choose(dataset, "similar")
        found = similar.choose_groups(shown)
    similar.body(dataset, shown, found, classes)
    colour = similar.colour(dataset, shown, classes)
    tray(dataset, shown, colour)
