"""Compare: this run beside another run, and beside other methods on the same rows."""

from appca.ui.check import compare, compare_choice, compare_quality
from appca.ui.parts import controls, progress
from appca.ui.session import fitting, state

dataset = state.current_dataset()
controls.heading("Compare")
shown = fitting.settled()

if shown is None:
    progress.waiting() or progress.offer()
elif compare.view() == "run":
    other = compare_choice.choose(shown)
    if other is not None:
        compare.body(dataset, shown, other)
else:
    config = compare_quality.settings(dataset, shown)
    compare_quality.body(shown, config)
