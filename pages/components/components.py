"""Components: what each one looks like, how much it explains, and which rows use it most."""

from appca.ui.components import components
from appca.ui.explorer import atlas
from appca.ui.parts import controls, progress
from appca.ui.parts.preview_note import preview_note
from appca.ui.parts.tray import tray
from appca.ui.session import state

dataset = state.current_dataset()
beside_title = controls.heading("Components")
shown = progress.shown()

if shown is not None:
    with beside_title:
        preview_note(shown)
    components.body(dataset, shown)
    tray(dataset, shown, atlas.first_colour(dataset, shown))
