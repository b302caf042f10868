"""Locks between threads, processes, and containers, where the number of a process says nothing."""

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from appca.jobs import records
from appca.jobs.records import Presence
from appca.storage import atomic, lock

DAY = 86_400
needs_locks = pytest.mark.skipif(lock.fcntl is None, reason="needs locks of a POSIX system")
HOLD = """
import sys
from pathlib import Path
from appca.storage import atomic, lock
from appca.jobs.records import Presence

what, folder = sys.argv[1], Path(sys.argv[2])
atomic.HEARTBEAT = 0.05
if what == "server":
    sign = Presence(folder)
    print(sign.token, flush=True)
    sys.stdin.read()
elif what == "draft":
    with atomic.draft_folder(folder) as draft:
        (draft / "half").write_bytes(b"half")
        print(draft, flush=True)
        sys.stdin.read()
else:
    with lock.held(folder):
        print("held", flush=True)
        sys.stdin.read()
"""


@contextmanager
def another(what: str, folder: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    """Start a process that holds something, and give what it says of it."""
    command = [sys.executable, "-c", HOLD, what, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()


def age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


@pytest.fixture
def elsewhere(monkeypatch) -> Iterator[None]:
    """Let this process be under another kernel than those it starts."""
    monkeypatch.setattr(lock, "machine", lambda: "0" * 8)


def test_processes_of_one_kernel_say_the_same_of_their_machine():
    ask = "from appca.storage import lock; print(lock.machine())"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == lock.machine()
    assert len(lock.machine()) == 8


@needs_locks
def test_the_draft_of_a_living_process_stays_and_that_of_a_killed_one_goes(tmp_path):
    with another("draft", tmp_path) as (process, draft):
        age(Path(draft), 10 * DAY)
        atomic.sweep(tmp_path)
        assert (Path(draft) / "half").exists(), "however old it is"
        end(process)
        atomic.sweep(tmp_path)
        assert list(tmp_path.iterdir()) == []


@needs_locks
@pytest.mark.usefixtures("elsewhere")
def test_the_draft_of_another_machine_stays_for_a_day_even_where_its_lock_is_not_seen(tmp_path):
    with another("draft", tmp_path) as (process, draft):
        end(process)  # no lock is held now, as on a volume that does not pass locks on
        atomic.sweep(tmp_path)
        assert Path(draft).exists()
        age(Path(draft), 2 * DAY)
        atomic.sweep(tmp_path)
        assert not Path(draft).exists()


def test_a_draft_that_is_swept_before_its_lock_is_taken_is_made_again(tmp_path, monkeypatch):
    take, swept = lock.take, []

    def late(file: int | None) -> bool | None:
        if not swept:
            swept.extend(tmp_path.iterdir())
            monkeypatch.setattr(lock, "take", take)
            atomic.sweep(tmp_path)
        return take(file)

    monkeypatch.setattr(lock, "take", late)
    atomic.write(tmp_path / "file", "whole")
    assert len(swept) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "whole"


@needs_locks
def test_one_waits_for_another_process_and_not_for_a_dead_one(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_PATIENCE", 600.0)
    entered = threading.Event()

    def enter() -> None:
        with lock.held(tmp_path):
            entered.set()

    with another("lock", tmp_path) as (process, _):
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.2)
        end(process)
        assert entered.wait(60)
        thread.join()


@needs_locks
def test_threads_take_turns_and_one_thread_may_ask_twice(tmp_path):
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


def no_locks_on_folders(monkeypatch) -> None:
    """Do what some network file systems do: a file opened for writing can be locked alone."""
    flock = lock.fcntl.flock

    def refuse(file: int, how: int) -> None:
        if lock.fcntl.fcntl(file, lock.fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(file, how)

    monkeypatch.setattr(lock.fcntl, "flock", refuse)


@needs_locks
def test_where_folders_cannot_be_locked_a_file_in_them_is(tmp_path, monkeypatch):
    no_locks_on_folders(monkeypatch)
    monkeypatch.setattr(lock, "_PATIENCE", 0.0)
    with lock.held(tmp_path), lock.opened(tmp_path / ".lock", os.O_RDWR) as file:
        assert lock.take(file) is False
    with lock.opened(tmp_path / ".lock", os.O_RDWR) as file:
        assert lock.take(file)


def test_where_nothing_can_be_locked_all_works_and_only_old_drafts_go(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "fcntl", None)
    young, old = (tmp_path / f".{lock.machine()}-{letter * 32}" for letter in "ab")
    for draft in (young, old):
        draft.mkdir()
    age(old, 2 * DAY)
    with lock.held(tmp_path):
        atomic.write(tmp_path / "file", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"file", young.name}


@needs_locks
def test_a_server_is_alive_until_its_process_ends(tmp_path):
    own = Presence(tmp_path)
    with another("server", tmp_path) as (process, token):
        age(tmp_path / f".server-{token}", 10 * DAY)
        assert own.alive(token), "its lock is held"
        assert own.alive(own.token)
        own.sweep()
        assert len(list(tmp_path.iterdir())) == 2
        end(process)
        assert not own.alive(token)
        own.sweep()
        assert len(list(tmp_path.iterdir())) == 1
    own.close()
    assert not own.alive(own.token)
    assert list(tmp_path.iterdir()) == []


@needs_locks
@pytest.mark.usefixtures("elsewhere")
def test_a_server_on_another_machine_is_alive_while_its_file_is_touched(tmp_path):
    own = Presence(tmp_path)
    with another("server", tmp_path) as (process, token):
        assert own.alive(token)
        end(process)  # no lock is held now, as on a volume that does not pass locks on
        assert own.alive(token)
        age(tmp_path / f".server-{token}", records.SILENCE + 60)
        assert not own.alive(token)
        age(tmp_path / f".server-{own.token}", records.SILENCE + 60)
        assert own.alive(token), "by the clock of the volume"
    own.close()


def test_a_server_touches_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "HEARTBEAT", 0.01)
    own = Presence(tmp_path)
    file = tmp_path / f".server-{own.token}"
    age(file, DAY)
    end_of_waiting = time.monotonic() + 60
    while time.time() - file.stat().st_mtime > DAY / 2:
        assert time.monotonic() < end_of_waiting
        time.sleep(0.01)
    own.close()


@pytest.mark.parametrize("token", ["", "no\nsuch", "../jobs", "x\0y", "29972-409577fb"])
def test_what_is_no_token_is_nobody(tmp_path, token):
    own = Presence(tmp_path)
    assert not own.alive(token)
    own.close()


@pytest.mark.usefixtures("elsewhere")
def test_a_draft_of_another_machine_stays_while_its_owner_lives(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "take", lambda _: None)  # a volume that does not pass locks on
    with another("draft", tmp_path) as (_, name):
        draft = Path(name)
        age(draft, 2 * DAY)
        limit = time.monotonic() + 30
        while time.time() - draft.stat().st_mtime > DAY:
            assert time.monotonic() < limit, "its owner never touches it"
            time.sleep(0.01)
        atomic.sweep(tmp_path)
        assert (draft / "half").exists()


@pytest.mark.usefixtures("elsewhere")
def test_a_clock_that_runs_days_ahead_removes_no_draft(tmp_path, monkeypatch):
    draft = tmp_path / f".{'a' * 8}-{'b' * 32}"
    draft.mkdir()
    now = time.time()
    monkeypatch.setattr(atomic.time, "time", lambda: now + 30 * DAY)
    atomic.sweep(tmp_path)
    assert draft.exists(), "by the clock of the volume it is new"
    assert [path.name for path in tmp_path.iterdir()] == [draft.name]
