"""Journals: folders with a file to which each result of a long computation is appended.

A journal is a folder ``<home>/<kind>/<id>/`` with the settings in ``config.json`` and one line per
record in ``records.txt``, without pickle. Every line has a checksum, and truncated or damaged lines
are ignored.
"""

import json
from pathlib import Path
from typing import Any

from appca.storage import files
from appca.storage.files import line_of, lines_in, read_json, write_json
from appca.storage.identity import ID_DIGITS, is_id
from appca.words import refuse_if, storing

RECORDS = "records.txt"
_BEGUN = "null"  # the first line; missing if the file was emptied
Record = list[Any]  # numbers, texts and None


class JournalStore:
    """The journals of a kind, in the folder of this name in the home."""

    def __init__(self, home: Path, kind: str) -> None:
        self.folder = Path(home) / kind

    def begin(self, name: str, config: dict[str, Any]) -> None:
        """Create a journal, or open it and remove damaged lines; InputError if writing fails."""
        folder = self.folder / name
        with storing("The result", self.folder):
            folder.mkdir(parents=True, exist_ok=True)
            if self.config(name) is None:
                write_json(folder / "config.json", config, f"Result {name}")
            file = folder / RECORDS
            with file.open("ab+") as opened:
                opened.seek(0)
                content = opened.read()
            sound = b"".join(map(line_of, lines_in(content)[0])) or line_of(_BEGUN)
            if sound != content:
                files.write(file, sound)

    def append(self, name: str, record: Record) -> None:
        """Append a record: numbers, texts and None; numbers are restored to the last bit.

        Raises InputError if writing fails.
        """
        line, place = line_of(json.dumps(record, allow_nan=False)), self.folder / name / RECORDS
        with storing("The result", self.folder), place.open("ab", buffering=0) as file:
            end = file.seek(0, 2)
            try:
                while line:
                    line = line[file.write(line) :]
            except OSError:
                file.truncate(end)
                raise

    def records(self, name: str) -> list[Record]:
        """Return all undamaged records, oldest first; an empty list for an unknown name."""
        try:
            content = (self._checked(name) / RECORDS).read_bytes()
        except (OSError, ValueError):
            return []
        return [json.loads(text) for text in lines_in(content)[0] if text != _BEGUN]

    def config(self, name: str) -> dict[str, Any] | None:
        """Return the settings of a journal, or None if they cannot be read."""
        try:
            return read_json(self._checked(name) / "config.json", f"Result {name}")
        except (OSError, ValueError, RecursionError):
            return None

    def names(self) -> list[str]:
        """Return the names of the journals on disk, most recently written first."""
        try:
            files = [(file.stat().st_mtime, file) for file in self.folder.glob(f"*/{RECORDS}")]
        except OSError:
            return []
        return [file.parent.name for _, file in sorted(files, reverse=True)]

    def _checked(self, name: str) -> Path:
        msg = f"The name of a journal has {ID_DIGITS} hex digits; got {name!r:.40}."
        refuse_if(not is_id(name), msg)
        return self.folder / name
