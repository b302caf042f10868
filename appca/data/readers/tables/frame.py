"""A table whose cells are parsed, from CSV or Parquet: roles, numbers, and then a data set."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.intake import (
    FileReport,
    are_bytes,
    left_to_the_model,
    note_quality,
    settle_missing,
)
from appca.data.readers.source import ReadLimits, check_matrix
from appca.data.readers.tables.roles import (
    Column,
    counts_matter,
    guess_roles,
    image_side,
    label_order,
)
from appca.storage.errors import InputError
from appca.storage.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd

    from appca.data.readers.tables.csv import CsvOptions
    from appca.data.readers.tables.parquet import ParquetOptions

ImageShape = tuple[int, ...] | Literal["auto"] | None  # auto: squares of grey are images
_LONGEST_LABEL = 500  # characters; a column with longer texts is a label only if chosen as one
_MOSTLY = 0.5  # share of numbers from which words in a column are taken for mistakes
KINDS = {
    "number": "numbers",
    "text": "words",
    "mixed": "numbers and words",
    "empty": "empty",
    "list": "lists",
    "long": "long texts",
}


def build(
    name: str,
    frame: "pd.DataFrame",
    named: list[bool],
    options: "CsvOptions | ParquetOptions",
    report: FileReport,
    limits: ReadLimits,
) -> Dataset:
    """Give the columns roles and make a data set of them.

    Parameters
    ----------
    name : str
        Of the file.
    frame : DataFrame
        Its columns have different names.
    named : list of bool
        Whether the column's name is in the file.
    options : CsvOptions or ParquetOptions
    report : dict
        Receives rows, columns, kinds, roles and what the intake notes.
    limits : ReadLimits
    """
    report.update(rows=len(frame), columns=len(frame.columns))
    _check_rows(name, frame, report, limits)
    columns = describe(frame, named)
    report["kinds"] = {column.name: KINDS[column.kind] for column in columns}
    report["roles"] = roles = _roles(columns, len(frame), options.roles or {}, report)
    features = _with(roles, "feature")
    _check_features(name, features, roles, report)
    check_matrix(name, len(frame), len(features), 8, limits)
    _check_texts(frame, roles, limits)
    matrix = _matrix(frame, features, report)
    X, rows = settle_missing(matrix, features, options.missing, report, limits.least_rows)
    note_quality(X, features, report, limits.least_rows)
    shape = _image_shape(options.image_shape, features, any(named), X)
    report["image_shape"] = shape
    provenance: dict[str, Any] = {"source": "file", "files": [name], "report": report}
    if shape is not None:
        provenance["image_range"] = image_range(X)
        X = X.astype(np.uint8) if are_bytes(X) else X
    return Dataset(
        name=Path(name).name.split(".")[0] or name,
        X=X,
        ids=_ids(frame, roles)[rows],
        labels={column: values[rows] for column, values in _labels(frame, roles).items()},
        image_shape=shape,
        feature_names=None if shape is not None and not any(named) else tuple(features),
        provenance=provenance,
        missing=left_to_the_model(matrix, options.missing),
        least_rows=limits.least_rows,
    )


def _roles(
    columns: list[Column], n: int, chosen: dict[str, str], report: FileReport
) -> dict[str, str]:
    try:
        return guess_roles(columns, n, chosen)
    except InputError as error:
        odd = [one.name for one in columns if one.kind == "mixed" and one.name not in chosen]
        error.report = report | ({"unsettled": odd} if odd else {})
        raise


def describe(frame: "pd.DataFrame", named: list[bool]) -> list[Column]:
    """Say of every column what the guess of its role needs to know."""
    found = []
    for j, (label, values) in enumerate(frame.items()):
        name = str(label)
        if values.dtype.kind in "iuf":
            found.append(_numbers(values.to_numpy(), name, named[j], counts_matter(name, j)))
        else:
            found.append(_words(values, name, named[j]))
    return found


def _numbers(values: np.ndarray, name: str, named: bool, matter: bool) -> Column:
    """Describe a column of numbers; without pandas, for there may be thousands."""
    gaps = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    complete = not gaps.any()
    present = values if complete else values[~gaps]
    if not len(present):
        return Column(name, named, "empty", 0, whole=False, complete=False, counts=False)
    whole = values.dtype.kind != "f" or bool(
        np.isfinite(present).all() and (present == np.floor(present)).all()
    )
    steps = complete and whole and values[0] in (0, 1) and bool((np.diff(values) == 1).all())
    distinct = len(np.unique(present)) if matter else 0
    return Column(name, named, "number", distinct, whole, complete, counts=steps)


def _words(values: "pd.Series[Any]", name: str, named: bool) -> Column:
    """Describe a column that is not stored as numbers; it may hold some all the same."""
    import pandas as pd

    present = values.dropna()
    complete = len(present) == len(values)
    base = Column(name, named, "empty", 0, whole=False, complete=complete, counts=False)
    if not len(present) or isinstance(present.iloc[0], (list, dict, np.ndarray)):
        return base._replace(kind="list") if len(present) else base
    once, codes = _distinct(present)  # a text that many rows share is parsed once
    base = base._replace(distinct=len(once))
    if max((len(one) for one in once if isinstance(one, str)), default=0) > _LONGEST_LABEL:
        return base._replace(kind="long")
    flags = all(isinstance(one, (bool, np.bool_)) for one in once)
    plain = pd.Series([str(one) for one in once] if flags else once, dtype=object)
    floats = _as_numbers(plain).to_numpy(np.float64)[codes]
    odd = np.isnan(floats)
    if odd.any():
        mixed = odd.sum() < _MOSTLY * len(present)
        kind, n_odd = ("mixed", int(odd.sum())) if mixed else ("text", 0)
        example = str(present.iloc[int(odd.argmax())])
        return base._replace(kind=kind, example=example, n_odd=n_odd)
    whole = bool(np.isfinite(floats).all() and (floats == np.floor(floats)).all())
    steps = complete and floats[0] in (0, 1) and bool((np.diff(floats) == 1).all())
    return base._replace(kind="number", whole=whole, counts=steps)


def _distinct(values: "pd.Series[Any]") -> tuple[list[Any], np.ndarray]:
    """Return the different values and their places in the rows, by hashes Python keeps."""
    places: dict[tuple[type, Any], int] = {}
    codes = [places.setdefault((type(one), one), len(places)) for one in values.tolist()]
    return [one for _, one in places], np.array(codes)


def _as_numbers(values: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return floats, NaN where there is none; pandas itself fails on whole numbers above 1e308."""
    import pandas as pd

    try:
        return pd.to_numeric(values, errors="coerce")
    except OverflowError:
        return pd.to_numeric(values.astype(str), errors="coerce")


