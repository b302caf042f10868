"""Selection: what sets the selected rows apart from all others."""

from appca.ui.groups import group
from appca.ui.parts import controls, progress
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("Selection")
shown = progress.finished()
if shown is not None:
    group.body(dataset, shown)
