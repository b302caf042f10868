"""Stores, the job queue, and caches, one of each per server."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import streamlit as st

from appca.data.columns import renamed
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.data.store import DatasetStore
from appca.jobs.queue import Jobs
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.storage.identity import is_digest
from appca.words import InputError

NOTED = ("ordered", "events", "class_names")  # facts about a data set that a user has set


class Services(NamedTuple):
    """The stores and the queue of a home."""

    datasets: DatasetStore
    runs: RunStore
    jobs: Jobs


_made: list[Services] = []


@st.cache_resource(show_spinner=False)
def _of(folder: str) -> Services:
    path = Path(folder)
    made = Services(DatasetStore(path), RunStore(path), Jobs(path))
    _made.append(made)
    return made


def close() -> None:
    """End the jobs."""
    for made in _made:
        made.jobs.close()


def datasets() -> DatasetStore:
    """Return the stored data sets."""
    return _of(str(home())).datasets


def runs() -> RunStore:
    """Return the stored runs."""
    return _of(str(home())).runs


def jobs() -> Jobs:
    """Return the background jobs."""
    return _of(str(home())).jobs


def dataset(digest: str) -> Dataset:
    """Open a stored data set; its matrix stays on disk."""
    folder = datasets().folder / digest
    place = folder.stat().st_ino if is_digest(digest) and folder.exists() else 0
    return _opened(str(home()), digest, place)


@st.cache_resource(show_spinner=False, max_entries=8)
def _opened(folder: str, digest: str, _place: int) -> Dataset:
    stored = _of(folder).datasets.get(digest)
    names = stored.provenance.get("class_names")
    return renamed(stored, names) if names else stored


def note(digest: str, **facts: Any) -> None:
    """Record facts about a stored data set, such as the names of its classes."""
    stored = datasets().get(digest)
    datasets().put(replace(stored, provenance=stored.provenance | facts))
    _opened.clear()


def put_again(dataset: Dataset) -> str:
    """Store a data set with the notes of its earlier copy; return its digest."""
    try:
        before = datasets().get(dataset.digest).provenance
    except InputError:
        before = {}
    noted = {name: before[name] for name in NOTED if name in before}
    return datasets().put(replace(dataset, provenance=noted | dataset.provenance))


def prepared(digest: str, preprocessing: Mapping[str, Any]) -> Fitted:
    """Return the fitted preprocessing of a data set."""
    return _learned(digest, json.dumps(preprocessing, sort_keys=True))


@st.cache_resource(show_spinner=False, max_entries=24)
def _learned(digest: str, options: str) -> Fitted:
    data = dataset(digest)
    return Preprocessing.from_dict(json.loads(options)).fit(data.X, missing=data.missing)


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def by_key(
    most: int,
) -> Callable[[Callable[_Given, _Made]], Callable[Concatenate[str, _Given], _Made]]:
    """Return a decorator that caches the latest results by a key before the arguments."""

    def decorate(make: Callable[_Given, _Made]) -> Callable[Concatenate[str, _Given], _Made]:
        @st.cache_resource(show_spinner=False, max_entries=most)
        @wraps(make)  # Streamlit needs distinct names, and skips arguments with _
        def kept(*, key: str, _given: tuple[Any, ...], _named: dict[str, Any]) -> _Made:
            del key
            return make(*_given, **_named)

        def cached(key: str, /, *args: _Given.args, **named: _Given.kwargs) -> _Made:
            return kept(key=key, _given=args, _named=named)

        return cached

    return decorate


@by_key(48)
def kept(make: Callable[[], _Made]) -> _Made:
    """Return `make()`, cached by a key."""
    return make()


@by_key(48)
def kept_of_row(make: Callable[[], _Made]) -> _Made:
    """Return `make()` for one row from a separate cache, because there are many rows."""
    return make()
