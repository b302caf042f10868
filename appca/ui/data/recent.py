"""Recent work: one card for what a person asked for, named or exported, and for each data set."""

import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import streamlit as st

from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.jobs.erase import Deletion, erase, planned
from appca.plots.data.thumbnail import thumbnail
from appca.runs.home import home
from appca.runs.store import Run, RunStore
from appca.storage import shared
from appca.ui.parts import class_choice
from appca.ui.parts.text import apart, markdown, nats_per_row, tag, words
from appca.ui.parts.widgets import first_of_page
from appca.ui.rows.pictures import is_dark
from appca.ui.session import services, state
from appca.ui.session.caching import by_key
from appca.ui.session.callbacks import guarded
from appca.words.errors import InputError
from appca.words.wording import counted

EXPLORE = "pages/explore/explore.py"
PAGE = 12


def page() -> None:
    """Draw the tab: damaged runs, and all work on cards that can be opened, renamed and deleted."""
    for damage in services.runs().damaged():
        with st.container(horizontal=True, vertical_alignment="center", key=f"damaged-{damage.id}"):
            st.warning(markdown(damage.sentence))
            st.button("Delete", key=f"drop-{damage.id}", on_click=_delete, args=[[damage.id]])
    all_works = works()
    if not all_works:
        st.info("What you open, name or export appears here.")
    several = _several(all_works) if all_works else False
    first = first_of_page(len(all_works), PAGE, "recent_page")
    cards(all_works[first : first + PAGE], several=several)
    for number, folder in enumerate(shared.homes()):
        _of_others(folder, number)
    _all()


def _of_others(folder: Path, number: int) -> None:
    """Draw what a home has that `APPCA_SHARED` names: it can be opened, and nothing else."""
    here = services.runs().folder
    runs = [run for run in works(RunStore(folder)) if not (here / run.id).is_dir()]
    fitted = {run.config.dataset for run in runs}
    data = [item for item in DatasetStore(folder).list() if item.digest not in fitted]
    if runs or data:
        st.subheader(f"Shared by {folder.name}", anchor=False)
    cards(runs, key=f"cards-recent-{number}")
    for item in data:
        label = f"{item.name} · {counted(item.n_rows, 'row')}"
        if st.button(words(label), f"shared-{number}-{item.digest}", type="tertiary"):
            state.open_dataset(item.digest)
            st.switch_page(EXPLORE)


def works(store: RunStore | None = None) -> list[Run]:
    """Return what is work: runs that stay, and the newest of a data set without one."""
    runs = (store or services.runs()).list()
    kept = [run for run in runs if run.kept]
    fitted = {run.config.dataset for run in kept}
    newest: dict[str, Run] = {}
    # The newest first; PCA, which Compare makes by itself, only where there is nothing else.
    for run in sorted(runs, key=lambda run: run.config.model == "PPCA"):
        if run.config.dataset not in fitted:
            dataset = _dataset(run)
            is_file = dataset is not None and dataset.provenance.get("source") == "file"
            # a corrected file takes the place of the one of the same name
            newest.setdefault(dataset.name if dataset and is_file else run.config.dataset, run)
    return sorted([*kept, *newest.values()], key=lambda run: -run.created)


def cards(runs: Sequence[Run], *, several: bool = False, key: str = "cards-recent") -> None:
    """Draw works on cards side by side."""
    with st.container(key=key):
        for run in runs:
            with st.container(border=True, key=f"work-{run.id}"):
                _card(run, several)


