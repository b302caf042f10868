"""Groups: rows that are alike, what sets some apart, neighbours of a row, and unusual rows."""

from appca.ui.groups import group, named, similar, unusual
from appca.ui.parts import controls, progress
from appca.ui.parts.notes import preview_note
from appca.ui.parts.widgets import tabs
from appca.ui.rows import point
from appca.ui.session import state

TABS = {
    "similar": ("Similar", similar),
    "differences": ("Differences", group),
    "named": ("Named", named),
    "neighbours": ("Neighbours", point),
    "unusual": ("Unusual", unusual),
}
dataset = state.current_dataset()
beside_title = controls.heading("Groups")
tab = tabs({key: label for key, (label, _) in TABS.items()})
shown = progress.shown()

if shown is not None:
    with beside_title:
        preview_note(shown)
    TABS[tab][1].body(dataset, shown)
