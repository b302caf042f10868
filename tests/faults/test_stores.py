"""Every store under kills, refusals, full disks, damage and forgery: old or new, whole or named."""

import gzip
import io
import json
import os
import random
import re
import shutil
import time
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.analysis.umap import EmbeddingConfig
from appca.commands.home import checked
from appca.data.files import ReadLimits
from appca.data.readers import read_many
from appca.data.store import DatasetStore
from appca.runs import store
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.storage.files import ASIDE, write_numbered
from appca.storage.journal import JournalStore
from appca.words import InputError
from tests.faults.disks import fill, killed, refused_at, small_disk, small_files
from tests.faults.writers import MAP, ROWS, WRITERS, Refused, Writer, sources, tree
from tests.forged import forge, rewrite
from tests.homes import DIGITS, EM, copied

SENTENCE = re.compile(r"[^\n]+ [^\n]+\.")


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> Writer:
    sources(tmp_path)
    return WRITERS[request.param]


def drafts(home: Path) -> list[Path]:
    return [path for sign in (".*", f"*{ASIDE}") for path in home.rglob(sign) if path.exists()]


def age(home: Path) -> None:
    """Let a day and more pass over all that lies there."""
    long_ago = time.time() - 2 * 86_400
    for path in [*home.rglob("*")]:
        os.utime(path, (long_ago, long_ago))


def refusal(act: Callable[[], object], why: str) -> bool:
    """Whether an act is refused: in one sentence, for a reason of the system."""
    said = ""
    try:
        act()
    except (ValueError, Refused) as error:
        said = str(error)
    assert not said or (SENTENCE.fullmatch(said) and why in said), said
    return said != ""


@pytest.mark.parametrize("before", [1, None], ids=["in place of another", "anew"])
def test_at_any_step_there_is_the_old_or_the_new_and_in_the_end_no_draft(writer, before, tmp_path):
    def home(name: str) -> Path:
        (place := tmp_path / name).mkdir()
        if before:
            writer.write(place, before)
        return place

    whole = home("whole")
    left = killed(whole, lambda: writer.write(whole, 2))
    assert len(left) > 0, "there was a step at which it could be struck"
    for place in [whole, *left]:
        assert writer.read(place) in ({2} if place is whole else {before, 2})
        assert RunStore(place).damaged() == {}
        age(place)
        writer.write(place, 2)
        assert writer.read(place) == 2
        assert drafts(place) == []
    refusals = 0
    for step in range(1, len(left) + 1):
        place = home(f"refused{step}")
        with refused_at(step, place):
            refused = refusal(lambda place=place: writer.write(place, 2), "No space left on device")
        refusals += refused
        assert writer.read(place) in ({before} if refused else {before, 2})
        assert RunStore(place).damaged() == {}
        assert drafts(place) == []
        writer.write(place, 2)
        assert writer.read(place) == 2
    assert refusals > 0 or writer.waits


def test_on_a_full_disk_nothing_is_lost_and_with_space_again_all_works(writer, tmp_path):
    """No file grows beyond so many bytes, or (None) the disk itself is full."""
    with small_disk(tmp_path / "disk", 2_000_000) as disk:
        sources(disk)
        for n_bytes in (0, 100, 1000, None):
            home = disk / f"home{n_bytes}"
            home.mkdir()
            writer.write(home, 1)
            before = tree(home)
            if n_bytes is None:
                fill(disk)
            why = "No space left on device" if n_bytes is None else "File too large"
            with nullcontext() if n_bytes is None else small_files(n_bytes):
                refused = refusal(lambda home=home: writer.write(home, 2), why)
            if refused:
                assert tree(home) == before
                assert writer.read(home) == 1
            else:  # it was smaller, or a mere renewal that can wait
                assert writer.read(home) == 2 or writer.waits
            assert drafts(home) == []
            (disk / "ballast").unlink(missing_ok=True)
            writer.write(home, 2)
            assert writer.read(home) == 2


def test_an_upload_onto_a_full_disk_or_that_is_killed_leaves_nothing(tmp_path):
    """A file that has to be unpacked onto the disk before it can be read."""
    np.save(buffer := io.BytesIO(), np.arange(7000, dtype=np.float64).reshape(1000, 7))
    packed, uploads = gzip.compress(buffer.getvalue()), tmp_path / "uploads"
    uploads.mkdir()

    def look(folder: Path = uploads) -> None:
        read_many([("own.npy", io.BytesIO(packed))], limits=ReadLimits(scratch=folder))

    with small_files(10_000):
        assert refusal(look, "File too large")
    assert tree(tmp_path) == {}
    left = killed(uploads, look)
    assert left
    for place in left:
        age(place)
        look(place)
    assert tree(tmp_path) == {}


# damage


CHANGED = "has been changed since it was stored"
NESTED = "[" * 100_000


