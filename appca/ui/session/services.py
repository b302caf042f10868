"""The stores and the job runner: one of each for the whole server, shared by all sessions."""

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.jobs.queue import Jobs
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.storage.identity import is_digest


class Services(NamedTuple):
    """What lives as long as the server."""

    datasets: DatasetStore
    runs: RunStore
    jobs: Jobs


@st.cache_resource(show_spinner=False)
def _of(folder: str) -> Services:
    path = Path(folder)
    return Services(DatasetStore(path), RunStore(path), Jobs(path))


def datasets() -> DatasetStore:
    """Return the data sets on disk."""
    return _of(str(home())).datasets


def runs() -> RunStore:
    """Return the runs on disk."""
    return _of(str(home())).runs


def jobs() -> Jobs:
    """Return the background jobs, running and finished."""
    return _of(str(home())).jobs


def dataset(digest: str) -> Dataset:
    """Open a data set by its digest, once for each time it is stored; its matrix stays on disk."""
    folder = datasets().folder / digest
    place = folder.stat().st_ino if is_digest(digest) and folder.exists() else 0
    return _opened(str(home()), digest, place)


@st.cache_resource(show_spinner=False, max_entries=8)
def _opened(folder: str, digest: str, _place: int) -> Dataset:
    return _of(folder).datasets.get(digest)
