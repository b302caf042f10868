"""Tests of every store after kills, errors, full disks, damage and forgery.

Entries are complete, old or new, or reported as damaged. Also tests files: atomic and locked
writes, other formats, and detection of every changed bit.
"""

import gzip
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.analysis.umap import EmbeddingConfig
from appca.commands.home import checked
from appca.data.files import ReadLimits
from appca.data.readers import read_many
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs import session, store
from appca.runs.fit import fit_run
from appca.runs.model_file import model_bytes, read_model
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.storage import files, lock
from appca.storage.files import ASIDE, Damaged, OtherFormat, write_numbered
from appca.storage.journal import JournalStore
from appca.storage.packed import give_back
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


CHANGED, NESTED = "has changed since it was stored", "[" * 100_000


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
    store = JournalStore(home, "choices")
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
RENAME = "and skipped; name a component again, which replaces the file."
ATTACKS: list[tuple[Callable[[Path], object], Callable[[Path], str], str]] = [
    (
        lambda home: flip(data(home) / "matrix.npy"),
        command,
        f"data set “{DIGITS}”: matrix.npy {CHANGED}; open Digits, 8 × 8 again on the page Data",
    ),
    (meta(files={"/etc/passwd": "0" * 64}), command, "its list of files is wrong"),
    (config(files=["arrays.npz"]), command, "files is wrong; fit it again: aPPCA, K = 4, L = 2"),
    (flipped("selections/*/*.npz"), command, "then select the rows and save them again"),
    (flipped("studies/*/mixed.csv"), command, f"mixed.csv {CHANGED}; run it again on the page"),
    (flipped("embeddings/*.npz"), command, "delete the file; it is computed again when needed"),
    (
        flipped("choices/*/records.txt"),
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
        f"(config.json {CHANGED}) and skipped; delete it or fit",
    ),
    (
        lambda home: forge(run(home) / "config.json", lambda text: text.replace(K4, K3)),
        of_run,
        "(its settings have changed since the fit)",
    ),
    (lambda home: (run(home) / "config.json").write_text(NESTED), of_run, "is nested too deep"),
    (edited("labels.json", "größe", "große"), of_labels, f"(labels.json {CHANGED}) {RENAME}"),
    (lambda home: rewrite(run(home) / "labels.json", **TOO_MANY), of_labels, "of 4 components)"),
    (bomb, of_selection, "then select its rows and save them again."),
    (other_rows, of_selection, "(it does not have 48 rows)"),
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


NEWER = (
    r" was written by a newer version of appca \(format 4; this version reads format \d\); update"
)
STORES = {
    **{kind: writer.write for kind, writer in WRITERS.items() if "command" not in kind},
    "journal": lambda home, x: JournalStore(home, "choices").begin("a" * 12, {"x": x}),
    "cache": lambda home, x: files.write_cached(home / "a.npz", x=np.full(3, x)),
}


@pytest.fixture
def newer(monkeypatch) -> Callable[[Callable[[], object]], object]:
    """Return a function that does what it is given as a later version would."""

    def do(act: Callable[[], object]) -> object:
        with monkeypatch.context() as then:
            then.setattr(files, "FORMAT", 4)
            then.setattr(session, "VERSION", 4)
            return act()

    return do


def test_another_format_is_refused_in_one_sentence_and_no_number_is_damage():
    assert files.without_number("It", {"format": 3, "a": 1}) == {"a": 1}
    with pytest.raises(OtherFormat, match=r"^It was .*an older version .*format 2; .*3\); make it"):
        files.without_number("It", {"format": 2})
    files.refuse_other_format("It", 1, 1)
    with pytest.raises(OtherFormat, match=r"^It was .*a newer version .*format 2; .*1\); update a"):
        files.refuse_other_format("It", 2, 1)
    for number in (0, 1.0, True, "1", None, [1]):
        with pytest.raises(ValueError, match="format number is not valid"):
            files.without_number("It", {"format": number})


@pytest.mark.parametrize("kind", STORES)
def test_no_store_replaces_what_another_version_wrote(kind, tmp_path, newer):
    newer(lambda: STORES[kind](tmp_path, 1))
    if kind in WRITERS:
        assert newer(lambda: WRITERS[kind].read(tmp_path)) == 1
    before = tree(tmp_path)
    with pytest.raises(OtherFormat, match=NEWER):
        STORES[kind](tmp_path, 2)
    assert tree(tmp_path) == before
    assert DatasetStore(tmp_path).list() == []
    assert files.read_cached(tmp_path / "a.npz") is None
    assert JournalStore(tmp_path, "choices").config("a" * 12) is None


def test_files_that_people_save_are_refused_when_a_later_version_saved_them(tmp_path, newer):
    dataset = load("planes").take(np.arange(0, 900, 15))
    config = RunConfig(dataset.digest, {}, "PPCA", {"n_components": 2})
    run = RunStore(tmp_path).save(config, fit_run(dataset, config))
    saved = newer(lambda: session.pack(session.Session(dataset, [run])))
    with pytest.raises(OtherFormat, match=rf"^“work\.appca”{NEWER}"):
        session.unpack("work.appca", io.BytesIO(saved), tmp_path / "b")
    assert not (tmp_path / "b").exists()
    model = newer(lambda: model_bytes(run.config, run.fitted, run.info))
    with pytest.raises(OtherFormat, match=rf"^“model\.npz”{NEWER}"):
        read_model("model.npz", io.BytesIO(model))
    assert read_model("m.npz", io.BytesIO(model_bytes(run.config, run.fitted, run.info)))


def with_a_bit(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_bit_of_descriptions_arrays_and_lines_counts(tmp_path):
    file, facts = tmp_path / "facts.json", {"a": 1, "größe": [1.5, None]}
    files.write_json(file, facts, "It")
    content = file.read_bytes()
    assert files.read_json(file, "It") == facts
    for place in range(len(content)):
        file.write_bytes(with_a_bit(content, 8 * place + place % 8))
        with pytest.raises(ValueError):  # noqa: PT011 (its own, or of the parser)
            files.read_json(file, "It")
    file.write_text('{"format": 3, "a": 1}')
    with pytest.raises(Damaged):
        files.read_json(file, "It")
    file = tmp_path / "a.npz"
    files.write_numbered(file, {"x": np.arange(99.0)}, "It")
    content = file.read_bytes()
    assert files.read_numbered(file, "It")["x"].tolist() == list(range(99))
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None, "it is a zip file for everybody else"
    files.check_sealed(file)
    for bit in range(0, 8 * len(content), 67):
        file.write_bytes(with_a_bit(content, bit))
        with pytest.raises(Damaged):
            files.check_sealed(file)
    content = files.line_of('["a", 1]') + files.line_of("[2]")
    assert files.lines_in(content) == (['["a", 1]', "[2]"], 0)
    for bit in range(8 * len(content)):
        assert files.lines_in(with_a_bit(content, bit))[1] > 0, bit


DAY, DRAFT = 86_400, "0123456789abcdef" * 2


def older(path: Path, seconds: float) -> Path:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))
    return path


