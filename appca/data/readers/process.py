"""Read files in a process with bounded memory and time, replaced if it fails or has grown."""

import atexit
import csv
import importlib
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from pkgutil import resolve_name
from threading import Timer
from typing import Any, TypeVar

import numpy as np

from appca.data import files as uploads
from appca.data.brain import on_grid
from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, Files, ReadLimits
from appca.data.readers import read_many
from appca.processes import PATIENCE, Child, Ended, Pool, Tell, environment, serve
from appca.storage.files import forget
from appca.words import InputError, counted, refuse_if, refusing, shortened

MEMORY = int(0.6 * uploads.MACHINE_MEMORY)  # maximum memory for an upload, in bytes
SECONDS = 300.0
_AT_ONCE = 4  # number of processes; further uploads wait
_PREFIX, _HERE = "reading-", "appca.data.readers.process"
_LIBRARIES = ("pandas", "pyarrow.parquet", "PIL.Image", "h5py")  # slow to import
_LARGEST = 400 << 20  # bytes of memory in use above which a process is replaced
Result = TypeVar("Result")
Sets = dict[str, list[str]]


def read_apart(files: Files, *, limits: ReadLimits = LIMITS, **options: Any) -> Dataset:
    """Run `read_many` in another process; its values load on use from the folder in `limits`."""
    return work_apart(f"{_HERE}:read_into", _opened, files, limits=limits, **options)


def work_apart(
    task: str,
    receive: Callable[[Path, dict[str, Any]], Result],
    files: Files,
    *,
    limits: ReadLimits = LIMITS,
    **options: Any,
) -> Result:
    """Run a function on files in another process, and return the result.

    `task` names the function as "module:function". It receives copies of the files, a temporary
    folder, the limits and the options; `receive` receives the folder and the function's result.
    """
    title = f"“{shortened(files[0][0])}”" if len(files) == 1 else counted(len(files), "file")
    remedy = "free some space on the disk of temporary files"
    with ExitStack() as ends:
        with refusing(f"{title} could not be copied for reading", remedy):
            if limits.scratch is not None:
                Path(limits.scratch).mkdir(parents=True, exist_ok=True)
                forget(Path(limits.scratch), _PREFIX)
            made = tempfile.TemporaryDirectory(
                prefix=_PREFIX, dir=limits.scratch, ignore_cleanup_errors=True
            )
            place = Path(ends.enter_context(made))
            for i, (name, file) in enumerate(files):
                copy = place / str(i)
                with uploads.file_stream(name, file, limits) as stream, copy.open("wb") as out:
                    out.writelines(uploads.chunks_of(stream))
        copies = [(name, str(place / str(i))) for i, (name, _) in enumerate(files)]
        inside = limits._replace(scratch=str(place))._asdict()
        request: dict[str, Any] = {"task": task, "files": copies, "options": options}
        request |= {"limits": inside, "place": str(place), "memory": MEMORY}
        with _PROCESSES.lent() as process:
            try:
                facts, usable = process.read(request)
            except Ended:
                facts, usable = {"lacking": True}, False
            if not usable:
                process.end(PATIENCE)
        if not usable:
            warm()
        if "lacking" in facts:
            why = f"is damaged, or needs more than {MEMORY / 1e6:,.0f} MB, the limit for "
            why += "a file on this machine"
            why = f"took longer than {SECONDS:,.0f} s to read" if process.late else why
            msg = f"{title} {why}; give fewer rows or columns, or another format such as NPY."
            raise InputError(msg)
        if "sentence" in facts:
            raise InputError(facts["sentence"], facts["report"])
        return receive(place, facts)


def warm() -> None:
    """Start a process in advance, unless there is one, so that its libraries are imported."""
    with suppress(OSError):
        _PROCESSES.warm()


class ReadingProcess(Child):
    """A process that reads uploads, one at a time."""

    def __init__(self) -> None:
        # the memory limit counts reserved memory, so Arrow must not reserve any
        variables = environment(1, ARROW_DEFAULT_MEMORY_POOL="system", MALLOC_ARENA_MAX="1")
        command = (sys.executable, "-m", _HERE)
        # only the server reacts to Ctrl-C
        super().__init__(command, variables, stderr=subprocess.DEVNULL, start_new_session=True)
        self.late = False

    def read(self, request: dict[str, Any]) -> Any:
        """Run a request within its time limit. Raises Ended."""
        began, timer = time.monotonic(), Timer(SECONDS, self.kill)
        timer.daemon = True
        timer.start()
        try:
            return self.ask(request)
        finally:
            timer.cancel()
            self.late = time.monotonic() - began >= SECONDS


