"""Results of experiments on disk, one folder each, written atomically and without pickle."""

import csv
import io
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca import __version__
from appca.storage import files
from appca.storage.identity import is_id
from appca.studies.claims import Claim
from appca.studies.study import Options, Outcome, Row, Study
from appca.words import refuse_if, storing

FOLDER = Path(__file__).parent / "results"
MOST_BYTES = 3_000_000  # maximum size of all shipped results
KINDS = {"whole": int, "number": float, "text": str}  # types of columns; cells may be None


class Stored(NamedTuple):
    """A result on disk."""

    id: str
    study: str
    options: Options
    created: float  # seconds since 1970
    seconds: float
    versions: dict[str, str]
    outcome: Outcome


class StudyStore:
    """Results below ``<home>/studies/<id>/``: config.json, a CSV per table, arrays.npz."""

    def __init__(self, home: Path) -> None:
        self.folder = Path(home) / "studies"

    def save(self, study: Study, options: Options, outcome: Outcome, seconds: float) -> str:
        """Store a result, replacing a result with the same options; InputError if writing fails."""
        name = study.id(options)
        facts = {
            "study": study.name,
            "revision": study.revision,
            "options": options,
            "command": study.command(options),
            "claims": [claim._asdict() for claim in outcome.claims],
            "text": outcome.text,
            "created": time.time(),
            "seconds": round(seconds, 1),
            "versions": {"appca": __version__}  # also if appca is not installed
            | {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")},
            "tables": {
                key: {name: _kind([row[name] for row in rows]) for name in (rows or [{}])[0]}
                for key, rows in outcome.tables.items()
            },
        }
        with storing("The result", self.folder), files.draft_folder(self.folder) as draft:
            files.keep_other_format(self.folder / name / "config.json", f"Result {name}")
            for key, rows in outcome.tables.items():
                with files.solid(draft / f"{key}.csv") as file:
                    file.write(csv_text(rows).encode())
            with files.solid(draft / "arrays.npz") as file:
                arrays: dict[str, Any] = outcome.arrays  # the stubs of savez reserve some names
                np.savez_compressed(file, **arrays)
            facts[files.FILES] = files.digests_of(draft, sorted(f.name for f in draft.iterdir()))
            files.write_json(draft / "config.json", facts, f"Result {name}")
            files.replace_folder(draft, self.folder / name)
        return name

    def get(self, name: str) -> Stored | None:
        """Return a result, or None if it is missing or cannot be read; see `or_none`."""
        if not is_id(name):
            return None
        place = self.folder / name
        places = (place, files.aside(place), place)  # a result may be replaced in the meantime
        results = (files.or_none(partial(_read, folder, name)) for folder in places)
        return next(filter(None, results), None)

    def list(self, study: str | None = None) -> list[Stored]:
        """Return all readable results, or only those of an experiment, newest first."""
        folders = self.folder.glob("[0-9a-f]*") if self.folder.is_dir() else ()
        results = []
        for name in sorted({folder.name.removesuffix(files.ASIDE) for folder in folders}):
            with suppress(files.OtherFormat):
                results.append(self.get(name))
        wanted = [each for each in results if each is not None and study in {None, each.study}]
        return sorted(wanted, key=lambda stored: -stored.created)


class ShippedResults(StudyStore):
    """The newest result of each experiment, below ``appca/studies/results``."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or FOLDER

    def save(self, study: Study, options: Options, outcome: Outcome, seconds: float) -> str:
        """Ship a result in single precision without private arrays, replacing older results.

        Raises InputError if the results together are too large, or writing fails.
        """
        arrays = {
            name: array.astype(np.float32) if array.dtype == np.float64 else array
            for name, array in outcome.arrays.items()
            if name not in study.private
        }
        name = super().save(study, options, outcome._replace(arrays=arrays), seconds)
        for other in self.list(study.name):
            if other.id != name:
                shutil.rmtree(self.folder / other.id)
        size = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
        msg = f"Shipped results may have {MOST_BYTES:,} bytes together; these have {size:,}."
        refuse_if(size > MOST_BYTES, msg)
        return name


def csv_text(rows: list[Row]) -> str:
    """Format a table as CSV: numbers with all digits, None as an empty cell."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _kind(values: Sequence[object]) -> str:
    present = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in present) or not present:
        return "text"
    return "whole" if all(isinstance(value, int) for value in present) else "number"


def _read(folder: Path, name: str) -> Stored:
    facts, tables = files.read_json(folder / "config.json", f"Result {name}"), {}
    for file, digest in facts[files.FILES].items():
        files.check_file(folder / file, digest)
    for key, kinds in facts["tables"].items():
        with (folder / f"{key}.csv").open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            msg = f"{key}.csv has other columns than its description."
            refuse_if(reader.fieldnames != list(kinds), msg)
            parse = {name: KINDS[kind] for name, kind in kinds.items()}
            tables[key] = [
                {name: parse[name](text) if text else None for name, text in line.items()}
                for line in reader
            ]
    arrays = files.read_arrays(folder / "arrays.npz")
    is_other = files.read_json(folder / "config.json", f"Result {name}") != facts
    refuse_if(is_other, "Another result took its place while it was read.")
    outcome = Outcome(tables, arrays, [Claim(**row) for row in facts["claims"]], str(facts["text"]))
    times = float(facts["created"]), float(facts["seconds"])
    options, versions = dict(facts["options"]), dict(facts["versions"])
    return Stored(name, str(facts["study"]), options, *times, versions, outcome)
