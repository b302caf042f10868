"""Single files of facts (JSON) or arrays (NPZ), with the number of their format, without pickle."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from appca.storage import atomic, digests
from appca.storage.formats import KEY, TooNew, current, numbered, refuse_newer
from appca.storage.packed import as_object

MOST_REMEMBERED = 1 << 14  # folders
SETTLED_SECONDS = 2.0  # after which a change is seen by the time that the system notes of it
MARK = ".kept"
Result = TypeVar("Result")


def unless_changed(*names: str) -> Callable[[Callable[[Path], Result]], Callable[[Path], Result]]:
    """Let a function of a folder read again only if one of the named files has changed since."""

    def decorate(read: Callable[[Path], Result]) -> Callable[[Path], Result]:
        @lru_cache(MOST_REMEMBERED)
        def remembered(folder: Path, _states: tuple[object, ...]) -> Result:
            return read(folder)

        @wraps(read)
        def ask(folder: Path) -> Result:
            facts = [(folder / name).stat() for name in names]
            if time.time() < max(fact.st_ctime for fact in facts) + SETTLED_SECONDS:
                return read(folder)
            return remembered(
                folder, tuple((file.st_ino, file.st_ctime_ns, file.st_size) for file in facts)
            )

        return ask

    return decorate


def read_json(file: Path, what: str, kind: str = "") -> dict[str, Any]:
    """Read facts in their present form; see `format.current`.

    Raises OSError, ValueError or RecursionError when it is not there or damaged; `TooNew` when a
    later version wrote it.
    """
    content = file.read_bytes()
    has_seal = digests.is_sealed(file, content)  # first: a number may be what is damaged
    facts = as_object(content.decode())
    record = current(what, facts, kind)
    _refuse_unsealed(file, facts.get(KEY, 1), has_seal)
    record.pop(digests.SEAL, None)
    return record


def write_json(file: Path, facts: Mapping[str, Any], what: str) -> None:
    """Put facts in their place, with the number of the format and their digest.

    Raises TooNew when a later version wrote what is there, or OSError.
    """
    keep_newer(file, what)
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(file, as_json(facts))


def as_json(facts: Mapping[str, Any]) -> bytes:
    """Return the content of a JSON file that `read_json` reads."""
    return digests.sealed(json.dumps(numbered(facts), indent=1, ensure_ascii=False))


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an NPZ file. A damaged one fails in as many ways as its parsers can."""
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_numbered(file: Path, what: str) -> dict[str, np.ndarray]:
    """Return the arrays that `write_numbered` wrote; fails as `read_arrays`, or by `TooNew`."""
    has_seal = digests.is_sealed_zip(file)
    arrays = read_arrays(file)
    number = int(arrays.pop(KEY, 1))
    refuse_newer(what, number)
    _refuse_unsealed(file, number, has_seal)
    return arrays


def number_of(file: Path) -> int:
    """Return the number of the format of an NPZ file; fails as `read_arrays`."""
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return int(archive[KEY]) if KEY in archive else 1


def write_numbered(file: Path, arrays: Mapping[str, np.ndarray], what: str) -> None:
    """Put arrays in their place as an NPZ file, with the number of the format and their digest.

    Raises TooNew when a later version wrote what is there, or OSError.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    keep_newer(file, what)
    with atomic.growing(file) as stream:
        write_arrays(stream, numbered(arrays))
        digests.seal(stream)


def mark(file: Path, text: str = "") -> None:
    """Note beside a person's file that it is stored, so that `appca check` notices its loss.

    Where the disk refuses, the file is stored without a mark.
    """
    with suppress(OSError):
        atomic.write(file.with_name(f".{file.name}{MARK}"), text)


def marks(folder: Path) -> dict[str, str]:
    """Return the names of the files that are marked in a folder, with the texts of the marks."""
    marked = sorted(folder.glob(f".*{MARK}"))
    return {file.name[1:].removesuffix(MARK): file.read_text("utf-8", "replace") for file in marked}


def unmark(file: Path) -> None:
    """Delete a file with its mark; one that is gone already is no error. May raise OSError."""
    file.with_name(f".{file.name}{MARK}").unlink(missing_ok=True)
    file.unlink(missing_ok=True)


def _refuse_unsealed(file: Path, number: int, has_seal: bool) -> None:
    """Refuse what has lost its digest; format 1 had none."""
    if number > 1 and not has_seal:
        raise digests.Damaged(file)


def write_arrays(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an NPZ file."""
    np.savez(stream, **arrays)  # type: ignore[arg-type]


def keep_newer(file: Path, what: str) -> None:
    """Raise `TooNew` where a later version wrote a file, which must not be replaced."""
    try:
        if file.suffix == ".npz":
            refuse_newer(what, number_of(file))
        else:
            read_json(file, what)
    except TooNew:
        raise
    except Exception:  # it is not there or damaged, which may be in as many ways as parsers fail
        return
