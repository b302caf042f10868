"""Diagnostics: whether the present run can be trusted, and where it is unsure."""

from appca.ui import controls, diagnostics_page, fitting, progress, state

dataset = state.current_dataset()
controls.heading("Diagnostics")
shown = fitting.settled()

if shown is None:
    progress.waiting() or progress.offer()
else:
    diagnostics_page.body(shown, dataset.image_shape, dataset.feature_names)
