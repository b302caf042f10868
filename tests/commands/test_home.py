"""`appca check`: every flipped bit is found and named, with what would repair it."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.cli import main
from appca.commands.home import checked
from appca.data.store import DatasetStore
from appca.storage.journal import JournalStore
from tests.fixtures.home import DIGITS, NAME, copied

CACHES = {"embeddings", "projections", "selections", "numbers"}

OF_RUNS = ("labels.json", "numbers.json")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home that holds one of everything."""
    return copied(tmp_path / "home")


def stored_files(home: Path) -> list[Path]:
    return [file for file in sorted(home.rglob("[!.]*")) if file.is_file() and file.parent != home]


def flip(file: Path, place: int, bit: int = 3) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << bit
    file.write_bytes(content)


def test_a_flipped_bit_is_found_in_every_stored_file(home):
    rng = random.Random(8)
    assert list(checked(home)) == []
    files = stored_files(home)
    assert {file.relative_to(home).parts[0] for file in files} > CACHES
    for file in files:
        size = file.stat().st_size
        near = rng.randrange(size)
        flip(file, near)
        told = {line.file: line for line in checked(home)}
        assert str(file.relative_to(home)) in told, f"byte {near} of {file}"
        assert all(line.what and line.remedy for line in told.values())
        flip(file, near)
    assert list(checked(home)) == []


def test_an_emptied_and_a_deleted_file_is_named(home):
    for file in stored_files(home):
        name, content = str(file.relative_to(home)), file.read_bytes()
        file.write_bytes(b"")
        assert name in {line.file for line in checked(home)}, f"{name}, emptied"
        file.unlink()
        told = {line.file: line for line in checked(home)}
        if file.relative_to(home).parts[0] not in CACHES and file.name not in OF_RUNS:
            assert name in told, f"{name}, deleted"
            assert "delete the file" not in told[name].remedy
        file.write_bytes(content)
    assert list(checked(home)) == []


def test_a_journal_without_a_record_is_sound_and_goes_on(home):
    store = JournalStore(home, "grids")
    store.begin("0" * 12, {"of": 1})
    assert store.records("0" * 12) == []
    assert list(checked(home)) == []
    store.append("0" * 12, ["a", 1.5])
    store.begin("0" * 12, {"of": 1})
    assert store.records("0" * 12) == [["a", 1.5]]
    (store.folder / ("0" * 12) / "records.txt").write_bytes(b"")
    (line,) = checked(home)
    assert line.problem == "records.txt is empty"


def test_what_is_damaged_is_named_with_its_file_and_what_would_repair_it(home, capsys):
    names = {one.name: one.digest for one in DatasetStore(home).list()}
    digits = DatasetStore(home).path(names[DIGITS])
    SelectionStore(home).save(digits.name, "odd ones", np.arange(48) % 2 == 1)
    odd = max(home.glob("selections/*/*.npz"), key=lambda file: file.stat().st_mtime_ns)
    assert main(["check", "--home", str(home)]) == 0
    assert capsys.readouterr().out == f"{home} is sound\n"
    run = next(path.parent for path in home.glob("runs/*/config.json") if NAME in path.read_text())
    for file in (digits / "matrix.npy", run / "arrays.npz", odd):
        flip(file, file.stat().st_size // 2)
    next(home.glob("embeddings/*.npz")).write_bytes(b"")
    (next(home.glob("studies/*/config.json")).parent / "arrays.npz").unlink()
    assert main(["check", "--home", str(home)]) == 1
    out = capsys.readouterr().out.replace(str(home), "HOME")
    for line in (
        f"run {run.name} “{NAME}”: arrays.npz has been changed since it was "
        f"stored (runs/{run.name}/arrays.npz); fit it again: aPPCA, K = 4, L = 2",
        "arrays.npz is missing",
        "5 damaged files in HOME\n",
    ):
        assert line in out, out
    assert main(["check", "--home", str(home), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["files"]
    assert len(told) == 5
    assert set(told[0]) == {"what", "file", "problem", "remedy"}
