"""All writers of stores: an entry in two versions, and a function that recognizes the version."""

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from appca.analysis.selections import SelectionStore
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.cli import main
from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.jobs.tasks import QualityConfig
from appca.runs.run import FitResult, RunConfig
from appca.runs.store import Labels, RunStore, labels, put
from appca.studies.catalogue import STUDIES
from appca.studies.store import StudyStore
from appca.studies.study import Outcome
from tests.fitted_runs import differing, fitted_run, info_of

ROWS, DIGEST = 200, "d" * 64
RUN = RunConfig(DIGEST, {}, "aPPCA", {"n_components": 4, "n_active": 2})
MAP, QUALITY = EmbeddingConfig(DIGEST, {}), QualityConfig(RUN.to_dict(), 4, 2)
STUDY = STUDIES["z-priors"]
OPTIONS = STUDY.options("quick")
FITTED = fitted_run(np.ones((ROWS, 4), dtype=bool), components=np.ones((4, 7)))
RESULT, NAMES = FitResult(FITTED, info_of(n_rows=ROWS)), np.array([f"row {i}" for i in range(ROWS)])
X = np.arange(ROWS * 7, dtype=np.float32).reshape(ROWS, 7)


class Refused(Exception):
    """The command line left with exit code 1; the text is what it said."""


class Writer(NamedTuple):
    """One way of writing."""

    write: Callable[[Path, int], object]
    read: Callable[[Path], int | None]
    waits: bool = False  # a mere renewal of what is there; on a full disk it is put off in silence


def _dataset(home: Path) -> int | None:
    (found,) = DatasetStore(home).list() or (None,)
    if found is None:
        return None
    back = DatasetStore(home).get(found.digest)
    assert back.X.tobytes() == X.tobytes()
    assert back.labels["class"].tolist() == NAMES.tolist()
    return int(back.name)


def _stored(home: Path):
    return RunStore(home).get(RUN.id) or RunStore(home).save(RUN, RESULT)


def _run(home: Path) -> int | None:
    (found,) = RunStore(home).list() or (None,)
    if found is None or not found.custom_name:
        return None
    assert differing(found.fitted, FITTED) == []
    return int(found.name)


def _labels(home: Path) -> int | None:
    run = RunStore(home).get(RUN.id)
    return int(labels(run).names[0] or 0) or None if run else None


def _embedding(home: Path) -> int | None:
    found = EmbeddingStore(home).get(MAP.id)
    return int(*np.unique(found.coordinates)) if found and len(found.coordinates) else None


def _save_study(home: Path, version: int) -> None:
    table = [{"row": row, "version": version} for row in range(ROWS)]
    found = Outcome({"table": table}, {"x": np.full(ROWS, version)}, [], f"{version}")
    StudyStore(home).save(STUDY, OPTIONS, found, 1.0)


def _study(home: Path) -> int | None:
    found = StudyStore(home).get(STUDY.id(OPTIONS))
    if found is None:
        return None
    told = {row["version"] for row in found.outcome.tables["table"]}
    assert told == set(found.outcome.arrays["x"]) == {int(found.outcome.text)}
    return told.pop()


def _compare(home: Path, version: int) -> None:
    journal = QUALITY.journal(home)
    journal.begin(QUALITY.id, QUALITY.to_dict())
    journal.append(QUALITY.id, ["own", {"version": version, "lines": list(range(ROWS))}])


def _selection(home: Path) -> int | None:
    (found,) = SelectionStore(home).list(DIGEST, ROWS) or (None,)
    return int(found.mask.sum()) if found else None


def _export(home: Path, version: int) -> None:
    """Write a file by the command line; its messages are kept, not printed."""
    home.mkdir(exist_ok=True)
    told, source = io.StringIO(), home.with_name(f"{version}.csv")
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        code = main(["data", str(source), "--out", str(home / "out.npz")])
    if code:
        assert code == 1
        raise Refused(told.getvalue().removeprefix("appca: ").rstrip("\n"))


def _exported(home: Path) -> int | None:
    if not (home / "out.npz").exists():
        return None
    with np.load(home / "out.npz", allow_pickle=False) as archive:
        return int(archive["X"][0, 0])


WRITERS = {
    "data set": Writer(
        lambda home, version: DatasetStore(home).put(
            Dataset(f"{version}", X, NAMES, {"class": NAMES})
        ),
        _dataset,
    ),
    "run": Writer(
        lambda home, version: RunStore(home).save(RUN, RESULT, name=f"{version}"), _run, waits=True
    ),
    "name of a run": Writer(
        lambda home, version: RunStore(home).rename(_stored(home).id, f"{version}"), _run
    ),
    "names of components": Writer(
        lambda home, version: put(_stored(home), Labels((f"{version}", "", "", ""), (1,) * 4)),
        _labels,
    ),
    "embedding": Writer(
        lambda home, version: EmbeddingStore(home).save(
            MAP, Embedding(np.full((ROWS, 2), version, dtype=np.float32))
        ),
        _embedding,
    ),
    "study": Writer(_save_study, _study),
    "comparison": Writer(
        _compare, lambda home: next((line["version"] for line in QUALITY.lines(home)), None)
    ),
    "selection": Writer(
        lambda home, version: SelectionStore(home).save(DIGEST, "mine", np.arange(ROWS) < version),
        _selection,
    ),
    "file of the command line": Writer(_export, _exported),
}


def sources(folder: Path) -> None:
    """Lay down the tables from which the command line makes its file."""
    for version in (1, 2):
        lines = [f"{version},{row}" for row in range(ROWS)]
        (folder / f"{version}.csv").write_text("a,b\n" + "\n".join(lines) + "\n")


def tree(home: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content; the moment of writing left out."""

    def timeless(path: Path) -> bytes:
        content = path.read_bytes()
        if path.suffix != ".json":
            return content
        facts = {key: value for key, value in json.loads(content).items() if key != "created"}
        return json.dumps(facts).encode()

    files = (path for path in home.rglob("*") if path.is_file())
    return {str(path.relative_to(home)): timeless(path) for path in files}
