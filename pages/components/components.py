"""Components: their looks and meaning, a row rebuilt under the hand, and what classes share."""

from appca.ui.components import gallery, meaning, sharing, steer
from appca.ui.parts import controls, progress
from appca.ui.parts.notes import preview_note
from appca.ui.parts.widgets import tabs
from appca.ui.session import state

dataset = state.current_dataset()
beside_title = controls.heading("Components")
tab = tabs({"gallery": "Gallery", "meaning": "Meaning", "steer": "Steer", "sharing": "Sharing"})
shown = progress.shown()

if shown is not None:
    with beside_title:
        preview_note(shown)
    parts = {"gallery": gallery, "meaning": meaning, "steer": steer, "sharing": sharing}
    parts[tab].body(dataset, shown)
