"""Names and signs of components as people change them: in all runs that have the component."""

from functools import partial

from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.store import Run
from appca.ui.session import history
from appca.ui.session.callbacks import guarded


@guarded
def rename(run: Run | None, component: int, name: str) -> None:
    """Name a component, counted from 0; an empty name takes its own away."""
    if run is not None:  # a preview has nothing to keep it in
        numbers = ComponentNumbers(home())
        old = numbers.of_run(run).names[component]
        numbers.rename(run, component, name)
        both = (partial(numbers.rename, run, component, text) for text in (old, name))
        history.note(*both)


@guarded
def flip(run: Run | None, component: int) -> None:
    """Turn a component, counted from 0, and its scores round."""
    if run is not None:
        turn = partial(ComponentNumbers(home()).flip, run, component)
        turn()
        history.note(turn, turn)
