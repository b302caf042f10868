"""Diagnostics: whether the present run can be trusted, and where it is unsure."""

from appca.ui.check import diagnostics
from appca.ui.parts import controls, progress
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("Diagnostics")
shown = progress.finished()

if shown is not None:
    diagnostics.body(shown, dataset.image_shape, dataset.feature_names)
