"""Selection: what sets the selected rows apart from all others."""

from appca.ui import controls, fitting, group_page, progress, state

dataset = state.current_dataset()
controls.heading("Selection")
shown = fitting.settled()
if shown is not None:
    group_page.body(dataset, shown)
elif not progress.waiting():
    progress.offer()
