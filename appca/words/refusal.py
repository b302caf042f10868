"""What a disk refuses, in one sentence: what, where, why, and what to do about it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from appca.words.errors import InputError
from appca.words.wording import shortened

OTHER = "free some space, or name another folder"
ROOM = "free some space, or name another folder in APPCA_HOME"


def reason(error: Exception) -> str:
    """Say in a few words why something could not be read."""
    if isinstance(error, FileNotFoundError):
        return f"{Path(error.filename or '').name or 'a file'} is missing"
    if isinstance(error, KeyError):
        return f"“{shortened(error.args[0])}” is missing"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, MemoryError):
        return "there is too little memory"
    why = error.strerror if isinstance(error, OSError) else None
    first = str(error).partition(". ")[0]  # what a parser advises besides is for programmers
    return shortened(why or first or "it cannot be read", 120).strip(".")


def refused(what: str, error: OSError, remedy: str = ROOM) -> InputError:
    """Return “The run could not be deleted: Read-only file system; check its rights.” or so."""
    why = error.strerror or reason(error)  # the name of a draft would tell nobody anything
    return InputError(f"{what}: {why}; {remedy}.")


@contextmanager
def refusing(what: str, remedy: str = ROOM) -> Iterator[None]:
    """Turn an OSError into an InputError of one sentence, see `refused`."""
    try:
        yield
    except OSError as error:
        raise refused(what, error, remedy) from error


def storing(what: str, place: Path, remedy: str = ROOM) -> AbstractContextManager[None]:
    """Return `refusing` for something, “The run”, that is stored in a place."""
    return refusing(f"{what} could not be stored in {place}", remedy)
