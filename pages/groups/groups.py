"""Groups: differences between groups of rows, and unusual rows."""

from appca.ui import controls, groups, kit, state
from appca.ui.kit import preview_note, tabs

dataset = state.current_dataset()
beside_title = controls.heading("Groups")
tab = tabs({"differences": "Differences", "unusual": "Unusual"})
shown = kit.shown()

if shown is not None:
    with beside_title:
        preview_note(shown)
    parts = {"differences": groups.differences_tab, "unusual": groups.unusual_tab}
    parts[tab](dataset, shown)
