"""Groups: rows that are alike, what sets some apart, neighbours of a row, and unusual rows."""

from appca.ui import controls, groups, kit, rows, state
from appca.ui.kit import preview_note, tabs

TABS = {
    "similar": ("Similar", groups.similar_tab),
    "differences": ("Differences", groups.differences_tab),
    "named": ("Named", groups.named_tab),
    "neighbours": ("Neighbours", rows.body),
    "unusual": ("Unusual", groups.unusual_tab),
}
dataset = state.current_dataset()
beside_title = controls.heading("Groups")
tab = tabs({key: label for key, (label, _) in TABS.items()})
shown = kit.shown()

if shown is not None:
    with beside_title:
        preview_note(shown)
    TABS[tab][1](dataset, shown)
