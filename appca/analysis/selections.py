"""Selections of rows: combine them, and store them by name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.data.columns import tidy
from appca.storage.files import read_numbered, write_numbered
from appca.storage.identity import ID_DIGITS, is_digest, sha256
from appca.words import reason, refuse_if, refusing, storing

# Ways to combine other rows with a selection: title, help, and a function of two masks (N,).
COMBINATIONS: dict[str, tuple[str, str, Any]] = {
    "replace": ("Select", "Select these rows instead", lambda _, other: other.copy()),
    "union": ("Add", "Add these rows to the selection", np.logical_or),
    "intersect": ("Keep only", "Keep only the selected rows that are among these", np.logical_and),
    "minus": ("Remove", "Remove these rows from the selection", np.greater),
}


def token_of(mask: np.ndarray) -> str:
    """Return twelve hex digits that identify a selection by its rows."""
    return sha256(f"{len(mask)} ".encode() + np.packbits(mask).tobytes(), ID_DIGITS)


class SavedSelection(NamedTuple):
    """A stored selection with its name."""

    name: str
    mask: np.ndarray  # (N,) bool


class SelectionStore:
    """Named selections in ``<home>/selections/<digest>/``; see `damaged` for unreadable ones."""

    def __init__(self, home: Path) -> None:
        self.folder = Path(home) / "selections"

    def save(self, digest: str, name: str, mask: np.ndarray) -> str:
        """Store a selection, replacing one of its name; InputError if empty or not writable."""
        name = tidy(name)
        refuse_if(not name, "A saved selection needs a name; type one.")
        refuse_if(not mask.any(), f"There are no rows to save as “{name}”; select some first.")
        file = self._file(digest, name)
        bits, n_rows = np.packbits(mask), np.array(len(mask))
        arrays = {"name": np.array(name), "bits": bits, "n_rows": n_rows}
        with storing("The selection", file.parent):
            write_numbered(file, arrays, f"The selection “{name}”")
        return name

    def list(self, digest: str, n_rows: int) -> list[SavedSelection]:
        """Return all selections of a data set by name."""
        kept = (saved for saved in self._read(digest, n_rows) if isinstance(saved, SavedSelection))
        return sorted(kept, key=lambda saved: saved.name.casefold())

    def damaged(self, digest: str, n_rows: int) -> tuple[str, ...]:
        """Return a sentence for each unreadable selection, with the reason and the remedy."""
        return tuple(said for said in self._read(digest, n_rows) if isinstance(said, str))

    def delete(self, digest: str, name: str) -> None:
        """Delete a selection if it exists; InputError if the file cannot be deleted."""
        with refusing("The selection could not be deleted", "check the permissions of its file"):
            self._file(digest, name).unlink(missing_ok=True)

    def _folder(self, digest: str) -> Path:
        msg = f"The id of a data set has 64 hex digits; got “{digest[:12]}”."
        refuse_if(not is_digest(digest), msg)
        return self.folder / digest

    def _file(self, digest: str, name: str) -> Path:
        # names are user text and must not become part of a path
        return self._folder(digest) / f"{sha256(name, 16)}.npz"

    def _read(self, digest: str, n_rows: int) -> Iterator[SavedSelection | str]:
        for file in sorted(self._folder(digest).glob("*.npz")):
            try:
                kept = read_numbered(file, "The selection")
                n = int(kept["n_rows"])
                mask = np.unpackbits(kept["bits"], count=n).astype(bool)
                refuse_if(n != n_rows, f"it does not have {n_rows} rows")
                yield SavedSelection(str(kept["name"]), mask)
            except Exception as error:  # parsers raise many kinds
                yield (
                    f"A saved selection is damaged ({reason(error)}) and skipped; delete {file}, "
                    "then select its rows and save them again."
                )
