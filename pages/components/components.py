"""Components: what each one looks like, how much it explains, and which rows use it most."""

from appca.ui.components import components
from appca.ui.explorer import atlas, panels
from appca.ui.parts import controls, progress
from appca.ui.parts.preview_note import preview_note
from appca.ui.parts.tray import tray
from appca.ui.session import fitting, state

dataset = state.current_dataset()
beside_title = controls.heading("Components")
shown = fitting.shown()

if shown is None:
    progress.waiting() or progress.offer()
else:
    with beside_title:
        preview_note(shown)
    components.body(dataset, shown)
    colour = atlas.colour_now(dataset, shown, next(iter(panels.colour_choices(dataset))))
    tray(dataset, shown, atlas.sprites(dataset.digest), colour)
