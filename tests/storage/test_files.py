"""Files come whole into place, other formats are refused, every changed bit is noticed."""

import io
import os
import time
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
from appca.storage import files, lock
from appca.storage.files import (
    Damaged,
    OtherFormat,
    check_file,
    check_sealed,
    digests_of,
    line_of,
    lines_in,
    prune,
    read_cached,
    read_json,
    read_numbered,
    refuse_other_format,
    without_number,
    write_cached,
    write_json,
    write_numbered,
)
from appca.storage.journal import JournalStore
from appca.storage.packed import give_back
from tests.faults.writers import RUN, WRITERS, tree

NEWER = (
    r" was written by a newer version of appca \(format 4; this version reads format \d\); update"
)
STORES = {
    **{kind: writer.write for kind, writer in WRITERS.items() if "command" not in kind},
    "journal": lambda home, x: JournalStore(home, "grids").begin("a" * 12, {"x": x}),
    "cache": lambda home, x: files.write_cached(home / "a.npz", x=np.full(3, x)),
}


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
        then.setattr(files, "FORMAT", 4)  # of a later version
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
        then.setattr(files, "FORMAT", 4)  # of a later version
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


def test_files_that_people_save_are_refused_when_a_later_version_saved_them(tmp_path, monkeypatch):
    dataset = load("planes").take(np.arange(0, 900, 15))
    config = RunConfig(dataset.digest, {}, "PPCA", {"n_components": 2})
    run = RunStore(tmp_path).save(config, fit_run(dataset, config))
    with monkeypatch.context() as then:
        then.setattr(files, "FORMAT", 4)  # of a later version
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


DAY = 86_400
HEX = "0123456789abcdef" * 2


def older(path: Path, seconds: float) -> Path:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))
    return path


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


def test_only_drafts_are_swept(tmp_path):
    names = [f".{HEX}", f".{HEX}-own.gz", ".profile", f".x{HEX}", HEX, ".DS_Store"]
    for name in names:
        (tmp_path / name).write_text("x")
        older(tmp_path / name, 2 * DAY)
    folder = tmp_path / f".{HEX[::-1]}"
    folder.mkdir()
    (folder / "half").write_text("x")
    older(folder, 2 * DAY)
    files.sweep(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".profile", f".x{HEX}", HEX, ".DS_Store"}
    files.sweep(tmp_path / "nowhere")


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    files.remove(tmp_path / "link")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]
    files.remove(tmp_path / "kept")
    files.remove(tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_left_aside_is_put_in_order_by_the_next_replacement(tmp_path):
    target, before, draft = tmp_path / "a", files.aside(tmp_path / "a"), tmp_path / "draft"
    for left in ("old, nothing in its place", "rest of the old, beside the new"):
        for folder in (draft, target, before):
            folder.mkdir(exist_ok=True)
            (folder / "file").write_text(folder.name)
        if left.startswith("old"):
            files.remove(target)
        older(before, 2 * DAY)
        files.sweep(tmp_path)
        assert (before / "file").read_text() == "a.before"
        files.replace_folder(draft, target)
        assert (target / "file").read_text() == "draft", left
        assert [path.name for path in tmp_path.iterdir()] == ["a"], left


def test_files_come_into_their_place_or_leave_nothing_beside_it(tmp_path):
    (tmp_path / "folder").mkdir()
    for name, content in (("a", "größe"), ("a", "anew"), ("b", b"\xff")):
        files.write(tmp_path / name, content)
    for name, words in (("folder", "directory"), ("nowhere/a", "No such file")):
        with pytest.raises(OSError, match=words):
            files.write(tmp_path / name, "text")
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert left == {"a": b"anew", "b": b"\xff"}
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("before", ["there", "aside"])
def test_a_folder_takes_the_place_of_another_or_leaves_it(before, tmp_path, monkeypatch):
    target, draft = tmp_path / "a", tmp_path / "draft"
    old = target if before == "there" else files.aside(target)
    for folder in (old, draft):
        folder.mkdir()
        (folder / "file").write_text(folder.name)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as now:
        now.setattr(Path, "replace", full)
        with pytest.raises(OSError, match="No space"):
            files.replace_folder(draft, target)
    assert (target / "file").read_text() == old.name
    draft.mkdir(exist_ok=True)
    (draft / "file").write_text("draft")
    files.replace_folder(draft, target)
    assert (target / "file").read_text() == "draft"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_longest_unused_files_go_first(tmp_path):
    files = [tmp_path / f"near-{i}.npz" for i in range(4)]
    for age, file in enumerate(reversed(files)):
        write_cached(file, values=np.zeros(1000))
        os.utime(file, (1e9 - age, 1e9 - age))
    (tmp_path / "map.npz").write_bytes(b"x" * 10_000)
    size = files[0].stat().st_size
    assert prune(tmp_path, "near-*.npz", 4 * size) == []
    assert read_cached(files[0])["values"].shape == (1000,), "reading counts as use"
    assert prune(tmp_path, "near-*.npz", 2 * size) == [files[1], files[2]]
    assert files[0].exists()
    assert (tmp_path / "map.npz").exists()
    assert prune(tmp_path, "near-*.npz", 0, keep=files[0]) == [files[3]]


def test_what_cannot_be_read_is_as_if_it_were_not_there(tmp_path):
    file = tmp_path / "a.npz"
    assert read_cached(file) is None
    file.write_bytes(b"no archive")
    assert read_cached(file) is None


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
