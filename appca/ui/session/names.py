"""Names and signs of components as people change them: in all runs that have the component."""

from functools import partial

from appca.runs import labels
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.store import Run
from appca.ui.session import history
from appca.ui.session.callbacks import guarded


@guarded
def rename(run: Run | None, component: int, name: str) -> None:
    """Name a component, counted from 0; an empty name takes its own away."""
    if run is not None:  # a preview has nothing to keep it in
        old = ComponentNumbers(home()).of_run(run).names[component]
        _rename(run, component, name)
        history.note(partial(_rename, run, component, old), partial(_rename, run, component, name))


@guarded
def flip(run: Run | None, component: int) -> None:
    """Turn a component, counted from 0, and its scores round."""
    if run is not None:
        _flip(run, component)
        history.note(partial(_flip, run, component), partial(_flip, run, component))


def _rename(run: Run, component: int, name: str) -> None:
    labels.rename(run, component, name)  # goes into files with it, and keeps it in the store
    ComponentNumbers(home()).rename(run, component, name)


def _flip(run: Run, component: int) -> None:
    labels.flip(run, component)
    ComponentNumbers(home()).flip(run, component)
