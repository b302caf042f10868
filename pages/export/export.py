"""Export: cards with a figure, projections, picture, components, report, model, session, script."""

import streamlit as st

from appca.ui import arrivals, controls, downloads, export, kit, state

dataset = state.current_dataset()
place = controls.heading("Export")
shown = kit.finished()
if shown is not None:
    with downloads.collected() as files:
        with st.container(key="beside"):
            first, others = st.columns([1.5, 1], gap="medium")
        with first:
            rows, colour = export.choices(dataset)
            figure = export.figure_card(dataset, shown, rows, colour)
            export.projections(dataset, shown, rows)
        with others:
            export.picture(dataset, shown, colour)
            export.components(dataset, shown)
            export.session_report(dataset, shown, rows, colour)
            export.model(dataset, shown)
            export.annotated(dataset, shown)
            arrivals.save(dataset, shown)
            export.as_python(dataset, shown)
    with place:
        downloads.everything(dataset, shown, files)
    figure()  # once all else can be used