_PROCESSES = Pool(ReadingProcess, _AT_ONCE, kept=1)
atexit.register(_PROCESSES.end)


def _opened(place: Path, facts: dict[str, Any]) -> Dataset:
    def array(name: str) -> np.ndarray:
        values = np.load(place / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        return values if name in ("matrix", "missing") else np.array(values)

    return Dataset.rebuilt(facts, array, gaps=facts["gaps"])


def _outcome(request: dict[str, Any], _tell: Tell) -> tuple[dict[str, Any], bool]:
    """Run a request; return its outcome, and whether the process can be used again."""
    files = [(str(name), str(path)) for name, path in request["files"]]
    stated = request["options"].items()
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in stated}
    in_use = _status("VmData")
    with suppress(ImportError, AttributeError, ValueError, OSError):  # not on every system
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = in_use + request["memory"] if in_use else hard
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        task = resolve_name(request["task"])
        answer = task(files, Path(request["place"]), ReadLimits(**request["limits"]), **options)
    except (InputError, MemoryError) as error:
        answer = {"sentence": str(error), "report": getattr(error, "report", None)}
        cause: BaseException | None = error
        seen = set[int]()
        while cause is not None and id(cause) not in seen:  # causes may be circular
            answer = {"lacking": True} if isinstance(cause, MemoryError) else answer
            seen.add(id(cause))
            cause = cause.__cause__ or cause.__context__
    return answer, "lacking" not in answer and _status("VmHWM") < _LARGEST


def _status(field: str) -> int:
    """Return a memory figure of this process in bytes; 0 if the system has none."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text("utf-8").splitlines():
            if line.startswith(field):
                return int(line.split()[1]) << 10
    return 0


def read_into(files: Files, place: Path, limits: ReadLimits, **options: Any) -> dict[str, Any]:
    """Write a data set into files that the server can map; return its metadata."""
    dataset = read_many(files, limits=limits, **options)
    for name, values in dataset.arrays().items():
        np.save(place / f"{name}.npy", values, allow_pickle=False)
    gaps = dataset.missing is not None
    return {**dataset.about(), "least_rows": dataset.least_rows, "gaps": gaps}


def read_sets_apart(name: str, file: File, scratch: Path, space: Mapping[str, Any]) -> Sets:
    """Run `read_sets` in another process; `space` has a recording's grid and affine."""
    how = {key: space[key] for key in ("grid", "affine") if key in space}
    task, limits = f"{_HERE}:sets_into", ReadLimits(scratch=scratch)
    return work_apart(task, lambda _, told: told["sets"], [(name, file)], limits=limits, **how)


def sets_into(files: Files, _place: Path, limits: ReadLimits, **space: Any) -> dict[str, Any]:
    """Read the sets of a file for `read_sets_apart`."""
    return {"sets": read_sets(*files[0], limits, **space)}


def read_sets(
    name: str,
    file: File,
    limits: ReadLimits = LIMITS,
    *,
    grid: tuple[int, ...] = (),
    affine: Any = (),
) -> Sets:
    """Read sets of features from a GMT file, a CSV file, or a NIfTI atlas.

    The first line of a CSV file is a header; later lines have a feature and its set. Features
    of an atlas are called "voxel-x-y-z". An atlas must have the `grid` and the `affine` (4, 4) of a
    recording, unless these are empty. Raises InputError for another grid, affine or file format.
    """
    sets: Sets = {}
    kind = name.lower().removesuffix(".gz")
    if kind.endswith(".nii"):
        values = on_grid("atlas", name, file, limits, grid=grid, affine=affine)
        regions = np.rint(values).astype(np.int64)
        for place in np.argwhere(regions > 0).tolist():
            region = f"region {regions[tuple(place)]}"
            sets.setdefault(region, []).append("voxel-{}-{}-{}".format(*place))
        return sets
    text = uploads.file_bytes(name, file, limits).decode("utf-8-sig", errors="replace")
    mark = "\t" if kind.endswith(".gmt") else ","
    table: list[list[str]] = [[]]
    with suppress(csv.Error):  # such as a field of more than 131,072 characters
        table = [line for line in csv.reader(io.StringIO(text), delimiter=mark) if any(line)]
    if mark == "\t":
        return {first: list(filter(None, rest[1:])) for first, *rest in filter(None, table)}
    msg = f"“{shortened(name)}” must have a feature and its set in each line; give GMT or such CSV."
    refuse_if(any(len(line) != 2 for line in table), msg)
    for feature, of in table[1:]:
        sets.setdefault(of, []).append(feature)
    return sets


if __name__ == "__main__":  # low priority; imports libraries before the first request
    serve(_outcome, lambda: [importlib.import_module(name) for name in _LIBRARIES], niceness=5)
