"""Files that can be made again: kept while there is room, the longest unused go first."""

import contextlib
import os
from pathlib import Path

import numpy as np

from appca.storage import files

_OF = "of"


def read(file: Path) -> dict[str, np.ndarray] | None:
    """Return the arrays of an NPZ file and note that it was used; None when it cannot be read."""
    try:
        arrays = files.read_numbered(file, file.name)
        arrays.pop(_OF, None)
    except Exception:  # a damaged file fails in as many ways as its parsers can
        return None
    with contextlib.suppress(OSError):
        os.utime(file)
    return arrays


def write(file: Path, of: str = "", **arrays: np.ndarray) -> None:
    """Write an NPZ file, without pickle; others see all of it or nothing.

    It goes when what it is made `of` is deleted: the digest of a data set or the id of a run.
    Raises TooNew when a later version wrote what is there, or OSError.
    """
    files.write_numbered(file, {**arrays, _OF: np.array(of)}, file.name)


def made_of(file: Path) -> str:
    """Return the names of what a file was made of; empty where it does not say so."""
    with contextlib.suppress(Exception), np.load(file, allow_pickle=False) as archive:
        return " ".join(str(archive[name]) for name in (_OF, "facts") if name in archive)
    return ""


def prune(folder: Path, pattern: str, most_bytes: int, keep: Path | None = None) -> list[Path]:
    """Delete the longest unused files of a pattern until the rest fit; return them, oldest first.

    `keep` is the file just written, which stays even when it alone is larger. Files that another
    process deletes meanwhile, or that cannot be deleted, are passed over.
    """
    files = []
    for file in folder.glob(pattern):
        with contextlib.suppress(OSError):
            facts = file.stat()
            files.append((facts.st_mtime_ns, facts.st_size, file))
    total, gone = sum(size for _, size, _ in files), []
    for _, size, file in sorted(files):
        if total <= most_bytes:
            break
        if file == keep:
            continue
        with contextlib.suppress(OSError):
            file.unlink()
            gone.append(file)
            total -= size
    return gone
