"""Components: a gallery, and associations with columns and classes."""

from appca.ui import components, controls, kit, state
from appca.ui.kit import preview_note, tabs

dataset = state.current_dataset()
beside_title = controls.heading("Components")
tab = tabs({"gallery": "Gallery", "meaning": "Meaning"})
shown = kit.shown()

if shown is not None:
    with beside_title:
        preview_note(shown)
    parts = {"gallery": components.gallery_tab, "meaning": components.meaning_tab}
    parts[tab](dataset, shown)
