"""New data: rows that the run has not seen, where they lie, and which of them do not fit."""

from appca.ui import (
    controls,
    fitting,
    new_data_intake,
    new_data_page,
    new_data_pictures,
    progress,
    state,
)

dataset = state.current_dataset()
controls.heading("New data")
shown = fitting.settled()
if shown is not None:
    new = new_data_intake.choose(dataset, shown)
    seen = None if new is None else new_data_page.described(shown, new)
    if seen is not None:
        said = new_data_page.verdict_of(shown, seen)
        rows = new_data_pictures.draw(dataset, shown, seen, said)
        new_data_page.listed(dataset, shown, seen, said, rows)
        new_data_page.files(shown, seen, said)
elif not progress.waiting():
    progress.offer()
