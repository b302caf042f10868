"""A session as a file: saved on the page Export, opened where files are, here or elsewhere."""

from functools import partial
from pathlib import Path

import streamlit as st

from appca.data.dataset import Dataset
from appca.data.numbers import size
from appca.runs.home import home
from appca.runs.session import SUFFIX, Session, Unpacked, pack, unpack_apart
from appca.storage.wording import counted
from appca.ui.data.files import dropping
from appca.ui.parts.downloads import save_button, stem_of
from appca.ui.session import selection, services, state
from appca.ui.session.fitting import Shown

SESSION = (
    "One file with the data, the chosen fits, names and signs of components and selections. Drop "
    "it on any page, here or on another machine."
)


def save(dataset: Dataset, shown: Shown) -> None:
    """Draw what saves a session: with which fits, with or without the data."""
    st.subheader("Session", anchor=False, help=SESSION)
    runs = {run.id: run for run in services.runs().list() if run.config.dataset == dataset.digest}
    if shown.run is not None:
        runs.setdefault(shown.run.id, shown.run)
    chosen = st.multiselect(
        "Fits",
        runs,
        default=[shown.config.id],
        format_func=lambda run_id: f"{runs[run_id].name} · {run_id[:6]}",
        key=f"session_runs-{shown.config.id}",
    )
    with_data = st.toggle(
        f"With the data ({size(dataset.X.nbytes)} before packing)",
        True,
        key="session_data",
        persist_state="session",
        help="Without them the file is small, and whoever opens it must have the same data set.",
    )
    named, selected = selection.named(dataset), selection.get(dataset)
    session = Session(dataset, [runs[one] for one in chosen], named, selected, shown.config.id)
    save_button(
        "Save session",
        partial(pack, session, with_data=with_data),
        f"{stem_of(dataset.name)}{SUFFIX}",
        "application/zip",
        key="session",
    )


def open_file(name: str, file: Path) -> None:
    """Open a session file and look at what was on screen when it was saved."""
    with st.spinner("Opening the session"):
        _look_at(unpack_apart(name, file, home(), dropping.scratch()))


def _look_at(found: Unpacked) -> None:
    """Bring what came out of the file on screen."""
    state.open_dataset(found.dataset)
    run = services.runs().get(found.opened or next(iter(found.runs), ""))
    if run is not None:
        state.open_config(run.config)
    dataset = state.current_dataset()
    if found.selected is not None:
        selection.put(dataset, found.selected)
    kept = f" and {counted(len(found.selections), 'kept selection')}" if found.selections else ""
    runs = counted(len(found.runs), "fit")
    state.notify("success", f"“{dataset.name}” is open, with {runs}{kept}.")
