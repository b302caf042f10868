"""Export: cards with a figure, projections, picture, components, report, model, session, script."""

import streamlit as st

from appca.ui import controls, export, fits, kit, state

dataset = state.current_dataset()
controls.heading("Export")
shown = kit.shown(fits.finished)
if shown is not None:
    with st.container(key="beside"):
        first, others = st.columns([1.5, 1], gap="medium")
    with first:
        rows, material = export.choices(dataset, shown)
        figure = export.figure_card(material)
        export.projections(dataset, shown, rows)
    with others:
        export.cards(material)
    figure()  # last, because drawing takes long
