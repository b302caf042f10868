"""Groups: what sets the selected rows apart, and rows that are alike whatever their class."""

import streamlit as st

from appca.ui.groups import group, similar
from appca.ui.parts import class_choice, controls, progress
from appca.ui.parts.tray import tray
from appca.ui.parts.widgets import tabs
from appca.ui.session import state

dataset = state.current_dataset()
beside_title = controls.heading("Groups")
tab = tabs({"selection": "Selection", "similar": "Similar objects"})
shown = progress.finished()

if shown is not None and tab == "selection":
    group.body(dataset, shown)
elif shown is not None:
    with beside_title:
        st.caption(controls.of_panels(shown))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        classes = class_choice.choose(dataset, "similar")
        found = similar.choose_groups(shown)
    similar.body(dataset, shown, found, classes)
    tray(dataset, shown, similar.colour(dataset, shown, classes))
