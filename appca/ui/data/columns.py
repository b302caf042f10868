"""What the columns of a table hold, as numbers to draw: bars, gaps and the first cells."""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.ui.arrivals.opening import HEAD_ROWS, Reading
from appca.words.wording import counted

BARS, PARTS = 12, 24  # of a histogram, and of the rows whose gaps are shown together
MOST_JUDGED = 20_000  # rows of a histogram
MOSTLY_MISSING = 0.2


class SeenColumn(NamedTuple):
    """One column of a table."""

    name: str
    role: str  # "id", "label", "feature" or "ignored"
    number: int  # in the file
    feature: int  # number among the features; -1 of other columns
    n_missing: int
    why: str  # it is left out


class ColumnLook(NamedTuple):
    """What a column holds."""

    words: str
    bars: list[float]  # heights, the greatest is 1
    gaps: list[float]  # share missing in each part of the rows
    cells: Sequence[str | None]  # None where missing


def columns_of(reading: Reading) -> list[SeenColumn]:
    """Return the columns of a table in the order of the file; of other data, as they are used."""
    report = reading.report
    gaps, why = report.get("missing", {}), report.get("left_out", {})
    roles = report.get("roles") or dict.fromkeys(reading.head, "ignored")
    if not roles and reading.dataset is not None:
        data = reading.dataset
        roles = dict.fromkeys(data.labels, "label") | dict.fromkeys(data.column_names, "feature")
        if data.missing is not None:
            gaps = dict(zip(data.column_names, data.missing.sum(axis=0).tolist(), strict=True))
    numbers = count()
    return [
        SeenColumn(
            name,
            role,
            number,
            next(numbers) if role == "feature" else -1,
            gaps.get(name, 0),
            why.get(name, ""),
        )
        for number, (name, role) in enumerate(roles.items())
    ]


def contents(reading: Reading, column: SeenColumn) -> ColumnLook:
    """Return what a column holds."""
    cells: Sequence[str | None] = reading.head.get(column.name, [])
    words = column.why or ("" if column.role == "feature" else column.role)
    bars: list[float] = []
    gaps: list[float] = []
    data = reading.dataset
    if data is not None and column.role == "feature":
        values = np.asarray(data.X[:, column.feature])
        missing = None if data.missing is None else np.asarray(data.missing[:, column.feature])
        bars, gaps = _bars(values, missing), _gaps(missing)
        words = f"{column.n_missing:,} missing" if column.n_missing else "none missing"
        cells = cells or _first(data, column.feature)
    elif data is not None and column.role == "label" and column.name in data.labels:
        names, codes = data.classes(column.name)
        counts = np.bincount(codes)[:BARS]
        bars, words = (counts / counts.max()).tolist(), counted(len(names), "value")
        cells = cells or [names[code] for code in codes[:HEAD_ROWS]]
    elif column.role == "id":
        words = "all differ"
        cells = cells or ([] if data is None else data.ids[:HEAD_ROWS].tolist())
    return ColumnLook(words, bars, gaps, cells or [""] * HEAD_ROWS)


def _bars(values: np.ndarray, missing: np.ndarray | None) -> list[float]:
    present = values if missing is None else values[~missing]
    some = present[:: max(1, len(present) // MOST_JUDGED)].astype(np.float64)
    if not len(some) or not np.isfinite(np.ptp(some)):
        return []
    counts = np.histogram(some, BARS)[0]
    return [float(count) for count in counts / counts.max()]


def _gaps(missing: np.ndarray | None) -> list[float]:
    if missing is None:
        return []
    return [float(part.mean()) for part in np.array_split(missing, min(PARTS, len(missing)))]


def _first(data: Dataset, place: int) -> list[str | None]:
    values = data.with_gaps(slice(HEAD_ROWS))[:, place]
    return [None if np.isnan(value) else f"{float(value):.6g}" for value in values]
