"""Components: what each one looks like and who uses it, and which classes share them."""

from appca.ui.components import components, sharing
from appca.ui.explorer import atlas
from appca.ui.parts import class_choice, controls, progress
from appca.ui.parts.preview_note import preview_note
from appca.ui.parts.tray import tray
from appca.ui.parts.widgets import tabs
from appca.ui.session import state

dataset = state.current_dataset()
beside_title = controls.heading("Components")
tab = tabs({"gallery": "Gallery", "sharing": "Sharing"})

if tab == "gallery":
    shown = progress.shown()
    if shown is not None:
        with beside_title:
            preview_note(shown)
        components.body(dataset, shown)
        tray(dataset, shown, atlas.first_colour(dataset, shown))
else:
    shown = progress.finished()
    with beside_title:
        sharing.paper()
    if shown is not None:
        classes = class_choice.choose(dataset, "sharing", with_selection=True)
        sharing.body(dataset, shown, classes)