def _card(run: Run, several: bool) -> None:
    dataset = _dataset(run)
    dark = is_dark()
    picture = None if dataset is None else _picture(f"{run.id} {dark}", run, dataset, dark)
    if picture is not None:
        st.image(picture, width="stretch", alt="The fullest panels")
    name = _title(run, dataset)
    rows = "" if dataset is None else f"{counted(dataset.n_rows, 'row')} · "
    st.html(
        tag("div", words(name), "ca-name")
        + tag("div", words(f"{rows}{nats_per_row(run.info)}"), "ca-quiet")
        + tag("div", words(_when(run.created)), "ca-quiet")
    )
    opened = dataset is not None and st.button(apart("Open", f"of {name}"), f"open-{run.id}")
    if opened and _open(run):
        st.switch_page(EXPLORE)
    if run.is_shared:
        return
    with st.popover(apart("Rename", f"of {name}"), type="tertiary", key=f"rename-{run.id}"):
        st.text_input(
            "Name",
            run.custom_name or "",
            key=f"name-{run.id}",
            max_chars=120,
            placeholder=name,
            on_change=_rename,
            args=[run.id],
        )
    if several:
        label, key = f"Choose {name}", f"chosen-{run.id}"  # heard, never drawn
        st.checkbox(label, key=key, label_visibility="collapsed")


def _several(runs: Sequence[Run]) -> bool:
    """Draw what deletes many works at once; return whether they are to be chosen."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        several = st.toggle("Choose several", key="recent_several")
        if not several:
            return False
        chosen = [run.id for run in runs if st.session_state.get(f"chosen-{run.id}")]
        with st.popover(f"Delete {len(chosen)}", disabled=not chosen, key="recent_delete"):
            st.text(
                f"Delete {counted(len(chosen), 'fit')} for good, with data, maps and selections?"
            )
            st.text(_stays(planned(home(), chosen)) if chosen else "")
            st.button(
                "Delete", key="recent_really", type="primary", on_click=_delete, args=[chosen]
            )
    return True


def _title(run: Run, dataset: Dataset | None) -> str:
    if run.custom_name:
        return run.custom_name
    name = "Data no longer here" if dataset is None else dataset.name
    mark = " (imported)" if run.config.imported is not None else " (stopped)" * run.partial
    return f"{name} · {', '.join(run.config.sizes)}{mark}"


def _when(created: float) -> str:
    ago = time.time() - created
    if ago < 2 * 60:
        return "Just now"
    if ago < 3600:
        return f"{ago / 60:.0f} minutes ago"
    then = datetime.fromtimestamp(created)
    if then.date() == datetime.now().date():
        return f"Today, {then:%H:%M}"
    return f"{then:%d %b %Y}".lstrip("0")


def _dataset(run: Run) -> Dataset | None:
    try:
        return services.dataset(run.config.dataset)
    except InputError:
        return None


@by_key(64)
def _picture(run: Run, dataset: Dataset, dark: bool) -> np.ndarray | None:
    try:
        fitted: FittedRun = run.fitted
    except InputError:
        return None
    classes = class_choice.every(dataset)
    return thumbnail(fitted, classes[0].codes if classes else None, dark)


def _open(run: Run) -> bool:
    try:
        state.open_config(run.config)
    except InputError as error:
        st.error(markdown(f"{run.name} cannot be shown: {error}"))
        return False
    return True


def _all() -> None:
    """Draw what deletes everything."""
    if services.datasets().list() or services.runs().list():
        with st.popover("Delete all my data", type="tertiary", key="recent_delete_all"):
            st.text("Delete all data, fits, maps, selections and uploads of this computer's appca?")
            st.button("Delete everything", "recent_all_really", type="primary", on_click=_delete)


def _stays(deletion: Deletion) -> str:
    """Say which data stay, and why."""
    return " ".join(
        f"The data “{name}” stay: {counted(n, 'other work')} needs them."
        for name, n in deletion.shared
    )


@guarded
def _delete(runs: Sequence[str] | None = None) -> None:
    """Delete works, by default everything."""
    deletion = None if runs is None else planned(home(), runs)
    services.jobs().end([""] if deletion is None else deletion.data)
    erase(home(), deletion)
    if deletion is None or state.config().dataset in deletion.data:
        state.open_first()
    if deletion is not None and deletion.shared:
        state.notify("info", _stays(deletion))


@guarded
def _rename(run_id: str) -> None:
    services.runs().rename(run_id, st.session_state[f"name-{run_id}"])
