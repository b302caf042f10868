"""Export: projections, the picture, figures, components, report, model, session and the script."""

import streamlit as st

from appca.ui.arrivals import session_file
from appca.ui.export import export, export_files
from appca.ui.parts import controls, progress
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("Export")
shown = progress.finished()
if shown is not None:
    with st.container(key="beside"):
        rows_and_picture, others = st.columns([1.5, 1], gap="large")
    with rows_and_picture:
        rows = export.which_rows(dataset)
        export.projections(dataset, shown, rows)
        colour = export.picture(dataset, shown)
        export_files.standing_figures(dataset, shown, rows, colour)
    with others:
        export_files.components(dataset, shown)
        export_files.session_report(dataset, shown, rows, colour)
        export_files.model(dataset, shown)
        export_files.annotated(dataset, shown)
        session_file.save(dataset, shown)
    export.as_python(dataset, shown)
