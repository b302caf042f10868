"""Check: which K and L to take, whether to trust the fit, and what it is worth beside others."""

from appca.ui.check import choose, compare, diagnostics, masked, quality, which_model
from appca.ui.parts import controls, progress
from appca.ui.parts.widgets import tabs
from appca.ui.session import state

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
    "compare": compare.body,
    "hidden": masked.body,
    "quality": quality.body,
}

dataset = state.current_dataset()
controls.heading("Check")
tab = tabs(NAMES)
if tab == "choose":
    if choose.is_offered():
        choose.body(dataset)
elif tab == "models":
    which_model.body(dataset)
elif (shown := progress.finished()) is not None:
    OF_A_FIT[tab](dataset, shown)
