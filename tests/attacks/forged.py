"""Session files as somebody has altered them, each by a small change."""

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.runs.fit import fit_run
from appca.runs.run import RunConfig
from appca.runs.session import CONTENTS, Session, pack
from appca.runs.store import Run, RunStore

Change = Callable[[dict[str, Any]], None]


def small() -> Dataset:
    return load("wine").take(np.arange(0, 178, 4))


def fitted(home: Any, dataset: Dataset, **parameters: Any) -> Run:
    """Fit and keep a run, as a person here does."""
    config = RunConfig(dataset.digest, suggest(dataset).to_dict(), "aPPCA", parameters)
    return RunStore(home).save(config, fit_run(dataset, config))


def sound(run: Run, dataset: Dataset) -> bytes:
    return pack(Session(dataset, [run], opened=run.id))


def altered(content: bytes, change: Change, **members: bytes | None) -> io.BytesIO:
    """Return the file with its contents changed, and members replaced or taken away."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            given: bytes | None = old.read(name)
            if name == CONTENTS:
                contents = json.loads(old.read(name))
                change(contents)
                given = json.dumps(contents).encode()
            given = members.get(name, given)
            if given is not None:
                new.writestr(name, given)
    buffer.seek(0)
    buffer.name = "bad.appca"
    return buffer


def rolled(content: bytes) -> io.BytesIO:
    """Return the file with the scores of each row given to the next."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        scores = np.load(io.BytesIO(file.read("runs/0/scores.npy")))
    return altered(content, lambda _: None, **{"runs/0/scores.npy": npy(np.roll(scores, 1, 0))})


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def setting(*path: str | int, value: object) -> Change:
    """Return what puts a value at a place of the contents."""

    def change(contents: Any) -> None:
        for step in path[:-1]:
            contents = contents[step]
        contents[path[-1]] = value

    return change
