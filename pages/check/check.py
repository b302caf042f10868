"""Check: which K and L to take, whether to trust the fit, and what it is worth beside others."""

from appca.ui import choose, compare, controls, diagnostics, kit, masked, state
from appca.ui.kit import tabs

NAMES = {
    "choose": "Choose K and L",
    "models": "Which model?",
    "diagnostics": "Diagnostics",
    "compare": "Compare",
    "hidden": "Hidden cells",
    "quality": "Map quality",
}
OF_A_FIT = {
    "diagnostics": diagnostics.body,
    "compare": compare.compare_tab,
    "hidden": masked.body,
    "quality": compare.map_quality,
}

dataset = state.current_dataset()
controls.heading("Check")
tab = tabs(NAMES)
if tab == "choose":
    if choose.is_offered():
        choose.choose_tab(dataset)
elif tab == "models":
    choose.which_model_tab(dataset)
elif (shown := kit.finished()) is not None:
    OF_A_FIT[tab](dataset, shown)
