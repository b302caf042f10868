"""The process that reads uploads for the server, see `process.py`."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from appca.data.files import Files, ReadLimits
from appca.data.readers import read_many
from appca.data.readers.process import too_much
from appca.processes import Tell, serve
from appca.words import InputError, counted, shortened

_LIBRARIES = ("pandas", "pyarrow.parquet", "PIL.Image", "h5py")  # that are slow to import
_LARGEST = 400 << 20  # bytes at most in use, beyond which the process is not used again


def load_libraries() -> None:
    """Import what is slow to import while nobody waits for it."""
    for name in _LIBRARIES:
        importlib.import_module(name)


def outcome(request: dict[str, Any], _tell: Tell) -> tuple[dict[str, Any], bool]:
    """Do what is asked for; return what came of it, and whether to use this process again."""
    files = [(str(name), str(path)) for name, path in request["files"]]
    title = f"“{shortened(files[0][0])}”" if len(files) == 1 else counted(len(files), "file")
    options = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in request["options"].items()
    }
    fit = True
    with _bounded(request["memory"], request["seconds"]):
        try:
            module, _, name = request["task"].partition(":")
            task = getattr(importlib.import_module(module), name)
            limits = ReadLimits(**request["limits"])
            answer = task(files, Path(request["place"]), limits, **options)
        except InputError as error:
            fit = not _for_lack_of_memory(error)
            sentence = str(error) if fit else too_much(title, request["memory"])
            answer = {"sentence": sentence, "report": error.report if fit else None}
        except MemoryError:
            fit = False
            answer = {"sentence": too_much(title, request["memory"]), "report": None}
    return answer, fit and _status("VmHWM") < _LARGEST


@contextmanager
def _bounded(memory: int, seconds: float) -> Iterator[None]:
    """Bound memory and seconds of computing, counted from what is in use, where the system can."""
    in_use = _status("VmData")
    _limit("RLIMIT_DATA", in_use + memory if in_use else None)
    _limit("RLIMIT_CPU", int(sum(os.times()[:2]) + seconds) + 1)
    try:
        yield
    finally:
        _limit("RLIMIT_DATA", None)
        _limit("RLIMIT_CPU", None)


def _limit(name: str, most: int | None) -> None:
    with suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (hard if most is None else most, hard))


def read(files: Files, place: Path, limits: ReadLimits, **options: Any) -> dict[str, Any]:
    """Write the data set of files for the server to map; return what else there is to know of it.

    The task `process.READ`.
    """
    dataset = read_many(files, limits=limits, **options)
    for name, values in dataset.arrays().items():
        np.save(place / f"{name}.npy", values, allow_pickle=False)
    gaps = dataset.missing is not None
    return {**dataset.about(), "least_rows": dataset.least_rows, "gaps": gaps}


def _for_lack_of_memory(error: BaseException | None) -> bool:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # a cause may have been raised again
        if isinstance(error, MemoryError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _status(field: str) -> int:
    """Read what the system says of this process's memory, in bytes; 0 where it says nothing."""
    try:
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(field)), 0)


if __name__ == "__main__":
    serve(outcome, load_libraries, niceness=5)  # pages go first
