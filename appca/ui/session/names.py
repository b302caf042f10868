"""Names of components and classes, and signs, as people change them: wherever they are shown."""

from collections.abc import Mapping
from functools import partial

from appca.data.class_names import tidy
from appca.data.dataset import Dataset, categories
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.store import Run
from appca.ui.session import history, services
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


def class_names(stored: Dataset, label: str) -> dict[str, str]:
    """Return the names that people gave classes of a label, by the classes of the data."""
    return dict(stored.provenance.get("class_names", {}).get(label, {}))


def keep_class_names(stored: Dataset, label: str, names: Mapping[str, str]) -> None:
    """Keep names of classes with the data."""
    before = dict(stored.provenance.get("class_names", {}))
    kept = {old: new for old, new in names.items() if new != old}
    steps = [
        partial(services.note, stored.digest, class_names=each)
        for each in (before, before | {label: kept})
    ]
    steps[1]()
    history.note(*steps)


def rename_class(digest: str, label: str, before: str, now: str) -> None:
    """Rename what is shown as a class of a label; an empty name restores that of the data."""
    stored = services.datasets().get(digest)
    if label in stored.labels:
        names = class_names(stored, label)
        classes, _ = categories(stored.labels[label])
        shown = [each for each in classes if names.get(each, each) == before]
        keep_class_names(stored, label, names | {each: tidy(now) or each for each in shown})
