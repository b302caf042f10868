"""Components: what each one looks like, a row rebuilt under the hand, and what classes share."""

from appca.ui.components import gallery, sharing, steer
from appca.ui.parts import controls, progress
from appca.ui.parts.notes import preview_note
from appca.ui.parts.widgets import tabs
from appca.ui.session import state

dataset = state.current_dataset()
beside_title = controls.heading("Components")
tab = tabs({"gallery": "Gallery", "steer": "Steer", "sharing": "Sharing"})
shown = progress.shown()

if shown is not None:
    with beside_title:
        preview_note(shown)
    {"gallery": gallery, "steer": steer, "sharing": sharing}[tab].body(dataset, shown)
