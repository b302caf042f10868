"""Sharing: which classes use the same components, and how popular each component is."""

from appca.ui.components import sharing
from appca.ui.parts import class_choice, controls, progress
from appca.ui.session import state

dataset = state.current_dataset()
beside_title = controls.heading("Sharing")
shown = progress.finished()
with beside_title:
    sharing.paper()

if shown is not None:
    classes = class_choice.choose(dataset, "sharing", with_selection=True)
    sharing.body(dataset, shown, classes)
