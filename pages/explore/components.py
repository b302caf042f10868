"""Components: what each one looks like, how much it explains, and which rows use it most."""

from appca.ui import atlas_page, components_page, controls, fitting, panels, progress, state
from appca.ui.preview_note import preview_note
from appca.ui.tray import tray

dataset = state.current_dataset()
beside_title = controls.heading("Components")
shown = fitting.shown()

if shown is None:
    progress.waiting() or progress.offer()
else:
    with beside_title:
        preview_note(shown)
    components_page.body(dataset, shown)
    colour = atlas_page.colour_now(dataset, shown, next(iter(panels.colour_choices(dataset))))
    tray(dataset, shown, atlas_page.sprites(dataset.digest), colour)
