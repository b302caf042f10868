"""Sharing: which classes use the same components, and how popular each component is."""

from appca.ui import class_choice, controls, fitting, progress, sharing_page, state

dataset = state.current_dataset()
beside_title = controls.heading("Sharing")
shown = fitting.settled()
with beside_title:
    sharing_page.paper()

if shown is None:
    progress.waiting() or progress.offer()
else:
    classes = class_choice.choose(dataset, "sharing", with_selection=True)
    sharing_page.body(dataset, shown, classes)
