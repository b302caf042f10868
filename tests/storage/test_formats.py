"""Numbers of formats: older ones are brought up, newer ones refused and never replaced."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.check.journal import JournalStore
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.runs import session
from appca.runs.configuration import RunConfig
from appca.runs.fit import fit_run
from appca.runs.model_file import model_bytes, read_model
from appca.runs.store import RunStore
from appca.storage import cache, formats
from appca.storage.formats import TooNew, current, numbered, refuse_newer
from appca.words.errors import InputError
from tests.faults.writers import RUN, WRITERS, tree

NEWER = (
    r" was written by a newer version of appca \(format 3, this version reads up to [12]\); update"
)
NUMBERED = sorted(set(WRITERS) - {"file of the command line"})


def later(monkeypatch, number: int = 3) -> None:
    """Let the version that writes be a later one."""
    monkeypatch.setattr(formats, "FORMAT", number)


def test_what_has_no_number_is_of_format_1():
    assert current("It", {"a": 1}) == current("It", {"a": 1, "format": 1}) == {"a": 1}
    assert numbered({"a": 1}) == {"format": formats.FORMAT, "a": 1}


@pytest.mark.parametrize("number", [0, -1, 1.0, True, "1", None, [1]])
def test_what_is_no_number_is_damage(number):
    with pytest.raises(ValueError, match="format number is not valid"):
        current("It", {"format": number})


def test_older_formats_are_brought_up_step_by_step(monkeypatch):
    later(monkeypatch)
    steps = {1: lambda facts: {"b": facts["a"] + 1}, 2: lambda facts: {"c": facts["b"] * 10}}
    monkeypatch.setitem(formats.STEPS, "thing", steps)
    assert current("It", {"a": 1}, "thing") == {"c": 20}
    assert current("It", {"format": 2, "b": 5}, "thing") == {"c": 50}
    assert current("It", {"format": 3, "c": 7}, "thing") == {"c": 7}
    assert current("It", {"format": 2, "b": 5}, "a kind that did not change") == {"b": 5}
    with pytest.raises(TooNew, match=r"^It was .*\(format 4, this version reads up to 3\)"):
        current("It", {"format": 4}, "thing")


def test_a_number_of_its_own_has_its_own_bound():
    refuse_newer("It", 2, newest=2)
    with pytest.raises(InputError, match=r"format 3, .* up to 2\); update appca\.$"):
        refuse_newer("It", 3, newest=2)


@pytest.mark.parametrize("kind", NUMBERED)
def test_every_store_writes_the_number_and_keeps_what_a_later_version_wrote(
    kind, tmp_path, monkeypatch
):
    writer = WRITERS[kind]
    with monkeypatch.context() as then:
        later(then)
        writer.write(tmp_path, 1)
        assert writer.read(tmp_path) == 1
    before = tree(tmp_path)
    with pytest.raises(TooNew, match=NEWER):
        writer.write(tmp_path, 2)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("kind", NUMBERED)
def test_every_store_reads_what_has_no_number(kind, tmp_path):
    writer = WRITERS[kind]
    writer.write(tmp_path, 1)
    found = [path for path in tmp_path.rglob("*") if strip_number(path)]
    assert found
    assert writer.read(tmp_path) == 1
    writer.write(tmp_path, 2)
    assert writer.read(tmp_path) == 2


def strip_number(path: Path) -> bool:
    """Take the number and digests out of a file, as if an earlier version had written it."""
    if path.suffix == ".json":
        facts = json.loads(path.read_text())
        number = facts.pop("format", None)
        facts = {name: facts[name] for name in facts if name not in {"seal", "files"}}
        path.write_text(json.dumps(facts))
        return number == formats.FORMAT
    if path.suffix == ".npz":
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        if arrays.pop("format", None) is not None:
            np.savez(path, **arrays)
            return True
    return False


def test_a_run_of_a_later_version_is_told_and_not_shown(tmp_path, monkeypatch):
    with monkeypatch.context() as then:
        later(then)
        WRITERS["run"].write(tmp_path, 1)
    store = RunStore(tmp_path)
    assert store.list() == []
    (problem,) = store.problems()
    assert problem.startswith(f"Fit {RUN.id} was written by a newer version")
    assert store.damage(RUN.id) == problem
    with pytest.raises(TooNew):
        store.get(RUN.id)
    store.delete(RUN.id)
    assert store.problems() == ()


REFUSING: dict[str, Callable[[Path], object]] = {
    "journal": lambda home: JournalStore(home, "grids").begin("a" * 12, {"x": 2}),
    "cache": lambda home: cache.write(home / "a.npz", x=np.zeros(3)),
}


@pytest.mark.parametrize("kind", REFUSING)
def test_journals_and_caches_of_a_later_version_stay(kind, tmp_path, monkeypatch):
    with monkeypatch.context() as then:
        later(then)
        REFUSING[kind](tmp_path)
    before = tree(tmp_path)
    with pytest.raises(TooNew, match=NEWER):
        REFUSING[kind](tmp_path)
    assert tree(tmp_path) == before
    assert cache.read(tmp_path / "a.npz") is None
    assert JournalStore(tmp_path, "grids").config("a" * 12) is None


def test_settings_of_a_journal_come_back_without_the_number(tmp_path):
    store = JournalStore(tmp_path, "grids")
    store.begin("a" * 12, {"x": 2})
    assert store.config("a" * 12) == {"x": 2}
    assert json.loads((store.folder / ("a" * 12) / "config.json").read_text())["format"] == 2


def test_a_list_of_data_sets_leaves_out_those_of_a_later_version(tmp_path, monkeypatch):
    with monkeypatch.context() as then:
        later(then)
        WRITERS["data set"].write(tmp_path, 1)
    assert DatasetStore(tmp_path).list() == []


def test_files_that_people_save_are_refused_when_a_later_version_saved_them(tmp_path, monkeypatch):
    dataset = load("planes").take(np.arange(0, 900, 15))
    config = RunConfig(dataset.digest, {}, "PPCA", {"n_components": 2})
    run = RunStore(tmp_path).save(config, fit_run(dataset, config))
    with monkeypatch.context() as then:
        later(then)
        then.setattr(session, "VERSION", 3)
        saved = session.pack(session.Session(dataset, [run]))
        model = model_bytes(run.config, run.fitted, run.info)
    with pytest.raises(TooNew, match=rf"^“work\.appca”{NEWER}"):
        session.unpack("work.appca", io.BytesIO(saved), tmp_path / "b")
    assert not (tmp_path / "b").exists()
    with pytest.raises(TooNew, match=rf"^“model\.npz”{NEWER}"):
        read_model("model.npz", io.BytesIO(model))
    assert read_model("m.npz", io.BytesIO(model_bytes(run.config, run.fitted, run.info)))
