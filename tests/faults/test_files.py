"""Files come whole into place under locks, other formats are refused, every bit is noticed."""

import io
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from appca.storage.files import Damaged, OtherFormat
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
    assert JournalStore(tmp_path, "grids").config("a" * 12) is None


def test_a_run_of_another_version_is_named_and_not_shown(tmp_path, newer):
    newer(lambda: WRITERS["run"].write(tmp_path, 1))
    store = RunStore(tmp_path)
    assert store.list() == []
    (problem,) = store.damaged().values()
    assert problem.startswith(f"Fit {RUN.id} was written by a newer version")
    assert store.damage(RUN.id) == problem
    with pytest.raises(OtherFormat):
        store.get(RUN.id)
    store.delete(RUN.id)
    assert store.damaged() == {}


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


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_bit_of_descriptions_arrays_and_lines_counts(tmp_path):
    file, facts = tmp_path / "facts.json", {"a": 1, "größe": [1.5, None]}
    files.write_json(file, facts, "It")
    content = file.read_bytes()
    assert files.read_json(file, "It") == facts
    for place in range(len(content)):
        file.write_bytes(flipped(content, 8 * place + place % 8))
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
        file.write_bytes(flipped(content, bit))
        with pytest.raises(Damaged):
            files.check_sealed(file)
    content = files.line_of('["a", 1]') + files.line_of("[2]")
    assert files.lines_in(content) == (['["a", 1]', "[2]"], 0)
    for bit in range(8 * len(content)):
        assert files.lines_in(flipped(content, bit))[1] > 0, bit


DAY = 86_400
HEX = "0123456789abcdef" * 2


def older(path: Path, seconds: float) -> Path:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))
    return path


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


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
    folder = tmp_path / f".{HEX[::-1]}"
    folder.mkdir()
    kept = [".profile", f".x{HEX}", HEX, ".DS_Store"]
    for name in [f".{HEX}", f".{HEX}-own.gz", f"{folder.name}/half", *kept]:
        (tmp_path / name).write_text("x")
        older(tmp_path / name, 2 * DAY)
    older(folder, 2 * DAY)
    files.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*kept}
    files.sweep(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(tmp_path / HEX)
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


# locks between threads and processes

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
