"""Point: one row taken apart, the rows near it, and the rows of its run that stand out."""

import streamlit as st

from appca.ui.explore import outliers, point, point_choice
from appca.ui.explorer import atlas
from appca.ui.parts import controls, progress
from appca.ui.parts.preview_note import preview_note
from appca.ui.parts.tray import tray
from appca.ui.session import state

dataset = state.current_dataset()
beside_title = controls.heading("Point")
shown = progress.shown()

if shown is not None:
    with beside_title:
        preview_note(shown)
    row = point_choice.choose(dataset)
    with st.container(key="point_page"):
        point.sum_of(dataset, shown, row)
        point.how_sure(dataset, shown, row)
        point.near(dataset, shown, row)
        outliers.body(dataset, shown)
    tray(dataset, shown, atlas.first_colour(dataset, shown))
