"""Campaigns: series of measurements that are stored one by one and can be resumed.

The settings of a campaign identify its journal, which pages read while a job measures.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from appca.analysis.fitted import OfModel
from appca.data.dataset import Dataset
from appca.storage.identity import Recorded
from appca.storage.journal import JournalStore, Record

MOST_ROWS = 6000  # default size of the random sample of rows
CLEAR = 2.0  # standard errors of a paired difference that count as a clear difference
Report = Callable[[float], object]
Step = tuple[Any, ...]  # the key of a measurement's record
Measure = Callable[[Step, Report], Record]


class Campaign(Recorded):
    """Base of settings that determine all results; subclasses define `steps`, and measure them."""

    folder: ClassVar[str]  # relative to the home
    dataset: str

    def steps(self) -> list[Step]:
        """Return the steps in the order of measuring."""
        raise NotImplementedError

    def measuring(self, dataset: Dataset) -> Measure:
        """Return a function that measures a step and reports its progress."""
        raise NotImplementedError

    def complete(
        self,
        dataset: Dataset,
        home: Path,
        report: Callable[[int, float], object] = lambda _place, _share: None,
        most: int | None = None,
    ) -> None:
        """Measure missing steps, up to number `most`; report a step's index and finished share."""
        done, steps, journal = self.records(home), self.steps()[:most], self.journal(home)
        places = [place for place, step in enumerate(steps) if step not in done]
        if not places:
            return
        measure = self.measuring(dataset)
        journal.begin(self.id, self.to_dict())
        for place in places:
            report(place, 0.0)
            journal.append(self.id, [*steps[place], *measure(steps[place], partial(report, place))])

    def records(self, home: Path) -> dict[Step, Record]:
        """Map each measured step to the remainder of its record."""
        width = len(self.steps()[0])
        return {tuple(of[:width]): of[width:] for of in self.journal(home).records(self.id)}

    @classmethod
    def journal(cls, home: Path) -> JournalStore:
        """Return the journals of this kind of campaign."""
        return JournalStore(home, cls.folder)

    @classmethod
    def earlier(cls, home: Path, first: str | None = None) -> Iterator[Self]:
        """Yield the campaigns in this home, newest first, but the id `first` before all others."""
        store = cls.journal(home)
        for name in filter(None, [first, *store.names()]):
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                yield cls.from_dict(store.config(name) or {})


@dataclass(frozen=True, eq=False)
class FitCampaign(Campaign, OfModel):
    """Base of the settings of fits to one data set; `parameters` are keywords of the estimator."""

    dataset: str
    preprocessing: dict[str, Any]
    model: str
    parameters: dict[str, Any]

    def fits(self, n_rows: int) -> list[tuple[dict[str, Any], int, float]]:
        """Return the settings, number of rows and relative cost of the fits of every step."""
        return [({}, min(n_rows, MOST_ROWS), 1.0) for _ in self.steps()]

    def incomplete(self, _dataset: Dataset) -> float:
        """Return the share of rows that have missing cells in the fits."""
        return 0.0


def sample_of(n_rows: int, max_rows: int | None, random_state: int) -> np.ndarray:
    """Return the indices of the rows to use, ascending: all, or a random sample of `max_rows`."""
    return np.sort(np.random.default_rng(random_state).permutation(n_rows)[:max_rows])


def apart(dataset: Dataset, rows: np.ndarray, shares: Sequence[float], seed: Any) -> list[Any]:
    """Divide rows at random into parts of these shares, ascending; units stay together."""
    units = dataset.units[rows]
    shuffled = np.random.default_rng(seed).permutation(np.unique(units))
    ends = np.rint(np.cumsum(shares)[:-1] * len(shuffled)).astype(int)
    return [rows[np.isin(units, part)] for part in np.split(shuffled, ends)]
