"""Compare: this run beside another run, and beside other methods on the same rows."""

from appca.ui import (
    compare_choice,
    compare_page,
    compare_quality,
    controls,
    fitting,
    progress,
    state,
)

dataset = state.current_dataset()
controls.heading("Compare")
shown = fitting.settled()

if shown is None:
    progress.waiting() or progress.offer()
elif compare_page.view() == "run":
    other = compare_choice.choose(shown)
    if other is not None:
        compare_page.body(dataset, shown, other)
else:
    config = compare_quality.settings(dataset, shown)
    compare_quality.body(shown, config)
