"""The home folder of runs, data sets and jobs; the number of threads."""

import os
import secrets
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

from appca.storage import files, lock

SECRET, SECRET_BYTES = "secret", 32
_held: list[ExitStack] = []


def home() -> Path:
    """Return the folder named by ``APPCA_HOME``, else the user's data folder.

    Only its owner can access the folder (0700), even if it existed before with other permissions.
    """
    if os.environ.get("APPCA_HOME"):
        return private(Path(os.environ["APPCA_HOME"]).expanduser().absolute())
    from platformdirs import user_data_path

    return private(user_data_path("appca", appauthor=False))


@cache
def private(folder: Path) -> Path:
    """Make a folder private; return its path."""
    folder = folder.resolve()
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    return folder


def is_served(*, hold: bool = False) -> str | None:
    """Return why to refuse a second server, if so; `hold` locks it until this process ends."""
    place = home() / "jobs"
    with suppress(OSError), ExitStack() as stack:
        place.mkdir(exist_ok=True)
        file = stack.enter_context(lock.opened(place))
        if file is not None and lock.take(file) is False:
            return (
                f"Another appca serves {place.parent}; use it, close it, or set APPCA_HOME to "
                "another folder."
            )
        if hold:
            _held.append(stack.pop_all())
    return None


def secret(folder: Path) -> bytes:
    """Return 32 secret random bytes, shared by processes of a home; OSError if it is read-only."""
    folder.mkdir(parents=True, exist_ok=True)
    with lock.held(folder):
        file = folder / SECRET
        with suppress(OSError):
            stored = file.read_bytes()
            if len(stored) == SECRET_BYTES:
                return stored
        made = secrets.token_bytes(SECRET_BYTES)
        files.write(file, made)
        return made


def threads() -> int:
    """Return the threads per computation: ``OMP_NUM_THREADS``, else half of the cores.

    The last bits of a matrix product depend on the number of threads, so pages and workers must use
    the same number. Two workers must not both use all cores: on two cores, two simultaneous
    products then take three times as long as with one thread each.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isascii() and wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)  # not available on every system
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, cores // 2)


def hold_threads() -> None:
    """Limit BLAS to `threads()` for good, so that pages, workers and all fits get the same bits."""
    import appca.models.estimator  # noqa: F401 (loads every BLAS)
    from appca.models.threads import hold_blas

    hold_blas(threads())
