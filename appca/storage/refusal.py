"""What a disk refuses, in one sentence: what, where, why, and what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appca.storage.errors import InputError
from appca.storage.wording import shortened

ROOM = "free some space, or name another folder in APPCA_HOME"


def reason(error: Exception) -> str:
    """Say in a few words why something could not be read or written."""
    if isinstance(error, FileNotFoundError):
        return f"{Path(error.filename or '').name or 'a file'} is missing"
    if isinstance(error, KeyError):
        return f"“{shortened(error.args[0])}” is missing"
    if isinstance(error, MemoryError):
        return "there is too little memory"
    why = error.strerror if isinstance(error, OSError) else None
    return shortened(why or str(error) or "it cannot be read", 120).strip(".")


def refused(what: str, error: Exception, remedy: str = ROOM) -> InputError:
    """Return “The run could not be deleted: Read-only file system; check its rights.” or so."""
    return InputError(f"{what}: {reason(error)}; {remedy}.")


@contextmanager
def storing(what: str, place: Path, remedy: str = ROOM) -> Iterator[None]:
    """
    Turn what the disk refuses into one sentence.

    Parameters
    ----------
    what : str
        Is stored: “The run”.
    place : Path
        Where.
    remedy : str
        What to do, without the full stop.

    Raises
    ------
    InputError
        In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        told = f"{what} could not be stored in {place}"
        raise refused(told, error, remedy) from error
