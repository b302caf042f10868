"""Results that come with the package: numbers, curves and components, no row of anybody's data."""

import shutil
from functools import cache
from pathlib import Path

import numpy as np

from appca.studies.catalogue import STUDIES
from appca.studies.store import Stored, StudyStore
from appca.studies.study import Options, Outcome, Study
from appca.words.errors import InputError

FOLDER = Path(__file__).parent / "results"
MOST_BYTES = 3_000_000  # of all results together
TIMED = "seconds"  # how columns begin that say as much about the machine as about the model


class ShippedResults(StudyStore):
    """The newest result of each experiment, below ``appca/studies/results``."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or FOLDER

    def save(self, study: Study, options: Options, outcome: Outcome, seconds: float) -> str:
        """Take over a result, in the place of others of its experiment; return its id.

        Raises InputError when they are too large together, or the disk refuses.
        """
        name = super().save(study, options, lean(outcome, study.private), seconds)
        for other in self.list(study.name):
            if other.id != name:
                shutil.rmtree(self.folder / other.id)
        size = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
        if size > MOST_BYTES:
            msg = f"Shipped results may have {MOST_BYTES:,} bytes together; these have {size:,}."
            raise InputError(msg)
        return name


def lean(outcome: Outcome, private: tuple[str, ...] = ()) -> Outcome:
    """Return a result in single precision and without its private arrays."""
    arrays = {
        name: array.astype(np.float32) if array.dtype == np.float64 else array
        for name, array in outcome.arrays.items()
        if name not in private
    }
    return outcome._replace(arrays=arrays)


@cache
def shipped() -> dict[str, Stored]:
    """Return the results that come with the package by experiment."""
    return {result.study: result for result in ShippedResults().list() if result.study in STUDIES}


def is_current(stored: Stored) -> bool:
    """Whether the experiment has not changed since."""
    return STUDIES[stored.study].id(stored.options) == stored.id