full = Mock(side_effect=OSError(28, "No space left on device"))


def test_an_owner_cannot_take_a_draft_while_it_is_swept(tmp_path, monkeypatch):
    draft = tmp_path / f".{'0' * 32}"
    draft.mkdir()
    taken, remove = [], files.remove
    monkeypatch.setattr(
        files, "remove", lambda path: (taken.append(lock.is_free(path)), remove(path))
    )
    files.sweep(tmp_path)
    assert taken == [False]
    assert not draft.exists()


def test_only_drafts_are_swept_and_a_link_is_removed_without_what_it_leads_to(tmp_path):
    folder = tmp_path / f".{DRAFT[::-1]}"
    folder.mkdir()
    kept = [".profile", f".x{DRAFT}", DRAFT, ".DS_Store"]
    for name in [f".{DRAFT}", f".{DRAFT}-own.gz", f"{folder.name}/half", *kept]:
        (tmp_path / name).write_text("x")
        older(tmp_path / name, 2 * DAY)
    older(folder, 2 * DAY)
    files.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*kept}
    files.sweep(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(tmp_path / DRAFT)
    files.remove(tmp_path / "link")
    assert {path.name for path in tmp_path.iterdir()} == {*kept}


@pytest.mark.parametrize("before", ["there", "aside"])
def test_a_folder_takes_the_place_of_another_or_leaves_it(before, tmp_path, monkeypatch):
    target, draft = tmp_path / "a", tmp_path / "draft"
    old = target if before == "there" else files.aside(target)  # by a kill
    for folder in (old, draft):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    with monkeypatch.context() as now:
        now.setattr(Path, "replace", full)
        with pytest.raises(OSError, match="No space"):
            files.replace_folder(draft, target)
    assert (target / "file").read_text() == old.name
    files.replace_folder(draft, target)
    assert (target / "file").read_text() == "draft"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_longest_unused_files_go_first_and_what_cannot_be_read_is_none(tmp_path):
    cached = [tmp_path / f"near-{i}.npz" for i in range(4)]
    for age, file in enumerate(reversed(cached)):
        files.write_cached(file, values=np.zeros(1000))
        os.utime(file, (1e9 - age, 1e9 - age))
    (tmp_path / "map.npz").write_bytes(b"x" * 10_000)
    size = cached[0].stat().st_size
    assert files.prune(tmp_path, "near-*.npz", 4 * size) == []
    assert files.read_cached(cached[0])["values"].shape == (1000,), "reading counts as use"
    assert files.prune(tmp_path, "near-*.npz", 2 * size) == [cached[1], cached[2]]
    assert cached[0].exists()
    assert (tmp_path / "map.npz").exists()
    assert files.prune(tmp_path, "near-*.npz", 0, keep=cached[0]) == [cached[3]]
    assert files.read_cached(cached[1]) is files.read_cached(tmp_path / "map.npz") is None


def test_pages_are_read_again_and_what_was_written_to_a_copy_stays(tmp_path):
    np.save(tmp_path / "X.npy", np.arange(40_000.0).reshape(400, 100))
    for mode in ("r", "c"):
        X = np.load(tmp_path / "X.npy", mmap_mode=mode)
        if mode == "c":
            X[7, 3] = -1
        give_back(np.asarray(X)[5:300])
        give_back(X[::2])
        assert X[7, 3] == (-1 if mode == "c" else 703)
        assert X[-1, -1] == 39_999
    give_back(np.zeros(3))


HOLD = """
import sys
from pathlib import Path
from appca.storage import files, lock

what, folder = sys.argv[1], Path(sys.argv[2])
with files.draft_folder(folder) if what == "draft" else lock.held(folder) as held:
    if what == "draft":
        (held / "half").write_bytes(b"half")
    print(held, flush=True)
    sys.stdin.read()
"""
needs_locks = pytest.mark.skipif(lock.fcntl is None, reason="needs locks of a POSIX system")


@contextmanager
def another(what: str, folder: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    """Start a process that holds something, and give what it prints."""
    command = [sys.executable, "-c", HOLD, what, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@needs_locks
def test_threads_take_turns_and_a_thread_may_ask_twice(tmp_path):
    inside, most = [], []

    def work() -> None:
        with lock.held(tmp_path), lock.held(tmp_path):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 6


@needs_locks
def test_a_draft_that_is_swept_before_its_lock_is_taken_is_made_again(tmp_path, monkeypatch):
    take, swept = lock.take, []

    def late(file: int) -> bool | None:
        if not swept:
            swept.extend(tmp_path.iterdir())
            monkeypatch.setattr(lock, "take", take)
            files.sweep(tmp_path)
        return take(file)

    monkeypatch.setattr(lock, "take", late)
    files.write(tmp_path / "file", "whole")
    assert len(swept) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "whole"


def test_where_nothing_can_be_locked_only_old_drafts_go(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "fcntl", None)
    young, old = (tmp_path / f".{letter * 32}" for letter in "ab")
    for draft in (young, old):
        draft.mkdir()
    older(old, 2 * DAY)
    files.write(tmp_path / "file", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"file", young.name}
    with lock.held(tmp_path):
        pass


@needs_locks
def test_a_thread_waits_for_another_process_so_long_and_not_for_a_dead_one(tmp_path, monkeypatch):
    entered = threading.Event()

    def enter() -> None:
        with lock.held(tmp_path):
            entered.set()

    with another("lock", tmp_path) as (process, _):
        with monkeypatch.context() as patch:
            patch.setattr(lock, "_PATIENCE", 0.0)
            with lock.held(tmp_path):
                pass
        monkeypatch.setattr(lock, "_PATIENCE", 600.0)
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.2)
        process.kill()
        process.wait()
        assert entered.wait(60)
        thread.join()


@needs_locks
def test_the_draft_of_a_living_process_stays_and_that_of_a_killed_one_goes(tmp_path):
    with another("draft", tmp_path) as (process, draft):
        older(Path(draft), 10 * DAY)
        files.sweep(tmp_path)
        assert (Path(draft) / "half").exists(), "however old it is"
        process.kill()
        process.wait()
        files.sweep(tmp_path)
        assert list(tmp_path.iterdir()) == []


@needs_locks
def test_what_is_raised_inside_frees_the_lock_and_what_cannot_be_locked_is_not_waited_for(
    tmp_path, monkeypatch
):
    def fail() -> None:
        with lock.held(tmp_path):
            assert lock.is_free(tmp_path) is False
            full()

    with pytest.raises(OSError, match="No space"):
        fail()
    assert lock.is_free(tmp_path)
    with lock.held(tmp_path / "nowhere"):
        assert not (tmp_path / "nowhere").exists()
    monkeypatch.setattr(lock.fcntl, "flock", full)  # as some network file systems do
    with lock.held(tmp_path):
        assert list(tmp_path.iterdir()) == []
