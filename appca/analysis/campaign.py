"""Campaigns: series of measurements that are stored one by one and can go on after a stop.

The settings of a campaign name its journal, a folder ``<home>/<kind>/<id>/`` with ``config.json``
and ``records.txt``, to which one line is appended for every measurement. Pages that watch read it.
Every line carries a checksum: a line that was cut short or damaged counts as never written.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from appca.analysis.fitted import OfModel
from appca.data.dataset import Dataset
from appca.storage import files
from appca.storage.files import line_of, lines_in, read_json, write_json
from appca.storage.identity import ID_DIGITS, is_id
from appca.words import InputError, storing

RECORDS = "records.txt"
MOST_ROWS = 6000  # a campaign looks at a sample of more rows, unless it is asked for more
_BEGUN = "null"  # the first line, which an emptied file lacks
Record = list[Any]  # numbers, texts and None
Step = tuple[Any, ...]  # numbers and texts, with which the record of a measurement begins
Measure = Callable[[Step, Callable[[float], object]], Record]


class JournalStore:
    """The journals of one kind, in a folder of this name below the home."""

    def __init__(self, home: Path, kind: str) -> None:
        self.folder = Path(home) / kind

    def begin(self, name: str, config: dict[str, Any]) -> None:
        """Create a journal, or open it and remove damaged lines.

        Raises InputError when the disk refuses.
        """
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
        """Add a record: numbers, texts and None; numbers come back to the last bit.

        Raises InputError when the disk refuses.
        """
        text = json.dumps(record, allow_nan=False)
        with storing("The result", self.folder), (self.folder / name / RECORDS).open("ab") as file:
            file.write(line_of(text))

    def records(self, name: str) -> list[Record]:
        """Return all undamaged records, oldest first; none for an unknown name."""
        try:
            content = (self._checked(name) / RECORDS).read_bytes()
        except (OSError, ValueError):
            return []
        return [json.loads(text) for text in lines_in(content)[0] if text != _BEGUN]

    def config(self, name: str) -> dict[str, Any] | None:
        """Return the settings a journal is about, or None when they cannot be read."""
        try:
            return read_json(self._checked(name) / "config.json", f"Result {name}")
        except (OSError, ValueError, RecursionError):
            return None

    def names(self) -> list[str]:
        """Return the journals on disk, the one last written to first."""
        try:
            files = [(file.stat().st_mtime, file) for file in self.folder.glob(f"*/{RECORDS}")]
        except OSError:
            return []
        return [file.parent.name for _, file in sorted(files, reverse=True)]

    def _checked(self, name: str) -> Path:
        """Return a journal's folder; the name may come from an address."""
        if not is_id(name):
            msg = f"A journal is named by {ID_DIGITS} hex digits; got {name!r:.40}."
            raise ValueError(msg)
        return self.folder / name


class Campaign(OfModel):
    """Base of the settings of a campaign, which decide all its numbers.

    Subclasses say which `steps` there are, in the order of measuring, and how one is measured.
    """

    folder: ClassVar[str]  # below the home
    dataset: str
    around_gaps: ClassVar[bool] = False  # whether the fits have missing cells in every row
    max_rows: int

    def steps(self) -> list[Step]:
        """Return the steps in the order of measuring."""
        raise NotImplementedError

    def measuring(self, dataset: Dataset, callback: Callable[[Any], object] | None) -> Measure:
        """Return what measures a step; it reports the share done of the step."""
        raise NotImplementedError

    def fits(self, n_rows: int) -> list[tuple[dict[str, Any], int, float]]:
        """Return for every step settings and rows of the fit it makes, and how many such fits."""
        return [({}, min(n_rows, self.max_rows), 1.0) for _ in self.steps()]

    def stage(self, place: int) -> str:
        """Return the words for the step at this place while it is measured."""
        return f"fit {place + 1} of {len(self.steps())}"

    def run(
        self,
        dataset: Dataset,
        home: Path,
        report: Callable[[int, float], object] = lambda _place, _share: None,
        callback: Callable[[Any], object] | None = None,
    ) -> None:
        """Measure every step that the journal lacks, and store each result at once.

        `report` gets the place of a step and the share of it that is done, `callback` each
        iteration of EM; an exception from either ends the work.
        """
        done = self.records(home)
        places = [place for place, step in enumerate(self.steps()) if step not in done]
        if not places:
            return
        measure, steps, journal = (
            self.measuring(dataset, callback),
            self.steps(),
            self.journal(home),
        )
        journal.begin(self.id, self.to_dict())
        for place in places:
            report(place, 0.0)
            measured = measure(steps[place], partial(report, place))
            journal.append(self.id, [*steps[place], *measured])

    def records(self, home: Path) -> dict[Step, Record]:
        """Return the measurements so far, step to the rest of its record."""
        width = len(self.steps()[0])
        records = self.journal(home).records(self.id)
        return {tuple(record[:width]): record[width:] for record in records}

    @classmethod
    def journal(cls, home: Path) -> JournalStore:
        """Return the journals of this kind of campaign."""
        return JournalStore(home, cls.folder)

    @classmethod
    def earlier(cls, home: Path, first: str | None = None) -> Iterator[Self]:
        """Return the campaigns in this home: the one with the id `first`, then the latest."""
        store = cls.journal(home)
        for name in filter(None, [first, *store.names()]):
            with suppress(InputError, TypeError, KeyError, AttributeError):
                yield cls.from_dict(store.config(name) or {})


def sample_of(n_rows: int, max_rows: int, random_state: int) -> np.ndarray:
    """Return the rows that are used, ascending: all, or a random sample of `max_rows`."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    drawn = np.random.default_rng(random_state).permutation(n_rows)[:max_rows]
    return np.sort(drawn)


def whole_number(name: str, value: object, least: int) -> int:
    """Return a setting as an int; InputError unless it is a whole number from `least` on."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        msg = f"{name} must be whole numbers from {least} on; got {value!r:.60}."
        raise InputError(msg)
    return int(value)
