"""Check: which K and L to take, whether the fit can be trusted, and how it compares."""

from appca.ui.check import (
    choose,
    choose_stability,
    compare,
    compare_choice,
    compare_quality,
    diagnostics,
)
from appca.ui.parts import controls, progress
from appca.ui.parts.widgets import tabs
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("Check")
tab = tabs({"choose": "Choose K and L", "diagnostics": "Diagnostics", "compare": "Compare"})

if tab == "choose" and choose.is_offered():
    config = choose.settings(dataset)
    if config is not None:
        choose.grid(dataset, config)
    choose_stability.section(dataset)
shown = None if tab == "choose" else progress.finished()
if tab == "diagnostics" and shown is not None:
    diagnostics.body(shown, dataset.image_shape, dataset.feature_names)
elif tab == "compare" and shown is not None:
    if compare.view() == "methods":
        compare_quality.body(shown, compare_quality.settings(dataset, shown))
    elif (other := compare_choice.choose(shown)) is not None:
        compare.body(dataset, shown, other)
