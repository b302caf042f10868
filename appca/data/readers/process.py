"""Files read in a process of their own, whose memory and time are bounded.

The worst file then costs its own upload, and no page of anybody else. The process is kept warm and
reads one upload after the other; one that failed or has grown is replaced by another.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Semaphore, Timer
from typing import Any, TypeVar

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.source import (
    LIMITS,
    Files,
    ReadLimits,
    chunks_of,
    file_stream,
    total_bytes,
)
from appca.storage import atomic
from appca.storage.children import Child, environment
from appca.words.errors import InputError
from appca.words.refusal import refusing
from appca.words.wording import counted, shortened

COMMAND = (sys.executable, "-m", "appca.data.readers.worker")
MEMORY, MEMORY_RATIO = 350 << 20, 20  # bytes for any upload, and more for each byte of it
MOST_MEMORY = 0.6  # of what the machine has
SECONDS, SECONDS_PER_MB = 60.0, 0.5
_AT_ONCE = 4  # processes; more uploads wait
_PREFIX = "reading-"
REQUEST, OUTCOME = "request.json", "outcome.json"
DONE = "done"  # the worker's answer when it can be used again
READ = "appca.data.readers.worker:read"
Result = TypeVar("Result")


def read_apart(files: Files, *, limits: ReadLimits = LIMITS, **options: Any) -> Dataset:
    """Read files as by `appca.data.readers.read_many`, in another process.

    The folder of temporary files in `limits` receives a copy of them, and the data set, whose
    numbers stay on the disk until they are used. Options must be JSON-able. Raises InputError also
    when the process takes more memory or time than the files may, or ends.
    """
    return work_apart(READ, _opened, files, limits=limits, **options)


def work_apart(
    task: str,
    receive: Callable[[Path, dict[str, Any]], Result],
    files: Files,
    *,
    limits: ReadLimits = LIMITS,
    **options: Any,
) -> Result:
    """Let another process do something with files, and return what is received of the result.

    `task` names a function, as "module:function". The process calls it with the files, a folder
    that ends with the work, the limits and the options; it returns JSON-able facts, which `receive`
    gets with the folder. Fails as `read_apart`.
    """
    title = f"“{shortened(files[0][0])}”" if len(files) == 1 else counted(len(files), "file")
    size = total_bytes(files)
    memory, seconds = _memory(size), SECONDS + SECONDS_PER_MB * size / 1e6
    if limits.scratch is not None:
        with refusing(f"{title} could not be laid down for reading"):
            Path(limits.scratch).mkdir(parents=True, exist_ok=True)
            atomic.forget(Path(limits.scratch), _PREFIX)
    with _folder(title, limits) as place:
        paths = _lay_down(files, place, title, limits)
        request = {
            "task": task,
            "files": paths,
            "options": options,
            "limits": limits._replace(scratch=str(place))._asdict(),
            "memory": memory,
            "seconds": seconds,
        }
        (place / REQUEST).write_text(json.dumps(request), "utf-8")
        _ask(place, title, memory, seconds)
        facts = json.loads((place / OUTCOME).read_text("utf-8"))
        if "sentence" in facts:
            raise InputError(facts["sentence"], facts["report"])
        return receive(place, facts)


def warm() -> None:
    """Start a process, unless there is one: it has read its libraries when a file arrives."""
    with suppress(OSError):
        _PROCESSES.warm()


class ReadingProcess(Child):
    """A process that reads uploads, one at a time."""

    def __init__(self) -> None:
        # memory is counted as it is asked for, so none is asked for in advance
        own = environment(1, ARROW_DEFAULT_MEMORY_POOL="system", MALLOC_ARENA_MAX="1")
        # Ctrl-C in the terminal is for the server
        super().__init__(COMMAND, own, stderr=subprocess.DEVNULL, start_new_session=True)
        self.late = False

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.poll() is None

    def read(self, place: Path, seconds: float) -> bool:
        """Let it read what a folder asks for; return whether it can be used again."""
        timer = Timer(seconds, self._end_late)
        timer.daemon = True
        timer.start()
        try:
            self.send(json.dumps(str(place)))
            return self.stdout.readline().strip() == DONE
        except OSError:
            return False
        finally:
            timer.cancel()

    def _end_late(self) -> None:
        self.late = True
        self.process.kill()

    def end(self) -> int:
        """End it and return its exit code; a signal is negative."""
        self.close()
        try:  # it ends by itself when nothing can be asked any more
            return self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class _Processes:
    """Those that wait for a file."""

    def __init__(self) -> None:
        self._idle: list[ReadingProcess] = []
        self._lock = Lock()
        self._places = Semaphore(_AT_ONCE)

    def warm(self) -> None:
        with self._lock:
            if not self._idle:
                self._idle.append(ReadingProcess())

    @contextmanager
    def taken(self) -> Iterator[ReadingProcess]:
        with self._places:
            with self._lock:
                while self._idle and not self._idle[-1].alive:
                    self._idle.pop().end()
                process = self._idle.pop() if self._idle else None
            yield process or ReadingProcess()

    def give_back(self, process: ReadingProcess) -> None:
        """Keep one process; others were for uploads at the same time."""
        with self._lock:
            if not self._idle:
                self._idle.append(process)
                return
        process.end()

    def end(self) -> None:
        while self._idle:
            self._idle.pop().end()


_PROCESSES = _Processes()
atexit.register(_PROCESSES.end)


def _ask(place: Path, title: str, memory: int, seconds: float) -> None:
    with _PROCESSES.taken() as process:
        if process.read(place, seconds):
            _PROCESSES.give_back(process)
            return
        code = process.end()
    warm()
    if (place / OUTCOME).is_file():  # it has answered, and was not fit to be asked again
        return
    if process.late or (os.name == "posix" and code in (-9, -24)):  # -24: its seconds of computing
        msg = (
            f"{title} took longer than {seconds:,.0f} s to read; give fewer rows or columns, or "
            "another kind of file, such as NPY."
        )
        raise InputError(msg)
    raise InputError(too_much(title, memory))


def too_much(title: str, memory: int) -> str:
    """Return the sentence for a file that took the memory there is for it."""
    return (
        f"{title} cannot be read in {memory / 1e6:,.0f} MB of memory, the most for its size, or is "
        "damaged; give fewer rows or columns, or another kind of file, such as NPY."
    )


def _memory(size: int) -> int:
    wanted = MEMORY + MEMORY_RATIO * size
    if not hasattr(os, "sysconf"):
        return wanted
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(wanted, max(MEMORY, int(MOST_MEMORY * there)))


@contextmanager
def _folder(title: str, limits: ReadLimits) -> Iterator[Path]:
    """Make a folder for one reading; what is mapped from it stays, though its name is gone."""
    with refusing(f"{title} could not be laid down for reading"):
        made = tempfile.TemporaryDirectory(
            prefix=_PREFIX, dir=limits.scratch, ignore_cleanup_errors=True
        )
    with made as folder:
        yield Path(folder)


def _lay_down(files: Files, place: Path, title: str, limits: ReadLimits) -> list[tuple[str, str]]:
    """Write the files into a folder, under numbers; return their names and places."""
    found = []
    remedy = "free some space on the disk of temporary files"
    for i, (name, file) in enumerate(files):
        target = place / str(i)
        with (
            refusing(f"{title} could not be laid down for reading", remedy),
            file_stream(name, file, limits) as stream,
            target.open("wb") as out,
        ):
            for chunk in chunks_of(stream):
                out.write(chunk)
        found.append((name, str(target)))
    return found


def _opened(place: Path, facts: dict[str, Any]) -> Dataset:
    """Open the data set that was written into a folder."""
    columns = [_array(place, f"label_{i}") for i in range(len(facts["labels"]))]
    return Dataset(
        X=_array(place, "X", mapped=True),
        ids=_array(place, "ids"),
        labels=dict(zip(facts["labels"], columns, strict=True)),
        missing=_array(place, "missing", mapped=True) if facts["gaps"] else None,
        **facts["about"],
    )


def _array(place: Path, name: str, *, mapped: bool = False) -> np.ndarray:
    values = np.load(place / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    return values if mapped else np.array(values)
