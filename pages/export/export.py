"""Export: projections, components, model, figures, a report, the session, and the run as Python."""

import streamlit as st

from appca.ui.data import session_file
from appca.ui.export import export, export_files
from appca.ui.parts import controls, progress
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("Export")
shown = progress.finished()
if shown is not None:
    rows = export.which_rows(dataset)
    projections, components, model, figures, report, session, python = st.tabs(
        ["Projections", "Components", "Model", "Figures", "Report", "Session", "Python"]
    )
    with projections:
        export.projections(dataset, shown, rows)
    with components:
        export_files.components(dataset, shown)
    with model:
        export_files.model(shown)
    with figures:
        colour = export_files.standing_figures(dataset, shown, rows)
    with report:
        export_files.session_report(dataset, shown, rows, colour)
    with session:
        session_file.save(dataset, shown)
    with python:
        export.as_python(dataset, shown)
