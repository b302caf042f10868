"""Files read in a process of their own, whose memory and time are bounded.

The worst file then costs its own upload, and no page of anybody else. The process is kept warm and
reads one upload after the other; one that failed or has grown is replaced by another.
"""

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import LIMITS, Files, ReadLimits, chunks_of, file_stream, total_bytes
from appca.processes import PATIENCE, Child, Ended, Pool, environment
from appca.storage.files import forget
from appca.words import InputError, counted, refusing, shortened

COMMAND = (sys.executable, "-m", "appca.data.readers.worker")
MEMORY, MEMORY_RATIO = 350 << 20, 20  # bytes for any upload, and more for each byte of it
MOST_MEMORY = 0.6  # of what the machine has
SECONDS, SECONDS_PER_MB = 60.0, 0.5
_AT_ONCE = 4  # processes; more uploads wait
_PREFIX = "reading-"
READ = "appca.data.readers.worker:read"
Result = TypeVar("Result")


def read_apart(files: Files, *, limits: ReadLimits = LIMITS, **options: Any) -> Dataset:
    """Read files as by `appca.data.readers.read_many`, in another process.

    The folder of temporary files in `limits` receives a copy of them, and the data set, whose
    numbers stay on the disk until they are used. Options must be JSON-able. Raises InputError also
    when the process takes more memory or time than the files may, or ends.
    """
    return work_apart(READ, opened, files, limits=limits, **options)


def work_apart(
    task: str,
    receive: Callable[[Path, dict[str, Any]], Result],
    files: Files,
    *,
    limits: ReadLimits = LIMITS,
    in_place: bool = False,
    **options: Any,
) -> Result:
    """Let another process do something with files, and return what is received of the result.

    `task` names a function, as "module:function". The process calls it with the files, a folder
    that ends with the work, the limits and the options; it returns JSON-able facts, which `receive`
    gets with the folder. Files with `in_place` are paths, which are not copied. Fails as
    `read_apart`.
    """
    title = f"“{shortened(files[0][0])}”" if len(files) == 1 else counted(len(files), "file")
    size = total_bytes(files)
    memory, seconds = _memory(size), SECONDS + SECONDS_PER_MB * size / 1e6
    if limits.scratch is not None:
        with refusing(f"{title} could not be copied for reading"):
            Path(limits.scratch).mkdir(parents=True, exist_ok=True)
            forget(Path(limits.scratch), _PREFIX)
    with _folder(title, limits) as place:
        paths = list(files) if in_place else _lay_down(files, place, title, limits)
        request = {
            "task": task,
            "files": paths,
            "options": options,
            "limits": limits._replace(scratch=str(place))._asdict(),
            "place": str(place),
            "memory": memory,
            "seconds": seconds,
        }
        facts = _ask(request, title)
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
        variables = environment(1, ARROW_DEFAULT_MEMORY_POOL="system", MALLOC_ARENA_MAX="1")
        # Ctrl-C in the terminal is for the server
        super().__init__(COMMAND, variables, stderr=subprocess.DEVNULL, start_new_session=True)
        self.late = False

    def read(self, request: dict[str, Any]) -> Any:
        """Let it do what is asked for, within its seconds. Raises Ended."""
        timer = Timer(request["seconds"], self._end_late)
        timer.daemon = True
        timer.start()
        try:
            return self.ask(request)
        finally:
            timer.cancel()

    def _end_late(self) -> None:
        self.late = True
        self.kill()


_PROCESSES = Pool(ReadingProcess, _AT_ONCE, kept=1)
atexit.register(_PROCESSES.end)


def _ask(request: dict[str, Any], title: str) -> Any:
    """Return what a process says of files; refuse those over which it has ended."""
    with _PROCESSES.lent() as process:
        try:
            facts, usable = process.read(request)
        except Ended:
            facts, usable = None, False
        code = 0 if usable else process.end(PATIENCE)
    if not usable:
        warm()
    if facts is not None:
        return facts
    if process.late or (os.name == "posix" and code in (-9, -24)):  # -24: its seconds of computing
        msg = (
            f"{title} took longer than {request['seconds']:,.0f} s to read; give fewer rows or "
            "columns, or another kind of file, such as NPY."
        )
        raise InputError(msg)
    raise InputError(too_much(title, request["memory"]))


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
    with refusing(f"{title} could not be copied for reading"):
        made = tempfile.TemporaryDirectory(
            prefix=_PREFIX, dir=limits.scratch, ignore_cleanup_errors=True
        )
    with made as folder:
        yield Path(folder)


def _lay_down(files: Files, place: Path, title: str, limits: ReadLimits) -> list[tuple[str, str]]:
    """Write the files into a folder, under numbers; return their names and places."""
    laid = []
    remedy = "free some space on the disk of temporary files"
    for i, (name, file) in enumerate(files):
        target = place / str(i)
        with (
            refusing(f"{title} could not be copied for reading", remedy),
            file_stream(name, file, limits) as stream,
            target.open("wb") as out,
        ):
            for chunk in chunks_of(stream):
                out.write(chunk)
        laid.append((name, str(target)))
    return laid


def opened(place: Path, facts: dict[str, Any]) -> Dataset:
    """Open the data set that was written into a folder."""

    def array(name: str) -> np.ndarray:
        values = np.load(place / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        return values if name in ("matrix", "missing") else np.array(values)

    return Dataset.rebuilt(facts, array, gaps=facts["gaps"])