def _check_rows(name: str, frame: "pd.DataFrame", report: FileReport, limits: ReadLimits) -> None:
    if len(frame) < limits.least_rows:
        needed = "1 is" if limits.least_rows == 1 else f"{limits.least_rows} are"
        rows = counted(len(frame), "row")
        msg = f"“{name}” has {rows} of data; at least {needed} needed, add rows."
        raise InputError(msg, report)


def _with(roles: dict[str, str], role: str) -> list[str]:
    return [column for column, given in roles.items() if given == role]


def _check_features(
    name: str, features: list[str], roles: dict[str, str], report: FileReport
) -> None:
    if len(features) < 2:
        msg = (
            f"“{name}” has {counted(len(features), 'feature column')} of {len(roles)}; at least 2 "
            "are needed, so check the separator or change the columns' roles."
        )
        raise InputError(msg, report)


def _matrix(frame: "pd.DataFrame", features: list[str], report: FileReport) -> np.ndarray:
    import pandas as pd

    kinds = frame.dtypes
    words = [name for name in features if not pd.api.types.is_numeric_dtype(kinds[name])]
    for column in words:
        numbers = _as_numbers(frame[column].astype("object"))
        odd = frame[column][numbers.isna() & frame[column].notna()]
        if len(odd):
            msg = (
                f"Column “{shortened(column)}” cannot be a feature: it holds words, such as "
                f"“{shortened(odd.iloc[0])}” in row {odd.index[0] + 1}; make it a label or ignored."
            )
            raise InputError(msg, report)
        frame = frame.assign(**{column: numbers})
    return np.ascontiguousarray(frame[features].to_numpy(np.float64))


def _image_shape(
    chosen: ImageShape, features: list[str], named: bool, X: np.ndarray
) -> tuple[int, ...] | None:
    if chosen != "auto":
        return None if chosen is None else tuple(chosen)
    side = image_side(features, named, X)
    return None if side is None else (side, side)


def image_range(X: np.ndarray) -> list[float]:
    """Black and white of images: the usual scale they fit into, else their own extremes."""
    low, high = float(X.min()), float(X.max())
    for white in (1.0, 16.0, 255.0):
        if low >= 0 and high <= white:
            return [0.0, white]
    return [low, high]


def _check_texts(frame: "pd.DataFrame", roles: dict[str, str], limits: ReadLimits) -> None:
    """Refuse labels and ids whose longest text, times the rows, would fill the memory."""
    for column in [*_with(roles, "label"), *_with(roles, "id")]:
        if frame[column].dtype.kind in "iufb":
            continue
        longest = max((len(str(one)) for one in _distinct(frame[column])[0]), default=0)
        if 4 * longest * len(frame) > limits.n_bytes:
            msg = (
                f"Column “{shortened(column)}” holds texts of up to {longest:,} characters, too "
                "long for a label or an id; make it ignored."
            )
            raise InputError(msg)


def _label(values: "pd.Series[Any]") -> np.ndarray:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return values.to_numpy()
    return values.astype("object").where(values.notna(), "").astype(str).to_numpy(dtype=str)


def _labels(frame: "pd.DataFrame", roles: dict[str, str]) -> dict[str, np.ndarray]:
    distinct = {column: int(frame[column].nunique()) for column in _with(roles, "label")}
    return {
        column: _label(frame[column])
        for column in label_order(list(distinct), distinct, len(frame))
    }


def _ids(frame: "pd.DataFrame", roles: dict[str, str]) -> np.ndarray:
    column = _with(roles, "id")
    if not column:
        return np.array([f"row-{row + 1}" for row in range(len(frame))])
    return _label(frame[column[0]]).astype(str)
