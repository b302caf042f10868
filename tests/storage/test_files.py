"""Formats and checksums: another format is refused and kept, and every changed bit is noticed."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs import session
from appca.runs.fit import fit_run
from appca.runs.model_file import model_bytes, read_model
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.storage import files
from appca.storage.files import (
    Damaged,
    OtherFormat,
    check_file,
    check_sealed,
    digests_of,
    line_of,
    lines_in,
    read_json,
    read_numbered,
    refuse_other_format,
    without_number,
    write_json,
    write_numbered,
)
from appca.storage.journal import JournalStore
from tests.faults.writers import RUN, WRITERS, tree

NEWER = (
    r" was written by a newer version of appca \(format 4; this version reads format \d\); update"
)
STORES = {
    **{kind: writer.write for kind, writer in WRITERS.items() if "command" not in kind},
    "journal": lambda home, x: JournalStore(home, "grids").begin("a" * 12, {"x": x}),
    "cache": lambda home, x: files.write_cached(home / "a.npz", x=np.full(3, x)),
}


def later(monkeypatch) -> None:
    """Let the version that writes be a later one."""
    monkeypatch.setattr(files, "FORMAT", 4)


@pytest.mark.parametrize("number", [0, -1, 1.0, True, "1", None, [1]])
def test_what_is_no_number_is_damage(number):
    with pytest.raises(ValueError, match="format number is not valid"):
        without_number("It", {"format": number})


def test_another_format_is_refused_in_one_sentence():
    assert without_number("It", {"format": 3, "a": 1}) == {"a": 1}
    with pytest.raises(OtherFormat, match=r"^It was .*an older version .*format 2; .*3\); make it"):
        without_number("It", {"format": 2})
    refuse_other_format("It", 1, 1)
    with pytest.raises(OtherFormat, match=r"^It was .*a newer version .*format 2; .*1\); update a"):
        refuse_other_format("It", 2, 1)


@pytest.mark.parametrize("kind", STORES)
def test_no_store_replaces_what_another_version_wrote(kind, tmp_path, monkeypatch):
    with monkeypatch.context() as then:
        later(then)
        STORES[kind](tmp_path, 1)
        if kind in WRITERS:
            assert WRITERS[kind].read(tmp_path) == 1
    before = tree(tmp_path)
    with pytest.raises(OtherFormat, match=NEWER):
        STORES[kind](tmp_path, 2)
    assert tree(tmp_path) == before
    assert DatasetStore(tmp_path).list() == []
    assert files.read_cached(tmp_path / "a.npz") is None
    assert JournalStore(tmp_path, "grids").config("a" * 12) is None


def test_a_run_of_another_version_is_named_and_not_shown(tmp_path, monkeypatch):
    with monkeypatch.context() as then:
        later(then)
        WRITERS["run"].write(tmp_path, 1)
    store = RunStore(tmp_path)
    assert store.list() == []
    (problem,) = store.damaged().values()
    assert problem.startswith(f"Fit {RUN.id} was written by a newer version")
    assert store.damage(RUN.id) == problem
    with pytest.raises(OtherFormat):
        store.get(RUN.id)
    store.delete(RUN.id)
    assert store.damaged() == {}


def test_descriptions_carry_the_number_and_give_it_to_nobody(tmp_path):
    store = JournalStore(tmp_path, "grids")
    store.begin("a" * 12, {"x": 2})
    assert store.config("a" * 12) == {"x": 2}
    file = store.folder / ("a" * 12) / "config.json"
    assert json.loads(file.read_text())["format"] == files.FORMAT


def test_files_that_people_save_are_refused_when_a_later_version_saved_them(tmp_path, monkeypatch):
    dataset = load("planes").take(np.arange(0, 900, 15))
    config = RunConfig(dataset.digest, {}, "PPCA", {"n_components": 2})
    run = RunStore(tmp_path).save(config, fit_run(dataset, config))
    with monkeypatch.context() as then:
        later(then)
        then.setattr(session, "VERSION", 4)
        saved = session.pack(session.Session(dataset, [run]))
        model = model_bytes(run.config, run.fitted, run.info)
    with pytest.raises(OtherFormat, match=rf"^“work\.appca”{NEWER}"):
        session.unpack("work.appca", io.BytesIO(saved), tmp_path / "b")
    assert not (tmp_path / "b").exists()
    with pytest.raises(OtherFormat, match=rf"^“model\.npz”{NEWER}"):
        read_model("model.npz", io.BytesIO(model))
    assert read_model("m.npz", io.BytesIO(model_bytes(run.config, run.fitted, run.info)))


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_byte_of_a_description_counts(tmp_path):
    file = tmp_path / "facts.json"
    write_json(file, {"a": 1, "größe": [1.5, None]}, "It")
    content = file.read_bytes()
    assert read_json(file, "It") == {"a": 1, "größe": [1.5, None]}
    for place in range(len(content)):
        file.write_bytes(flipped(content, 8 * place + place % 8))
        with pytest.raises(ValueError):  # noqa: PT011 (its own, or of the parser)
            read_json(file, "It")
    file.write_text('{"format": 3, "a": 1}')
    with pytest.raises(Damaged):
        read_json(file, "It")


def test_every_bit_of_an_array_counts(tmp_path):
    file = tmp_path / "a.npz"
    write_numbered(file, {"x": np.arange(99.0)}, "It")
    content = file.read_bytes()
    assert read_numbered(file, "It")["x"].tolist() == list(range(99))
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None, "it is a zip file for everybody else"
    check_sealed(file)
    for bit in range(0, 8 * len(content), 67):
        file.write_bytes(flipped(content, bit))
        with pytest.raises(Damaged):
            check_sealed(file)


def test_every_bit_of_a_line_counts():
    content = line_of('["a", 1]') + line_of("[2]")
    assert lines_in(content) == (['["a", 1]', "[2]"], 0)
    for bit in range(8 * len(content)):
        assert lines_in(flipped(content, bit))[1] > 0, bit


def test_a_file_has_one_digest(tmp_path):
    file = Path(tmp_path / "x")
    file.write_bytes(b"one")
    digests = digests_of(tmp_path, ["x"])
    check_file(file, digests["x"])
    for other in (b"onf", b"on", b"one\0"):
        file.write_bytes(other)
        with pytest.raises(Damaged):
            check_file(file, digests["x"])
