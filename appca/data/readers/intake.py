"""What all readers check in a matrix before it becomes a data set: gaps, constants, duplicates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from appca.data.dataset import NumberedNames, distinct
from appca.words import InputError, counted, shortened

FileReport = dict[str, Any]  # what was found in a file, and what was done about it
MISSING_CHOICES = ("refuse", "model", "mean", "drop")
_MOST_NUMBERED = 1000  # columns that a report lists though they have no names of their own
_BLOCK_ROWS = 1 << 14


def settle_missing(
    X: np.ndarray, names: Sequence[str], how: str, report: FileReport, least_rows: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Deal with missing cells (NaN) as the person chose, and note it in the report.

    "refuse" refuses the data; "model" puts the column's mean in as a placeholder that a model may
    fill (see `left_to_the_model`), "mean" for good; "drop" leaves out the rows concerned. The
    report receives ``missing`` (cells by column), ``n_missing``, ``filled`` (cells), ``modelled``
    (cells, if left to the model) and ``dropped`` (rows). There must be `least_rows`; of a single
    one, a column may be empty that is left to the model; its placeholder is 0.

    Returns the matrix without gaps, the same one if there were none, and the rows kept.
    """
    if how not in MISSING_CHOICES:
        msg = f"missing must be one of {', '.join(MISSING_CHOICES)}; got {how!r}."
        raise InputError(msg, report)
    rows = np.arange(len(X))
    some = X.dtype.kind == "f" and X.size and np.isnan(X.min())
    gaps = np.isnan(X) if some else np.zeros((0, X.shape[1]), bool)
    counts = gaps.sum(axis=0)
    columns = {names[j]: int(counts[j]) for j in _listed_of(counts > 0, names)}
    report.update(missing=columns, n_missing=int(counts.sum()), filled=0, dropped=0)
    if not columns:
        return X, rows
    empty = counts == len(X)
    if least_rows > 1 or how not in ("refuse", "model"):
        _check_no_empty_column(empty, names, report)
    if how == "refuse":
        msg = (
            f"The data have {counted(int(counts.sum()), 'missing cell')}, in {_listed(columns)}; "
            "choose to let the model fill them, to put the column's mean in, or to drop the rows, "
            "or correct the file."
        )
        raise InputError(msg, report)
    if how in ("mean", "model"):
        means = _means(np.where(empty, 0, X) if empty.any() else X, names, report)
        report["filled" if how == "mean" else "modelled"] = int(counts.sum())
        return np.where(gaps, means.astype(X.dtype), X), rows
    keep = ~gaps.any(axis=1)
    report["dropped"] = int((~keep).sum())
    if keep.sum() < least_rows:
        msg = (
            f"Dropping the rows with missing cells would leave {keep.sum()} of {len(X)} rows; "
            "fill the cells with the column's mean, or ignore the columns with most gaps."
        )
        raise InputError(msg, report)
    return X[keep], rows[keep]


def _means(X: np.ndarray, names: Sequence[str], report: FileReport) -> np.ndarray:
    """Average the columns without their gaps; refuse those whose sum is no number."""
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.asarray(np.nanmean(X, axis=0, dtype=np.float64))
        fits = np.isfinite(means) & np.isfinite(means.astype(X.dtype))
    if not fits.all():
        msg = (
            f"“{shortened(names[int(np.argmin(fits))])}” holds numbers too large to be averaged; "
            "give it in a smaller unit, or correct or ignore it."
        )
        raise InputError(msg, report)
    return means


def left_to_the_model(X: np.ndarray, how: str) -> np.ndarray | None:
    """Return the cells (N, D) that a data set is to keep as missing; None where there are none.

    `X` is as read, before `settle_missing` has put placeholders in (or left out rows, which it does
    not when the cells are left to the model). Pass the result to `Dataset(missing=...)`.
    """
    gaps = np.isnan(X) if how == "model" and X.dtype.kind == "f" else None
    return gaps if gaps is not None and gaps.any() else None


def note_quality(
    X: np.ndarray, names: Sequence[str], report: FileReport, least_rows: int = 2
) -> None:
    """Note constant columns and duplicate rows; refuse infinite values and data all the same.

    Rows of which a single one is enough may be all the same, too.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    if X.dtype.kind == "f" and np.isinf([low, high]).any():
        row, column = np.argwhere(np.isinf(X))[0]
        msg = (
            f"“{shortened(names[column])}” is infinite in row {row + 1}; "
            "every value must be a finite number, so correct or remove it."
        )
        raise InputError(msg, report)
    constant = low == high
    report["constant"] = [names[j] for j in _listed_of(constant, names)]
    report["n_constant"] = int(constant.sum())
    report["duplicates"] = duplicate_rows(X)
    if constant.all() and least_rows > 1:
        msg = f"All {counted(len(X), 'row')} are the same; choose data that vary."
        raise InputError(msg, report)


def duplicate_rows(X: np.ndarray) -> int:
    """Count the rows that equal an earlier row."""
    return len(X) - distinct(X)


def row_ids(rows: np.ndarray) -> np.ndarray:
    """Return ``row-1`` and so on for row numbers, with no object for each in between."""
    ids = np.empty(len(rows), f"U{len(f'row-{max(rows, default=0) + 1}')}")
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = rows[start : start + _BLOCK_ROWS].tolist()
        ids[start : start + _BLOCK_ROWS] = [f"row-{row + 1}" for row in part]
    return ids


def _listed_of(mask: np.ndarray, names: Sequence[str]) -> list[int]:
    """Return the places of the columns that a report lists."""
    places: list[int] = np.flatnonzero(mask).tolist()
    return places[:_MOST_NUMBERED] if isinstance(names, NumberedNames) else places


def _check_no_empty_column(empty: np.ndarray, names: Sequence[str], report: FileReport) -> None:
    places = np.flatnonzero(empty)
    if len(places):
        shown = ", ".join(f"“{shortened(names[j])}”" for j in places[:3].tolist())
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        msg = f"No cell of column {shown}{more} holds a number; ignore the column or fill it."
        raise InputError(msg, report)


def _listed(columns: dict[str, int]) -> str:
    parts = [f"“{shortened(name)}” ({count})" for name, count in list(columns.items())[:3]]
    more = [f"{len(columns) - 3:,} more columns"] if len(columns) > 3 else []
    return ", ".join(parts + more)
