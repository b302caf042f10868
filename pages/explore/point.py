"""Point: one row taken apart, the rows near it, and the rows of its run that stand out."""

import streamlit as st

from appca.ui import (
    atlas_page,
    controls,
    fitting,
    outliers_section,
    panels,
    point_choice,
    point_page,
    progress,
    state,
)
from appca.ui.preview_note import preview_note
from appca.ui.tray import tray

dataset = state.current_dataset()
beside_title = controls.heading("Point")
shown = fitting.shown()

if shown is None:
    progress.waiting() or progress.offer()
else:
    with beside_title:
        preview_note(shown)
    row = point_choice.choose(dataset)
    with st.container(key="point_page"):
        point_page.sum_of(dataset, shown, row)
        point_page.how_sure(dataset, shown, row)
        point_page.near(dataset, shown, row)
        outliers_section.body(dataset, shown)
    colour = atlas_page.colour_now(dataset, shown, next(iter(panels.colour_choices(dataset))))
    tray(dataset, shown, atlas_page.sprites(dataset.digest), colour)
