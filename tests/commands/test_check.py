"""`appca check`: every flipped bit is found and named, with what would mend it."""

import io
import json
import random
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.check.journal import JournalStore
from appca.analysis.groups.selections import SelectionStore
from appca.cli import main
from appca.commands.check import checked
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.runs import labels
from appca.runs.session import unpack
from appca.runs.store import RunStore
from appca.storage.digests import digests_of
from appca.storage.files import read_arrays, write_json
from appca.storage.formats import FILES
from appca.words.errors import InputError
from tests.fixtures.contents import FIXTURES

FLIPS, AT_ONCE = 200, 10
CACHES = {"embeddings", "projections", "quality"}  # made again when needed


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home that holds one of everything, and what jobs printed."""
    source = FIXTURES / "home_format_2"
    home = Path(shutil.copytree(source, tmp_path / "home", copy_function=shutil.copyfile))
    for folder in (home / "jobs").iterdir():
        (folder / "log.txt").write_text("pass 1\n" * 9)
        files = [file.name for file in folder.glob("*.[ct][sx][vt]")]
        write_json(folder / "sealed.json", {FILES: digests_of(folder, files)}, "The job")
    return home


def flip(file: Path, place: int, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << bit
    file.write_bytes(content)


def test_a_flipped_bit_is_found_wherever_it_is(home):
    rng = random.Random(8)
    by_folder = defaultdict(list)
    for file in sorted(home.rglob("*")):
        if file.is_file() and file.stat().st_size:
            by_folder[file.parent].append(file)
    assert list(checked(home)) == []
    for _ in range(FLIPS // AT_ONCE):
        # one a folder: of what a damaged description lists nothing can be said
        places = [place_in(rng.choice(by_folder[one]), rng) for one in folders(by_folder, rng)]
        for place in places:
            flip(*place)
        told = list(checked(home))
        for file, byte, bit in places:
            where = f"bit {bit} of byte {byte} of {file}"
            (line,) = [one for one in told if one.file == str(file.relative_to(home))] or [None]
            assert line, where
            assert line.what, where
            assert line.remedy, where
        assert len(told) == AT_ONCE
        for place in places:
            flip(*place)
    assert list(checked(home)) == []


@pytest.mark.thorough
def test_an_emptied_and_a_deleted_file_is_named_wherever_it_is(home):
    keep_person_files(home)
    files = [file for file in sorted(home.rglob("[!.]*")) if file.is_file()]
    files = [file for file in files if file.stat().st_size and file.parent != home]
    kinds = {file.relative_to(home).parts[0] for file in files}
    assert kinds > CACHES
    assert list(checked(home)) == []
    for file in files:
        name, content = str(file.relative_to(home)), file.read_bytes()
        file.write_bytes(b"")
        assert name in {line.file for line in checked(home)}, f"{name}, emptied"
        file.unlink()
        told = {line.file: line for line in checked(home)}
        if file.relative_to(home).parts[0] not in CACHES:
            assert name in told, f"{name}, deleted"
            assert "delete the file" not in told[name].remedy
        file.write_bytes(content)
    assert list(checked(home)) == []


def keep_person_files(home: Path) -> None:
    """Store what a person made as the present version does, with a note beside it."""
    run = RunStore(home).get(next(home.glob("runs/*/labels.json")).parent.name)
    labels.put(run, labels.labels(run))
    for digest, name in [
        (file.parent.name, str(read_arrays(file)["name"])) for file in home.glob("selections/*/*")
    ]:
        kept = SelectionStore(home)
        n_rows = DatasetStore(home).get(digest).n_rows
        (saved,) = [one for one in kept.list(digest, n_rows) if one.name == name]
        kept.save(digest, name, saved.mask)


def test_what_a_person_deletes_in_the_app_is_no_damage(home):
    keep_person_files(home)
    digest = next(home.glob("selections/*")).name
    kept, n_rows = SelectionStore(home), DatasetStore(home).get(digest).n_rows
    first, *_ = kept.list(digest, n_rows)
    kept.rename(digest, first.name, "another name", n_rows)
    assert list(checked(home)) == []
    next(file for file in home.glob(f"selections/{digest}/*.npz")).unlink()
    (line,) = checked(home)
    assert line.what.startswith("selection “"), "it is still known by its name"
    assert line.remedy == "select the rows and save them again"
    for name in ("another name", *(one.name for one in kept.list(digest, n_rows))):
        kept.delete(digest, name)
    for mark in home.glob(f"selections/{digest}/.*"):
        kept.delete(digest, mark.read_text())
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


def folders(among: dict[Path, list[Path]], rng: random.Random) -> list[Path]:
    """Draw folders by how much is in them, and by how many there are."""
    sizes = [sum(file.stat().st_size for file in among[one]) for one in among]
    drawn = rng.choices(list(among), sizes, k=AT_ONCE // 2)
    others = [one for one in among if one not in drawn]
    return [*set(drawn), *rng.sample(others, AT_ONCE - len(set(drawn)))]


def place_in(file: Path, rng: random.Random) -> tuple[Path, int, int]:
    """Draw a bit of a file: half of them near its ends, where numbers and digests stand."""
    size = file.stat().st_size
    near = rng.randrange(min(size, 120))
    return file, rng.choice([near, size - 1 - near, *[rng.randrange(size)] * 2]), rng.randrange(8)


@pytest.mark.parametrize(
    "pattern", ["runs/*/labels.json", "selections/*/*.npz", "masked/*/records.txt"]
)
def test_every_part_of_a_file_matters(home, tmp_path, pattern):
    file = next(home.glob(pattern))
    alone = tmp_path / "alone"
    part = alone / file.relative_to(home)
    shutil.copytree(file.parent, part.parent, ignore=shutil.ignore_patterns("arrays.npz"))
    for byte in range(0, file.stat().st_size, 19):
        flip(part, byte, byte % 8)
        assert file.name in {Path(line.file).name for line in checked(alone)}, byte
        flip(part, byte, byte % 8)


def test_what_is_damaged_is_named_with_its_file_and_what_would_mend_it(home, capsys):
    kept = {one.name: one.digest for one in DatasetStore(home).list()}
    digits = DatasetStore(home).path(kept["Forty-eight digits"])
    SelectionStore(home).save(digits.name, "odd ones", np.arange(48) % 2 == 1)
    odd = max(home.glob("selections/*/*.npz"), key=lambda file: file.stat().st_mtime_ns)
    assert main(["check", "--home", str(home)]) == 0
    assert capsys.readouterr().out == f"{home} is sound\n"
    run = next(home.glob("runs/*/labels.json")).parent
    job = next(home.glob("jobs/*/curve.csv"))
    for file in (digits / "matrix.npy", run / "arrays.npz", run / "labels.json", odd, job):
        flip(file, 200, 3) if file.stat().st_size > 200 else flip(file, 10, 1)
    next(home.glob("embeddings/a*.npz")).write_bytes(b"")
    (next(home.glob("studies/*/config.json")).parent / "arrays.npz").unlink()
    assert main(["check", "--home", str(home)]) == 1
    out = capsys.readouterr().out.replace(str(home), "HOME")
    for line in (
        f"data set “Forty-eight digits”: matrix.npy has been changed since it was stored "
        f"(datasets/{digits.name}/matrix.npy); open Digits, 8 × 8 again on the page Data",
        f"run {run.name} “Strokes, the first try”: arrays.npz has been changed since it was "
        f"stored (runs/{run.name}/arrays.npz); fit it again: aPPCA, K = 4, L = 2",
        f"(runs/{run.name}/labels.json); delete the file, then name the components again",
        "selection “odd ones”: ",
        "select the rows and save them again",
        f"record of the job {job.parent.name}: curve.csv has been changed",
        "map a6b515fb4d67: ",
        "delete the file; it is computed again when needed",
        "arrays.npz is missing",
        "run it again on the page Paper",
        "7 damaged files in HOME\n",
    ):
        assert line in out, out
    assert main(["check", "--home", str(home), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["files"]
    assert len(told) == 7
    assert set(told[0]) == {"what", "file", "problem", "remedy"}
    assert {line["file"] for line in told} >= {f"datasets/{digits.name}/matrix.npy"}


def test_what_the_remedies_say_mends(home, capsys):
    store, wine = DatasetStore(home), load("wine")
    matrix = store.folder / store.put(wine) / "matrix.npy"
    flip(matrix, matrix.stat().st_size // 2, 0)
    for file in [*home.glob("jobs/*/curve.csv")][:1]:
        flip(file, 0, 0)
        shutil.rmtree(file.parent)
    assert main(["check", "--home", str(home)]) == 1
    store.put(wine)
    assert main(["check", "--home", str(home)]) == 0
    assert np.array_equal(store.get(wine.digest).X, wine.X)
    capsys.readouterr()


def test_an_imported_run_comes_back_from_the_file_it_came_in(home, capsys):
    session = FIXTURES / "home_format_2.appca"
    home = home / "empty"
    (run,) = unpack(session.name, io.BytesIO(session.read_bytes()), home).runs
    flip(home / "runs" / run / "arrays.npz", 300, 1)
    with pytest.raises(InputError, match=r"; open the file that it came in again\.$"):
        _ = RunStore(home).get(run).fitted
    assert main(["check", "--home", str(home)]) == 1
    assert "; open the file that it came in again: aPPCA, K = 4, L = 2" in capsys.readouterr().out
    unpack(session.name, io.BytesIO(session.read_bytes()), home)
    assert main(["check", "--home", str(home)]) == 0


def test_of_a_home_of_format_1_what_cannot_be_read_is_found(tmp_path, capsys):
    source = FIXTURES / "home_format_1"
    home = Path(shutil.copytree(source, tmp_path / "home", copy_function=shutil.copyfile))
    assert main(["check", "--home", str(home)]) == 0
    assert capsys.readouterr().out == f"{home} is sound\n"
    matrix = next(home.glob("datasets/*/matrix.npy"))
    flip(matrix, matrix.stat().st_size - 5, 1)
    assert main(["check", "--home", str(home)]) == 1, "its name is the digest of it all"
    assert "data set “" in capsys.readouterr().out
    flip(matrix, matrix.stat().st_size - 5, 1)
    flip(next(home.glob("runs/*/arrays.npz")), 300, 1)
    assert main(["check", "--home", str(home)]) == 1
    assert "1 damaged file in" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path, capsys):
    assert main(["check", "--home", str(tmp_path / "no")]) == 1
    assert capsys.readouterr().err == (
        f"appca: There is no folder “{tmp_path}/no” to check; name one that appca has written to.\n"
    )
    assert main(["check", "--home", str(tmp_path)]) == 0, "an empty one is sound"
