"""What the project itself has written, to be broken: data sets, runs, models and sessions."""

import atexit
import io
import json
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from appca.analysis.groups.selections import SavedSelection
from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.runs.configuration import RunConfig
from appca.runs.fit import fit_run, project
from appca.runs.model_file import model_bytes, read_model
from appca.runs.session import Session, pack, unpack
from appca.runs.store import Run, RunStore, title
from appca.storage.digests import digests_of
from appca.words.errors import InputError
from tests.forged import reseal, rewrite
from tests.sentences import faults_of

MEMORY = Path("/dev/shm")  # where thousands of small files are written without waiting for a disk
FAST = MEMORY if os.access(MEMORY, os.W_OK) else None


class Work:
    """A home in which somebody has fitted a small data set, and files of that work."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(dir=FAST))
        atexit.register(shutil.rmtree, self.home)
        rng = np.random.default_rng(0)
        labels = {"kind": np.array(list("aabbcc") * 5), "size <b>": np.arange(30) / 7}
        ids = np.array([f"r{i}" for i in range(30)])
        self.dataset = Dataset("small", rng.normal(size=(30, 4)), ids, labels, (2, 2))
        self.digest = DatasetStore(self.home).put(self.dataset)
        parameters = {"n_components": 3, "n_active": 1, "init": "pca", "max_iter": 50}
        self.config = RunConfig(self.digest, {}, "aPPCA", parameters)
        self.run = RunStore(self.home).save(self.config, fit_run(self.dataset, self.config))

    def file(self, name: str) -> Path:
        folder = "runs" if name in ("config.json", "arrays.npz") else "datasets"
        return self.home / folder / (self.run.id if folder == "runs" else self.digest) / name


@cache
def work() -> Work:
    return Work()


@cache
def stored(name: str) -> tuple[bytes, ...]:
    return (work().file(name).read_bytes(),)


@cache
def models() -> tuple[bytes, ...]:
    run = work().run
    return (model_bytes(run.config, run.fitted, run.info),)


@cache
def sessions() -> tuple[bytes, ...]:
    rows = np.arange(30) < 5
    session = Session(
        work().dataset, [work().run], [SavedSelection("few", rows, 0.0)], rows, work().run.id
    )
    return (pack(session), pack(session, with_data=False))


def open_data(name: str, data: bytes) -> Dataset:
    """Open the stored data set with this file in place of its own."""
    with _Broken(name, data):
        store = DatasetStore(work().home)
        store.list()
        return store.get(work().digest)


def open_run(name: str, data: bytes) -> Dataset:
    """Open the run with this file in place of its own; every sentence about it is checked."""
    with _Broken(name, data):
        store = RunStore(work().home)
        listed, told = store.list(), store.problems()
        faults = "; ".join(filter(None, map(faults_of, told)))
        assert not faults, faults
        run = store.get(work().run.id)
        assert (run is None) == bool(told) != bool(listed)
        if run is None:
            raise InputError(told[0])
        _use(run)
    return work().dataset


def open_model(data: bytes) -> Dataset:
    config, _, fitted, _ = read_model("model.npz", io.BytesIO(data))
    try:
        with np.errstate(all="ignore"):  # numbers of any size may stand in a model
            found = project(config, fitted, work().dataset.X)
    except ValueError as error:  # the models know no InputError; it must be a sentence all the same
        raise InputError(str(error)) from error
    assert found.scores.shape[0] == 30
    return work().dataset


def open_session(data: bytes) -> Dataset:
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        found = unpack("work.zip", io.BytesIO(data), Path(folder))
        dataset = DatasetStore(Path(folder)).get(found.dataset)
        for run_id in found.runs:
            _use(RunStore(Path(folder)).get(run_id))
        return Dataset(  # what was mapped from the folder, which goes
            dataset.name, np.array(dataset.X), dataset.ids, dataset.labels, dataset.image_shape
        )


def _use(run: Run) -> None:
    """Ask of a run what pages ask."""
    assert title(run.config)
    assert run.config.id
    assert run.config.k >= 1
    assert (run.partial, run.named, float(run.created), str(run.origin)) is not None
    assert run.info.n_iter is not None
    assert run.info.stop_reason
    for values in run.fitted.to_arrays().values():
        assert values.ndim == 0 or values.flags.writeable is False


class _Broken:
    """The stored file is another one, with digests that fit, as long as this lasts.

    Without those, whatever it says would be refused before it is looked at.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self.file, self.data = work().file(name), data
        described = "config.json" if name in ("config.json", "arrays.npz") else "meta.json"
        self.description = self.file.with_name(described)

    def __enter__(self) -> None:
        self.sound = {path: path.read_bytes() for path in (self.file, self.description)}
        self.file.write_bytes(self.data)
        if self.file == self.description:
            with suppress(ValueError, RecursionError):
                reseal(self.file)
        else:
            files = json.loads(self.description.read_text())["files"]
            rewrite(self.description, files=files | digests_of(self.file.parent, [self.file.name]))

    def __exit__(self, *_: object) -> None:
        for path, content in self.sound.items():
            path.write_bytes(content)
