"""Forged JSON files and sessions with valid digests."""

import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.runs.fit import fit_run
from appca.runs.run import RunConfig
from appca.runs.session import CONTENTS, Session, pack
from appca.runs.store import Run, RunStore
from appca.storage.files import DIGEST, as_json

Change = Callable[[dict[str, Any]], object]


def _facts(file: Path) -> dict[str, Any]:
    facts = json.loads(file.read_text(encoding="utf-8"))
    facts.pop(DIGEST, None)
    return facts


def rewrite(file: Path, **changes: object) -> None:
    """Change some facts in a file, and update its digest."""
    file.write_bytes(as_json(_facts(file) | changes))


def forge(file: Path, change: Callable[[str], str]) -> None:
    """Change the text of a file, and update its digest."""
    text = json.dumps(_facts(file), indent=1, ensure_ascii=False)
    file.write_bytes(as_json(json.loads(change(text))))


@cache
def small() -> Dataset:
    return load("wine").take(np.arange(0, 178, 4))


def fitted(home: Any, **parameters: Any) -> Run:
    """Fit the small data set and store the run."""
    sizes = {"n_components": 3, "n_active": 2} | parameters
    config = RunConfig(small().digest, suggest(small()).to_dict(), "aPPCA", sizes)
    return RunStore(home).save(config, fit_run(small(), config))


@cache
def sent() -> tuple[Run, bytes]:
    """Return a run in the home of a sender, and its session file."""
    run = fitted(tempfile.mkdtemp(prefix="sender-"))
    return run, pack(Session(small(), [run], opened=run.id))


def altered(change: Change = id, **members: bytes | None) -> io.BytesIO:
    """Return the session file with changed contents, and replaced or removed members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sent()[1])) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            given: bytes | None = members.get(name, old.read(name))
            if name == CONTENTS:
                contents = json.loads(old.read(name))
                change(contents)
                given = json.dumps(contents).encode()
            if given is not None:
                new.writestr(name, given)
    buffer.seek(0)
    buffer.name = "bad.appca"
    return buffer


def rolled() -> io.BytesIO:
    """Return the session file with scores shifted by one row."""
    return altered(**{"runs/0/scores.npy": npy(np.roll(sent()[0].fitted.scores, 1, 0))})


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def setting(*path: str | int, value: object) -> Change:
    """Return a change that sets a value in the contents."""

    def change(contents: Any) -> None:
        for step in path[:-1]:
            contents = contents[step]
        contents[path[-1]] = value

    return change
