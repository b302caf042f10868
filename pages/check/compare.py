"""Compare: this run beside another run, and beside other methods on the same rows."""

from appca.ui.check import compare, compare_choice, compare_quality
from appca.ui.parts import controls, progress
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("Compare")
shown = progress.finished()

if shown is not None and compare.view() == "run":
    other = compare_choice.choose(shown)
    if other is not None:
        compare.body(dataset, shown, other)
elif shown is not None:
    compare_quality.body(shown, compare_quality.settings(dataset, shown))
