"""Single files of facts (JSON) or arrays (NPZ), with the number of their format, without pickle."""

import json
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from appca.storage import atomic
from appca.storage.digests import Damaged, seal
from appca.storage.formats import KEY, OtherFormat, numbered, refuse_other_format, without_number
from appca.storage.identity import sha256
from appca.storage.packed import as_object

DIGEST = "sha256"  # key of the digest of a JSON file's other facts
MOST_REMEMBERED = 1 << 14  # folders
SETTLED_SECONDS = 2.0  # before this, a change may keep the time that the system noted
Result = TypeVar("Result")


def unless_changed(*names: str) -> Callable[[Callable[[Path], Result]], Callable[[Path], Result]]:
    """Cache a function of a folder until one of the named files in it changes."""

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


def as_json(facts: Mapping[str, Any]) -> bytes:
    """Return the content of a JSON file that `read_json` reads."""
    return _with_digest(numbered(facts))


def _with_digest(record: Mapping[str, Any]) -> bytes:
    def text(value: object) -> str:
        return json.dumps(value, indent=1, ensure_ascii=False)

    return f"{text({**record, DIGEST: sha256(text(record))})}\n".encode()


def read_json(file: Path, what: str) -> dict[str, Any]:
    """Return the facts of a JSON file.

    Raises OSError, ValueError or RecursionError when it is not there or damaged, OtherFormat when
    another version wrote it.
    """
    content = file.read_bytes()
    record = as_object(content.decode())
    has_digest = record.pop(DIGEST, None) is not None
    if has_digest and _with_digest(record) != content:  # before the number, which may be damaged
        raise Damaged(file)
    facts = without_number(what, record)
    if not has_digest:
        raise Damaged(file)
    return facts


def write_json(file: Path, facts: Mapping[str, Any], what: str) -> None:
    """Write facts as a whole file.

    Raises OtherFormat when another version wrote the present file, or OSError.
    """
    keep_other_format(file, what)
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(file, as_json(facts))


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an NPZ file. A damaged one fails in as many ways as its parsers can."""
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_numbered(file: Path, what: str) -> dict[str, np.ndarray]:
    """Return the arrays that `write_numbered` wrote; fails as `read_arrays`, or by OtherFormat."""
    arrays = read_arrays(file)
    refuse_other_format(what, int(arrays.pop(KEY)))
    return arrays


def write_numbered(file: Path, arrays: Mapping[str, np.ndarray], what: str) -> None:
    """Write arrays as a whole NPZ file with its digest; raises as `write_json`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    keep_other_format(file, what)
    with atomic.growing(file) as stream:
        write_arrays(stream, numbered(arrays))
        seal(stream)


def write_arrays(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an NPZ file."""
    np.savez(stream, **arrays)  # type: ignore[arg-type]


def keep_other_format(file: Path, what: str) -> None:
    """Raise OtherFormat where another version wrote a file, which must not be replaced."""
    try:
        if file.suffix == ".npz":
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                refuse_other_format(what, int(archive[KEY]))
        else:
            read_json(file, what)
    except OtherFormat:
        raise
    except Exception:  # it is not there, or damaged in one of the many ways that parsers fail
        return
