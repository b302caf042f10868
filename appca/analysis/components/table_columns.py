"""Columns of a table as numbers or codes of classes, and columns that say the same."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.analysis.groups.row_query import FEW_INTEGERS
from appca.words.errors import InputError
from appca.words.wording import shortened

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 200  # of a column that is tested
ALIKE = 0.95  # rank correlation with a technical measure from which on a column is marked
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_BATCH = re.compile(
    r"(^|[\W_])(batch|plate|lane|run|chip|slide|scanner|site|operator|session)([\W_\d]|$)", re.I
)


class TableColumn(NamedTuple):
    """A column of N rows."""

    name: str
    kind: str  # "number", "date" or "class"
    values: np.ndarray  # (N,) float64: numbers, days since 1970, or codes; NaN is missing
    names: tuple[str, ...] = ()  # of the classes

    @property
    def there(self) -> np.ndarray:
        """Which rows have a value, (N,) bool."""
        return np.asarray(~np.isnan(self.values))

    def varies(self, rows: np.ndarray) -> bool:
        """Whether some rows (N,) bool have two different values."""
        values = self.values[rows]
        return len(values) > 1 and bool((values != values[0]).any())


def columns_of(table: Any, n_rows: int) -> tuple[list[TableColumn], list[str]]:
    """Return the columns of a DataFrame or a mapping, and the names of those that say nothing.

    Left out are columns with one value and those with more than `MOST_CLASSES` classes. Raises
    InputError when a column does not have one value a row.
    """
    import pandas as pd

    items = table.items() if isinstance(table, Mapping) else pd.DataFrame(table).items()
    columns, left_out = [], []
    for name, values in items:
        series = pd.Series(np.asarray(values) if isinstance(values, list | tuple) else values)
        if len(series) != n_rows:
            msg = (
                f"Column “{shortened(name)}” has {len(series):,} values for {n_rows:,} rows; give "
                "one value a row."
            )
            raise InputError(msg)
        column = _column(str(name), series)
        useful = column.varies(column.there) and len(column.names) <= MOST_CLASSES
        if useful:
            columns.append(column)
        else:
            left_out.append(column.name)
    return columns, left_out


def _column(name: str, series: "pd.Series") -> TableColumn:
    from pandas.api import types

    if types.is_datetime64_any_dtype(series):
        return _dates(name, series)
    few = types.is_integer_dtype(series) and series.nunique() <= FEW_INTEGERS
    numeric = types.is_numeric_dtype(series) and not types.is_bool_dtype(series)
    if numeric and not few:
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return TableColumn(name, "number", np.where(np.isfinite(values), values, np.nan))
    if not few and not isinstance(series.dtype, types.CategoricalDtype):
        texts = series[series.notna() & (series.astype(str) != "")].astype(str)
        if len(texts) and texts.map(lambda text: bool(_DATE.fullmatch(text))).all():
            return _dates(name, series)
    return _classes(name, series)


def _dates(name: str, series: "pd.Series") -> TableColumn:
    import pandas as pd

    when = pd.to_datetime(series, errors="coerce", utc=True, format="ISO8601")
    days = (when - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return TableColumn(name, "date", days.to_numpy(dtype=np.float64))


def _classes(name: str, series: "pd.Series") -> TableColumn:
    import pandas as pd

    there = series.notna().to_numpy() & (series.astype(str) != "").to_numpy()
    codes, names = pd.factorize(series.astype(str).to_numpy()[there])  # by first appearance
    values = np.full(len(series), np.nan)
    values[there] = codes
    return TableColumn(name, "class", values, tuple(map(str, names)))


def ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks (n,) of values, equal ones sharing the middle of theirs."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=np.float64)


def repeated(columns: list[TableColumn]) -> dict[str, str]:
    """Return of each column that repeats an earlier one, value by value, the name of that one.

    Classes, and few different numbers, do so under any names; many numbers in the same order or the
    reverse.
    """
    first: dict[bytes, str] = {}
    same = {}
    for column in columns:
        form = _form(column)
        if form in first:
            same[column.name] = first[form]
        else:
            first[form] = column.name
    return same


def _form(column: TableColumn) -> bytes:
    """Return the same bytes of columns that say the same."""
    values = column.values[column.there]
    levels, codes = np.unique(values, return_inverse=True)
    if column.kind != "class" and len(levels) > FEW_INTEGERS:
        codes = min(codes, len(levels) - 1 - codes, key=lambda c: c.tolist())
    else:
        _, seen, codes = np.unique(values, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(seen))[codes]
    return np.packbits(column.there).tobytes() + np.asarray(codes, dtype=np.int32).tobytes()


def suspicion(column: TableColumn, measures: Mapping[str, np.ndarray]) -> str:
    """Say why a column may stem from the measurement: a measure (N,) or a name; empty if nothing.

    A number does if its ranks are nearly those of a measure, a class if a measure's order keeps
    every class together.
    """
    for name, measure in measures.items():
        rows = column.there & np.isfinite(measure)
        if not column.varies(rows):
            continue
        values, measured = column.values[rows], measure[rows]
        if column.kind == "class":
            changes = np.count_nonzero(np.diff(values[np.argsort(measured, kind="stable")]))
            alike = changes == len(np.unique(values)) - 1
            alike = alike and len(np.unique(measured)) >= len(np.unique(values))
        else:
            alike = len(np.unique(measured)) > 1 and (
                abs(np.corrcoef(ranks(values), ranks(measured))[0, 1]) >= ALIKE
            )
        if alike:
            return f"follows the {name}"
    return "named like a batch" if _BATCH.search(column.name) else ""
