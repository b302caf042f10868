"""Single files of facts (JSON) or arrays (NPZ), with the number of their format, without pickle."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from appca.storage import atomic
from appca.storage.formats import KEY, TooNew, current, numbered, refuse_newer
from appca.storage.packed import as_object


def read_json(file: Path, what: str, kind: str = "") -> dict[str, Any]:
    """Read facts in their present form; see `format.current`.

    Raises
    ------
    OSError, ValueError, RecursionError
        When it is not there or damaged; a `TooNew` when a later version wrote it.
    """
    return current(what, as_object(file.read_text(encoding="utf-8")), kind)


def write_json(file: Path, facts: Mapping[str, Any], what: str) -> None:
    """Put facts in their place, with the number of the format.

    Raises
    ------
    TooNew
        When a later version wrote what is there.
    OSError
    """
    keep_newer(file, what)
    atomic.write(file, json.dumps(numbered(facts), indent=1, ensure_ascii=False))


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an NPZ file. A damaged one fails in as many ways as its parsers can."""
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_numbered(file: Path, what: str) -> dict[str, np.ndarray]:
    """Return the arrays that `write_numbered` wrote; fails as `read_arrays`, or by `TooNew`."""
    arrays = read_arrays(file)
    refuse_newer(what, int(arrays.pop(KEY, 1)))
    return arrays


def write_numbered(file: Path, arrays: Mapping[str, np.ndarray], what: str) -> None:
    """Put arrays in their place as an NPZ file, with the number of the format.

    Raises
    ------
    TooNew
        When a later version wrote what is there.
    OSError
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    keep_newer(file, what)
    with atomic.growing(file) as stream:
        write_arrays(stream, numbered(arrays))


def write_arrays(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an NPZ file."""
    np.savez(stream, **arrays)  # type: ignore[arg-type]


def keep_newer(file: Path, what: str) -> None:
    """Raise `TooNew` where a later version wrote a file, which must not be replaced."""
    try:
        if file.suffix == ".npz":
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                refuse_newer(what, int(archive[KEY]) if KEY in archive else 1)
        else:
            read_json(file, what)
    except TooNew:
        raise
    except Exception:  # it is not there or damaged, which may be in as many ways as parsers fail
        return