def flip(file: Path, place: int | None = None) -> None:
    """Change a bit of a file, which stays as long as it was."""
    content = bytearray(file.read_bytes())
    member = content.find(b"components.npy")
    middle = member + 200 if member >= 0 else len(content) // 2
    content[middle if place is None else place] ^= 0x10
    file.write_bytes(content)


def replace_by_file(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.write_text("a file")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": flip,
    "cut": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "gone": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "nested": lambda file: file.write_text(NESTED),
    "a list": lambda file: file.write_text("[1]"),
    "null": lambda file: file.write_text("null"),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a file in place of its folder": replace_by_file,
}


@pytest.mark.parametrize("kind", [kind for kind in WRITERS if "command" not in kind])
def test_a_damaged_file_is_never_read_as_another_and_replaced(kind, tmp_path):
    writer, whole = WRITERS[kind], tmp_path / "whole"
    writer.write(whole, 1)
    files = [one.relative_to(whole) for one in whole.rglob("*") if one.is_file()]
    for number, (file, how) in enumerate((file, how) for file in files for how in DAMAGES):
        home = tmp_path / str(number)
        shutil.copytree(whole, home)
        DAMAGES[how](home / file)
        try:
            found, said = writer.read(home), ""
        except InputError as error:
            found, said = None, str(error)
        except AssertionError:  # arrays of data and runs are not hashed when they are opened
            found, said = None if how == "flipped" else 0, ""
        assert found in {None, 1}, (file, how)
        assert re.fullmatch(r"([^\n]*(damaged|no stored|cannot be read)[^\n]*\.)?", said)
        replaced = "folder" not in how or kind in ("data set", "study")
        if replaced and not kind.startswith("name"):
            writer.write(home, 1)
            assert writer.read(home) == 1, (file, how)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home that holds one of everything."""
    return copied(tmp_path / "home")


CACHES = {"embeddings", "projections", "selections", "numbers"}
OF_RUNS = ("labels.json", "numbers.json")


def test_a_flipped_bit_and_an_emptied_or_deleted_file_is_named_by_check(home):
    rng = random.Random(8)
    assert list(checked(home)) == []
    files = [one for one in sorted(home.rglob("[!.]*")) if one.is_file() and one.parent != home]
    assert {file.relative_to(home).parts[0] for file in files} > CACHES
    for file in files:
        name, content = str(file.relative_to(home)), file.read_bytes()
        flip(file, place := rng.randrange(len(content)))
        told = {line.file: line for line in checked(home)}
        assert name in told, f"byte {place} of {file}"
        assert all(line.what and line.remedy for line in told.values())
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


# what was not stored so: a forged file is one with a digest that fits


def data(home: Path) -> Path:
    metas = home.glob("datasets/*/meta.json")
    return next(file.parent for file in metas if DIGITS in file.read_text("utf-8"))


def run(home: Path) -> Path:
    return home / "runs" / RunConfig(data(home).name, {"divide": 16.0}, "aPPCA", EM).id


def selection(home: Path) -> Path:
    return next((home / "selections" / data(home).name).glob("*.npz"))


def edit(file: Path, old: str, new: str) -> None:
    """Change a text as an editor does."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def bomb(home: Path) -> None:
    """Replace a selection by zeros that unpack to thousands of times their size."""
    with (
        zipfile.ZipFile(selection(home), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        archive.open("bits.npy", "w", force_zip64=True) as member,
    ):
        header = {"shape": (1 << 26,), "fortran_order": False, "descr": "|u1"}
        np.lib.format.write_array_header_1_0(member, header)
        member.write(bytes(1 << 22))


def other_rows(home: Path) -> None:
    arrays = {"name": np.array("x"), "bits": np.array([1], np.uint8), "n_rows": np.array(3)}
    write_numbered(selection(home), {**arrays, "created": np.array(1.0)}, "x")


def command(home: Path) -> str:
    """Return what `appca check` says of the one thing that is damaged."""
    (line,) = checked(home)
    return f"{re.sub('[0-9a-f]{12}', 'ID', line.what)}: {line.problem}; {line.remedy}"


def of_data(home: Path) -> str:
    with pytest.raises(InputError, match=r"is damaged .*; delete it, or load the data") as error:
        DatasetStore(home).get(data(home).name)
    return str(error.value)


def of_run(home: Path) -> str:
    name = run(home).name
    assert RunStore(home).get(name) is None
    assert RunStore(home).damaged()[name] == RunStore(home).damage(name)
    return RunStore(home).damage(name) or ""


def of_arrays(home: Path) -> str:
    with pytest.raises(InputError, match="cannot be read") as error:
        _ = RunStore(home).get(run(home).name).fitted
    return str(error.value)


def of_labels(home: Path) -> str:
    stored = RunStore(home).get(run(home).name)
    assert store.labels(stored).names == ("",) * 4
    return store.damage(stored) or ""


def of_selection(home: Path) -> str:
    (sentence,) = SelectionStore(home).damaged(data(home).name, 48)
    return sentence


def meta(**changes: object) -> Callable[[Path], object]:
    return lambda home: rewrite(data(home) / "meta.json", **changes)


def config(**changes: object) -> Callable[[Path], object]:
    return lambda home: rewrite(run(home) / "config.json", **changes)


def edited(file: str, old: str, new: str) -> Callable[[Path], object]:
    return lambda home: edit(run(home) / file, old, new)


def flipped(pattern: str) -> Callable[[Path], object]:
    return lambda home: flip(next(home.glob(pattern)))


K4, K3 = '"n_components": 4', '"n_components": 3'
TOO_MANY = {"names": ["x"] * 9, "signs": [1] * 9}
RENAME = "and left out; name a component again, which replaces the file."
ATTACKS: list[tuple[Callable[[Path], object], Callable[[Path], str], str]] = [
    (
        lambda home: flip(data(home) / "matrix.npy"),
        command,
        f"data set “{DIGITS}”: matrix.npy {CHANGED}; open Digits, 8 × 8 again on the page Data",
    ),
    (meta(files={"/etc/passwd": "0" * 64}), command, "it lists other files than its own"),
    (config(files=["arrays.npz"]), command, "than its own; fit it again: aPPCA, K = 4, L = 2"),
    (flipped("selections/*/*.npz"), command, "then select the rows and save them again"),
    (flipped("studies/*/mixed.csv"), command, f"mixed.csv {CHANGED}; run it again on the page"),
    (flipped("embeddings/*.npz"), command, "delete the file; it is computed again when needed"),
    (
        flipped("grids/*/records.txt"),
        command,
        "choice of K and L ID: records.txt has damaged lines (1); start it again on the page "
        "Choose K and L; only the damaged part is computed again",
    ),
    (
        lambda home: np.save(data(home) / "ids.npy", np.array([{}] * 60), allow_pickle=True),
        of_data,
        "(ids.npy cannot be read)",
    ),
    (meta(n_rows=10**9), of_data, "(matrix.npy is not the matrix that meta.json describes)"),
    (meta(digest="0" * 64), of_data, "is damaged"),  # of other data
    (meta(labels=7), of_data, "is damaged"),
    (config(info={"n_iter": "3", "seconds": 1}), of_run, "damaged"),
    (config(name=[1]), of_run, "damaged"),
    (config(created="<b>noon</b>"), of_run, "damaged"),
    (config(id="0" * 12), of_run, "damaged"),
    (lambda home: flip(run(home) / "arrays.npz"), of_arrays, "fit it a"),
    (
        lambda home: shutil.copyfile(run(home) / "config.json", run(home) / "arrays.npz"),
        of_run,
        " bytes instead of ",
    ),
    (
        edited("config.json", K4, K3),
        of_run,
        f"(config.json {CHANGED}) and left out; delete it or fit",
    ),
    (
        lambda home: forge(run(home) / "config.json", lambda text: text.replace(K4, K3)),
        of_run,
        "(its settings are not those it was fitted with)",
    ),
    (lambda home: (run(home) / "config.json").write_text(NESTED), of_run, "is nested too deep"),
    (edited("labels.json", "größe", "große"), of_labels, f"(labels.json {CHANGED}) {RENAME}"),
    (lambda home: rewrite(run(home) / "labels.json", **TOO_MANY), of_labels, "of 4 components)"),
    (bomb, of_selection, "then select its rows and save them again."),
    (other_rows, of_selection, "(it is not of 48 rows)"),
]


@pytest.mark.parametrize(("make", "door", "words"), ATTACKS)
def test_what_was_not_stored_so_is_answered_by_one_sentence(home, make, door, words):
    make(home)
    sentence = door(home)
    assert words in sentence
    assert "\n" not in sentence


def facts(**changes: object) -> np.ndarray:
    return np.array(json.dumps({"config": MAP.to_dict(), "n_rows": ROWS} | changes))


PLACES = np.zeros((ROWS, 2), np.float32)
MAPS = [  # coordinates, facts
    (PLACES, np.array("[]")),
    (PLACES[1:], facts()),
    (PLACES[:, :1], facts()),
    (PLACES.astype("U4"), facts()),
    (PLACES, facts(config=EmbeddingConfig("e" * 64, {}).to_dict())),
]
FORGED: list[tuple[str, dict]] = [
    *(("embedding", {"coordinates": places, "facts": told}) for places, told in MAPS),
    *(("study", wrong) for wrong in ({"tables": ["mixed"]}, {"options": 7}, {"versions": "1.0"})),
]


def test_a_forged_map_or_study_counts_as_none_and_is_made_again(tmp_path):
    for kind, changes in FORGED:
        writer = WRITERS[kind]
        writer.write(tmp_path, 1)
        if kind == "study":
            rewrite(next(tmp_path.glob("studies/*/config.json")), **changes)
        else:
            write_numbered(next(tmp_path.glob("embeddings/*.npz")), changes, "x")
        assert writer.read(tmp_path) is None, changes
        writer.write(tmp_path, 1)
        assert writer.read(tmp_path) == 1
