"""Selections of rows: combining them, and keeping them on disk under a name."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.storage.files import read_numbered, write_numbered
from appca.storage.identity import ID_DIGITS, is_digest, sha256
from appca.words import InputError, reason, refusing, storing

NAME_LENGTH = 60

# Ways to bring other rows into a selection: title, help, and what combines both (N,) bool.
COMBINATIONS: dict[str, tuple[str, str, Any]] = {
    "replace": ("Select", "Select these rows instead", lambda _, other: other.copy()),
    "union": ("Add", "Add these rows to the selection", np.logical_or),
    "intersect": ("Keep only", "Keep only the selected rows that are among these", np.logical_and),
    "minus": ("Remove", "Take these rows out of the selection", np.greater),
}


def token_of(mask: np.ndarray) -> str:
    """Twelve hex digits made of the selected rows: the same rows have the same token."""
    return sha256(f"{len(mask)} ".encode() + np.packbits(mask).tobytes(), ID_DIGITS)


class SavedSelection(NamedTuple):
    """A selection that was given a name."""

    name: str
    mask: np.ndarray  # (N,) bool
    rule: str = ""  # that describes it, as text: `appca.analysis.rule.RowRule.to_json`


class SelectionStore:
    """Named selections below ``<home>/selections/<digest of the data set>/``, one NPZ each.

    Files that cannot be read, or are of another number of rows, are left out; see `damaged`.
    """

    def __init__(self, home: Path) -> None:
        self.folder = Path(home) / "selections"

    def save(self, digest: str, name: str, mask: np.ndarray, rule: str = "") -> str:
        """Keep a selection under a name, in place of an older one of that name; return the name.

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
        kept = {"name": name, "bits": np.packbits(mask), "n_rows": len(mask), "rule": rule}
        arrays = {key: np.array(value) for key, value in kept.items()}
        with storing("The selection", file.parent):
            write_numbered(file, arrays, f"The selection “{name}”")
        return name

    def list(self, digest: str, n_rows: int) -> list[SavedSelection]:
        """Return all selections of a data set by name."""
        return _kept(self._folder(digest).glob("*.npz"), n_rows)

    def damaged(self, digest: str, n_rows: int) -> tuple[str, ...]:
        """Say of each selection that cannot be read in one sentence why, and what to do."""
        return tuple(
            f"A saved selection is damaged ({reason(why)}) and left out; delete {file}, then "
            "select its rows and save them again."
            for file, why in _read(sorted(self._folder(digest).glob("*.npz")), n_rows)
            if isinstance(why, Exception)
        )

    def rules(self, digest: str) -> tuple[str, ...]:
        """Return the rules that were kept with all data sets but one, each once, by name."""
        files = (file for file in self.folder.glob("*/*.npz") if file.parent.name != digest)
        return tuple(dict.fromkeys(saved.rule for saved in _kept(files, None) if saved.rule))

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

    def delete(self, digest: str, name: str) -> None:
        """Forget a selection; one that is not there is no error.

        Raises InputError when the disk refuses.
        """
        with refusing("The selection could not be deleted", "check the permissions of its file"):
            self._file(digest, tidy(name)).unlink(missing_ok=True)

    def _folder(self, digest: str) -> Path:
        if not is_digest(digest):
            msg = f"A data set is named by 64 hex digits; got “{digest[:12]}”."
            raise InputError(msg)
        return self.folder / digest

    def _file(self, digest: str, name: str) -> Path:
        # A name is a person's text and never a part of a path.
        return self._folder(digest) / f"{sha256(name, 16)}.npz"


def tidy(name: str) -> str:
    """Return a name on one line, no longer than fits a menu."""
    return " ".join(name.split())[:NAME_LENGTH].strip()


def _kept(files: Iterable[Path], n_rows: int | None) -> list[SavedSelection]:
    kept = (saved for _, saved in _read(files, n_rows) if isinstance(saved, SavedSelection))
    return sorted(kept, key=lambda saved: saved.name.casefold())


def _read(
    files: Iterable[Path], n_rows: int | None
) -> Iterator[tuple[Path, SavedSelection | Exception]]:
    """Yield selections, of any number of rows for None, or what stands in the way."""
    for file in files:
        try:
            kept = read_numbered(file, "The selection")
            n = int(kept["n_rows"])
            mask = np.unpackbits(kept["bits"], count=n).astype(bool)
            name, rule = str(kept["name"]), str(kept.get("rule", ""))
            wrong = ValueError(f"it is not of {n_rows} rows")
            yield file, SavedSelection(name, mask, rule) if n_rows in (None, n) else wrong
        except Exception as error:  # a damaged file fails in as many ways as its parsers can
            yield file, error
