"""Long computations that keep every number as soon as it is there.

A journal is a folder ``<home>/<kind>/<id>/`` with ``config.json``, which says what is computed, and
``records.txt``, to which one line is appended for every piece that is done. Whoever goes on reads
what is there and computes the rest; so do pages that watch. Every line carries a checksum: one that
was cut short or damaged counts as never written. No pickle.
"""

import json
import zlib
from pathlib import Path
from typing import Any

from appca.storage.files import read_json, write_json
from appca.storage.identity import ID_DIGITS, is_id
from appca.storage.refusal import storing

Record = list[Any]  # numbers, texts and None


class JournalStore:
    """The journals of one kind.

    Parameters
    ----------
    home : Path
        Folder of the stores.
    kind : str
        Name of the folder below it.
    """

    def __init__(self, home: Path, kind: str) -> None:
        self.folder = Path(home) / kind

    def begin(self, name: str, config: dict[str, Any]) -> None:
        """Make a journal, or open it to go on: a last line that was cut short is closed.

        Raises
        ------
        InputError
            When the disk refuses.
        """
        folder = self.folder / name
        with storing("The result", self.folder):
            folder.mkdir(parents=True, exist_ok=True)
            if self.config(name) is None:
                write_json(folder / "config.json", config, f"Result {name}")
            with (folder / "records.txt").open("ab+") as file:
                if file.tell():
                    file.seek(-1, 2)
                    if file.read() != b"\n":
                        file.write(b"\n")

    def append(self, name: str, record: Record) -> None:
        """Add a record: numbers, texts and None; numbers come back to the last bit.

        Raises
        ------
        InputError
            When the disk refuses.
        """
        text = json.dumps(record, allow_nan=False)
        with (
            storing("The result", self.folder),
            (self.folder / name / "records.txt").open("a", encoding="utf-8") as file,
        ):
            file.write(f"{_sum(text)} {text}\n")

    def records(self, name: str) -> list[Record]:
        """Return all whole records, oldest first; none for an unknown name."""
        try:
            text = (self._checked(name) / "records.txt").read_text("utf-8", errors="replace")
        except (OSError, ValueError):
            return []
        found = (line.partition(" ") for line in text.splitlines())
        return [json.loads(body) for digits, _, body in found if digits == _sum(body)]

    def config(self, name: str) -> dict[str, Any] | None:
        """Return what a journal is about, or None when it cannot be read."""
        try:
            return read_json(self._checked(name) / "config.json", f"Result {name}", "journal")
        except (OSError, ValueError, RecursionError):
            return None

    def names(self) -> list[str]:
        """Return the journals on disk, the one last written to first."""
        try:
            files = [(file.stat().st_mtime, file) for file in self.folder.glob("*/records.txt")]
        except OSError:
            return []
        return [file.parent.name for _, file in sorted(files, reverse=True)]

    def _checked(self, name: str) -> Path:
        """Return a journal's folder; the name may come from an address."""
        if not is_id(name):
            msg = f"A journal is named by {ID_DIGITS} hex digits; got {name!r:.40}."
            raise ValueError(msg)
        return self.folder / name


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"
