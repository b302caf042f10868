"""Export: where every row lies, as CSV, Parquet or NPZ, and the run as a Python script."""

from appca.ui import controls, export_page, fitting, progress, state

dataset = state.current_dataset()
controls.heading("Export")
shown = fitting.settled()
if shown is not None:
    rows = export_page.which_rows(dataset)
    export_page.example(dataset, shown, rows)
    export_page.files(dataset, shown, rows)
    export_page.as_python(dataset, shown)
elif not progress.waiting():
    progress.offer()
