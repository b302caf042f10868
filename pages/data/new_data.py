"""New data: rows that the run has not seen, where they lie, and which of them do not fit."""

from appca.ui.data import new_data, new_data_intake, new_data_pictures
from appca.ui.parts import controls, progress
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("New data")
shown = progress.finished()
if shown is not None:
    new = new_data_intake.choose(dataset, shown)
    seen = None if new is None else new_data.described(shown, new)
    if seen is not None:
        said = new_data.verdict_of(shown, seen)
        rows = new_data_pictures.draw(dataset, shown, seen, said)
        new_data.listed(dataset, shown, seen, said, rows)
        new_data.files(shown, seen, said)
