"""Small session files that say much: bounded in what is stored, and unpacked in another process."""

import io
import os
import zipfile

import numpy as np
import pytest

from appca.analysis.selections import SavedSelection
from appca.data.readers import process
from appca.data.store import DatasetStore
from appca.runs import session, store
from appca.runs.session import Session, pack, unpack, unpack_apart
from appca.runs.store import RunStore
from appca.storage import files
from appca.storage.packed import Packed
from appca.words import InputError
from tests.attacks.forged import altered, fitted, npy, setting, small, sound
from tests.memory import needs_proc
from tests.sentences import faults_of

LISTS = [[]] * 300_000  # in less than 10 kB


@pytest.fixture(scope="module")
def dataset():
    return small()


@pytest.fixture(scope="module")
def run(dataset, tmp_path_factory):
    return fitted(tmp_path_factory.mktemp("sender"), dataset, n_components=3, n_active=2)


@pytest.fixture(scope="module")
def content(run, dataset):
    return sound(run, dataset)


TOO_MUCH = {
    "a note of empty lists": (setting("dataset", "provenance", "note", value=LISTS), "provenance"),
    "an unknown parameter of lists": (
        setting("runs", 0, "config", "parameters", "evil", value=LISTS),
        "parameters",
    ),
    "a preprocessing of lists": (
        setting("runs", 0, "config", "preprocessing", "centre", value=LISTS),
        "preprocessing",
    ),
    "versions of a hundred thousand packages": (
        setting("runs", 0, "info", "versions", value={f"p{i}": "" for i in range(100_000)}),
        "versions",
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_session_that_says_too_much_is_refused_and_nothing_is_stored(content, tmp_path, name):
    change, field = TOO_MUCH[name]
    with pytest.raises(InputError, match=f"“{field}”") as refused:
        unpack("bad.appca", altered(content, change), tmp_path)
    assert len(str(refused.value)) < 300
    assert faults_of(str(refused.value), "bad.appca") == ""
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_field_of_a_session_is_never_stored(content, tmp_path):
    unpack("bad.appca", altered(content, setting("note", value=LISTS)), tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.json")) < 20_000


@pytest.fixture
def file(content, run, dataset, tmp_path):
    few = np.arange(dataset.n_rows) < 3
    kept = Session(dataset, [run], [SavedSelection("few", few)], ~few, run.id)
    (tmp_path / "x.appca").write_bytes(pack(kept))
    return tmp_path / "x.appca"


def test_a_session_unpacked_apart_is_the_same(file, tmp_path, monkeypatch):
    with file.open("rb") as stream:
        here = unpack("x.appca", stream, tmp_path / "a")

    def never(*_):
        raise AssertionError("the server itself unpacks the file")

    monkeypatch.setattr(session, "unpack", never)
    monkeypatch.setattr(session, "Packed", never)
    there = unpack_apart("x.appca", file, tmp_path / "b", tmp_path / "scratch")
    assert there._replace(selected=None) == here._replace(selected=None)
    assert np.array_equal(there.selected, here.selected)
    assert [run.id for run in RunStore(tmp_path / "b").list()] == list(here.runs)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_refusal_that_was_raised_twice_ends_the_other_process_s_work(content, tmp_path):
    change = setting("runs", 0, "config", "parameters", "n_components", value="abc")
    (tmp_path / "bad.appca").write_bytes(altered(content, change).getvalue())
    with pytest.raises(InputError, match="n_components must be a whole number"):
        unpack_apart("bad.appca", tmp_path / "bad.appca", tmp_path / "home", tmp_path / "scratch")


@needs_proc
def test_a_session_of_great_size_costs_its_own_process_only(
    content, dataset, tmp_path, monkeypatch
):
    monkeypatch.setattr(process, "MEMORY", 100 << 20)
    monkeypatch.setattr("appca.storage.packed._SMALL", 1 << 31)  # of this process: not asked
    rows = np.zeros((30_000_000, 2), np.uint8)
    large = tmp_path / "large.appca"
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(large, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, npy(rows) if name == "data/matrix.npy" else old.read(name))
    assert large.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"“large\.appca” cannot be read in 105 MB, the most"):
        unpack_apart("large.appca", large, tmp_path / "home", tmp_path / "scratch")
    assert not (tmp_path / "home").exists() or not RunStore(tmp_path / "home").list()


def test_a_list_of_runs_opens_those_alone_that_have_changed(content, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SETTLED_SECONDS", 0)
    opened = []
    read = store._read_meta
    monkeypatch.setattr(store, "_read_meta", lambda folder: opened.append(folder) or read(folder))
    (one,) = unpack("x.appca", io.BytesIO(content), tmp_path).runs
    here = RunStore(tmp_path)
    assert [run.id for run in here.list()] == [one]
    opened.clear()
    assert [run.id for run in here.list()] == [one]
    assert here.damaged() == {}
    assert opened == []
    here.rename(one, "another")
    assert [run.custom_name for run in here.list()] == ["another"]
    config = here.folder / one / "config.json"
    config.write_bytes(config.read_bytes().replace(b"another", b"anather"))
    assert here.list() == []
    assert len(here.damaged()) == 1


def test_a_list_of_data_sets_opens_those_alone_that_have_changed(content, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SETTLED_SECONDS", 0)
    digest = unpack("x.appca", io.BytesIO(content), tmp_path).dataset
    here = DatasetStore(tmp_path)
    assert [about.digest for about in here.list()] == [digest]
    monkeypatch.setattr("appca.data.store._read_meta", None)
    assert [about.digest for about in here.list()] == [digest]
    os.utime(here.folder / digest / "meta.json")
    assert here.list() == []


@pytest.mark.parametrize(
    ("member", "content", "words"),
    [
        ("data/matrix.npy", bytes(70 << 20), "unpacks to 73 MB, more than 67 MB"),
        ("session.json", b"[" * (9 << 20), "holds a text of 9,437,184 bytes"),
    ],
)
def test_a_small_session_file_does_not_unpack_to_much(member, content, words):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    with pytest.raises(InputError, match=words) as refused:
        Packed("work.appca", stream).json("session.json")
    assert faults_of(str(refused.value), "work.appca") == ""
