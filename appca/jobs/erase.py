"""Deleting for good: all that a home holds of fits and of the data that nothing else needs."""

from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from appca.data.store import DatasetStore
from appca.runs.check import FOLDERS
from appca.runs.configuration import MODELS
from appca.runs.store import RunStore
from appca.storage import atomic, cache
from appca.storage.identity import digest_of
from appca.words.refusal import refusing

_NAMED = {"datasets", "selections", "numbers"}  # whose entries are named after their data


class Deletion(NamedTuple):
    """What goes together with fits that are deleted, and what stays."""

    runs: frozenset[str]  # ids
    data: frozenset[str]  # digests
    shared: tuple[tuple[str, int], ...]  # data sets that stay: name, other works that use them


def planned(home: Path, run_ids: Collection[str]) -> Deletion:
    """Say what goes with fits: their data, unless another kept fit uses them.

    A file that was read several times is one work until a fit of it is kept, so its data sets go
    together.
    """
    runs, stored = RunStore(home).list(), DatasetStore(home).list()
    chosen = {run.config.dataset for run in runs if run.id in run_ids}
    others = Counter(run.config.dataset for run in runs if run.kept and run.id not in run_ids)
    names = {item.name for item in stored if item.source == "file" and item.digest in chosen}
    again = {item.digest for item in stored if item.source == "file" and item.name in names}
    data = frozenset(digest for digest in chosen | again if not others[digest])
    gone = frozenset(run.id for run in runs if run.config.dataset in data)
    shared = ((of.name, others[of.digest]) for of in stored if of.digest in chosen - data)
    return Deletion(gone | frozenset(run_ids), data, tuple(shared))


def erase(home: Path, deletion: Deletion | None = None) -> None:
    """Delete fits and data with all that was made of them; without a deletion, everything.

    Raises InputError when the disk refuses.
    """
    marks = set[str]() if deletion is None else {*deletion.runs, *deletion.data}
    marks |= {digest_of({"dataset": mark, "model": model}) for mark in marks for model in MODELS}
    with refusing("Not everything could be deleted", "check the permissions of the files"):
        for run_id in deletion.runs if deletion else ():
            RunStore(home).delete(run_id)
        for name in FOLDERS:
            for path in (home / name).glob("[!.]*"):
                text = path.name if name in _NAMED else _text(path)
                # a cache that says nothing of what it was made of goes as well
                unknown = not text and path.suffix == ".npz"
                if deletion is None or unknown or any(mark in text for mark in marks):
                    atomic.discard(path)
            atomic.sweep(home / name)


def _text(path: Path) -> str:
    """Return what says whose a file is; of a folder also the names in it."""
    if path.is_dir():
        inside = sorted(path.iterdir())
        return " ".join([*(file.name for file in inside), path.name, *map(_text, inside)])
    with suppress(OSError):
        if path.suffix == ".json":
            return path.read_text("utf-8", errors="replace")
    return cache.made_of(path) if path.suffix == ".npz" else ""
