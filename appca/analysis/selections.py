"""Selections of rows: combining them, and keeping them on disk under a name."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from appca.storage.files import read_numbered, write_numbered
from appca.storage.identity import ID_DIGITS, is_digest, sha256
from appca.words import InputError, reason, refusing, storing

NAME_LENGTH = 60


COMBINATIONS = {  # ways to bring other rows into a selection: title and help
    "replace": ("Select", "Select these rows instead"),
    "union": ("Add", "Add these rows to the selection"),
    "intersect": ("Keep only", "Keep only those selected rows that are among these"),
    "minus": ("Remove", "Take these rows out of the selection"),
}


def combined(selected: np.ndarray, other: np.ndarray, how: str) -> np.ndarray:
    """Combine two selections (N,) bool of the same rows by a key of `COMBINATIONS`."""
    results: dict[str, np.ndarray] = {
        "replace": other.copy(),
        "union": selected | other,
        "intersect": selected & other,
        "minus": selected & ~other,
    }
    return results[how]


def token_of(mask: np.ndarray) -> str:
    """Twelve hex digits made of the selected rows: the same rows have the same token."""
    return sha256(f"{len(mask)} ".encode() + np.packbits(mask).tobytes(), ID_DIGITS)


class SavedSelection(NamedTuple):
    """A selection that was given a name."""

    name: str
    mask: np.ndarray  # (N,) bool
    created: float  # seconds since 1970
    rule: str = ""  # that describes it, as text: `appca.analysis.rule.RowRule.to_json`


class SelectionStore:
    """Named selections below ``<home>/selections/<digest of the data set>/``, one NPZ each.

    A file is written beside its place and moved there in one step. Files that cannot be read, or
    are of another number of rows, are left out; `damaged` says which.
    """

    def __init__(self, home: Path) -> None:
        self.folder = Path(home) / "selections"

    def save(self, digest: str, name: str, mask: np.ndarray, rule: str = "") -> str:
        """Keep a selection under a name, in place of an older one of that name; return the name.

        `rule` describes its rows; see `SavedSelection`.

        Raises InputError without a name or without rows, or when the disk refuses.
        """
        name = tidy(name)
        if not name:
            msg = "A selection needs a name to be kept; type one."
            raise InputError(msg)
        if not mask.any():
            msg = f"There are no rows to keep as “{name}”; select some first."
            raise InputError(msg)
        file = self._file(digest, name)
        arrays = {
            "name": np.array(name),
            "bits": np.packbits(mask),
            "n_rows": np.array(len(mask)),
            "created": np.array(time.time()),
        } | ({"rule": np.array(rule)} if rule else {})
        with storing("The selection", file.parent):
            write_numbered(file, arrays, f"The selection “{name}”")
        return name

    def list(self, digest: str, n_rows: int) -> list[SavedSelection]:
        """Return all selections of a data set by name."""
        selections = (_read(file, n_rows) for file in self._of(digest).glob("*.npz"))
        kept = [saved for saved in selections if isinstance(saved, SavedSelection)]
        return sorted(kept, key=lambda saved: saved.name.casefold())

    def damaged(self, digest: str, n_rows: int) -> tuple[str, ...]:
        """Say of each selection that cannot be read in one sentence why, and what to do."""
        entries = ((file, _read(file, n_rows)) for file in sorted(self._of(digest).glob("*.npz")))
        return tuple(
            f"A saved selection is damaged ({reason(why)}) and left out; delete {file}, then "
            "select its rows and save them again."
            for file, why in entries
            if isinstance(why, Exception)
        )

    def rename(self, digest: str, old: str, new: str, n_rows: int) -> None:
        """Keep a selection under another name.

        Raises InputError without a name, with one that is taken, or when the disk refuses.
        """
        saved = {kept.name: kept for kept in self.list(digest, n_rows)}
        new = tidy(new)
        if old not in saved or new == old:
            return
        if new in saved:
            msg = f"There is a selection “{new}” already; delete it first, or choose another name."
            raise InputError(msg)
        self.save(digest, new, saved[old].mask, saved[old].rule)
        self.delete(digest, old)

    def rules(self, digest: str) -> tuple[str, ...]:
        """Return the rules that were kept with all data sets but one, each once, by name."""
        files = (file for file in self.folder.glob("*/*.npz") if file.parent.name != digest)
        kept = (_read(file, None) for file in files)
        saved = [each for each in kept if isinstance(each, SavedSelection) and each.rule]
        by_name = sorted(saved, key=lambda selection: selection.name.casefold())
        return tuple(dict.fromkeys(selection.rule for selection in by_name))

    def delete(self, digest: str, name: str) -> None:
        """Forget a selection; one that is not there is no error.

        Raises InputError when the disk refuses.
        """
        with refusing("The selection could not be deleted", "check the permissions of its file"):
            self._file(digest, tidy(name)).unlink(missing_ok=True)

    def _of(self, digest: str) -> Path:
        if not is_digest(digest):
            msg = f"A data set is named by 64 hex digits; got “{digest[:12]}”."
            raise InputError(msg)
        return self.folder / digest

    def _file(self, digest: str, name: str) -> Path:
        # A name is a person's text and never a part of a path.
        return self._of(digest) / f"{sha256(name, 16)}.npz"


def tidy(name: str) -> str:
    """Return a name on one line, no longer than fits a menu."""
    return " ".join(name.split())[:NAME_LENGTH].strip()


def _read(file: Path, n_rows: int | None) -> SavedSelection | Exception:
    """Return a selection, of any number of rows for None, or what stands in the way."""
    try:
        kept = read_numbered(file, "The selection")
        if n_rows is not None and int(kept["n_rows"]) != n_rows:
            return ValueError(f"it is not of {n_rows:,} rows")
        mask = np.unpackbits(kept["bits"], count=int(kept["n_rows"])).astype(bool)
        rule = str(kept.get("rule", ""))
        return SavedSelection(str(kept["name"]), mask, float(kept["created"]), rule)
    except Exception as error:  # a damaged file fails in as many ways as its parsers can
        return error
