"""Locks between threads and processes."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from appca.storage import files, lock

pytestmark = pytest.mark.skipif(lock.fcntl is None, reason="needs locks of a POSIX system")
DAY = 86_400
HOLD = """
import sys
from pathlib import Path
from appca.storage import files, lock

what, folder = sys.argv[1], Path(sys.argv[2])
if what == "draft":
    with files.draft_folder(folder) as draft:
        (draft / "half").write_bytes(b"half")
        print(draft, flush=True)
        sys.stdin.read()
else:
    with lock.held(folder):
        print("held", flush=True)
        sys.stdin.read()
"""


def age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


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
    age(old, 2 * DAY)
    files.write(tmp_path / "file", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"file", young.name}


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


def test_the_draft_of_a_living_process_stays_and_that_of_a_killed_one_goes(tmp_path):
    with another("draft", tmp_path) as (process, draft):
        age(Path(draft), 10 * DAY)
        files.sweep(tmp_path)
        assert (Path(draft) / "half").exists(), "however old it is"
        process.kill()
        process.wait()
        files.sweep(tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_what_is_raised_inside_frees_the_lock_and_what_cannot_be_locked_is_not_waited_for(
    tmp_path, monkeypatch
):
    def refuse(*_: object) -> None:
        raise OSError("Bad file descriptor")  # as some network file systems do

    def fail() -> None:
        with lock.held(tmp_path):
            assert lock.is_free(tmp_path) is False
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert lock.is_free(tmp_path)
    with lock.held(tmp_path / "nowhere"):
        assert not (tmp_path / "nowhere").exists()
    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    with lock.held(tmp_path):
        assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(lock, "fcntl", None)
    with lock.held(tmp_path):
        pass
