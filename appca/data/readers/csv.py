"""Text tables: CSV, TSV and their kin, packed by gzip or not."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.errors import InputError
from appca.data.readers.dialect import BLANK, Dialect, as_text, check_rectangle, guess
from appca.data.readers.intake import are_bytes, note_quality, settle_missing
from appca.data.readers.roles import Column, guess_roles, image_side, label_order
from appca.data.readers.source import LIMITS, Limits, check_matrix, file_bytes
from appca.data.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd

_GAPS = ["?", "-", "."]  # beside those pandas knows
_MOSTLY = 0.5  # share of numbers from which words in a column are taken for mistakes


class Options(NamedTuple):
    """How to read a text table; what is None is guessed."""

    separator: str | None = None  # one character; a blank stands for any run of blanks
    header: bool | None = None  # whether the first line holds the columns' names
    encoding: str | None = None
    roles: dict[str, str] | None = None  # name to role (see `roles.ROLES`) where the guess is wrong
    missing: str = "refuse"  # or "mean", "drop": what to do when feature cells are missing
    image_shape: tuple[int, ...] | str | None = "auto"  # "auto" takes squares of grey for images


def read(
    name: str, file: Path | str | BinaryIO, options: Options, limits: Limits = LIMITS
) -> Dataset:
    """
    Read a text table.

    Returns
    -------
    Dataset
        float64, or uint8 for images. Ids are those of the id column, else ``row-1`` and so on, so
        that they name the file's rows also after some were dropped.
    """
    text = as_text(name, file_bytes(name, file, limits), options.encoding)
    dialect = guess(name, text, options.separator, options.header)
    check_rectangle(name, text, dialect)
    frame = _parse(name, text, dialect)
    report = {
        "rows": len(frame),
        "columns": len(frame.columns),
        "separator": dialect.separator,
        "decimal": dialect.decimal,
        "header": dialect.header,
    }
    _check_rows(name, frame, report)
    columns = [_describe(frame[column], dialect) for column in dialect.columns]
    report["roles"] = roles = guess_roles(columns, len(frame), options.roles or {})
    features = _with(roles, "feature")
    _check_features(name, features, roles, report)
    check_matrix(name, len(frame), len(features), 8, limits)
    return _build(name, frame, dialect, options, report)


def _parse(name: str, text: bytes, dialect: Dialect) -> "pd.DataFrame":
    import pandas as pd

    try:
        return pd.read_csv(
            io.BytesIO(text),
            sep=r"\s+" if dialect.separator == BLANK else dialect.separator,
            decimal=dialect.decimal,
            header=None,
            names=list(dialect.columns),
            skiprows=_header_lines(text) if dialect.header else 0,
            index_col=False,
            skipinitialspace=True,
            na_values=_GAPS,
            low_memory=False,
        )
    except (ValueError, OverflowError) as error:
        reason = shortened(str(error).removeprefix("Error tokenizing data. C error: "), 120)
        msg = f"“{name}” cannot be read as a table ({reason}); check its lines and quotation marks."
        raise InputError(msg) from error


def _header_lines(text: bytes) -> int:
    """Count the lines up to the header's end; blank lines may stand before it."""
    blank = len(text) - len(text.lstrip(b"\n"))
    return blank + 1


def _check_rows(name: str, frame: "pd.DataFrame", report: dict) -> None:
    if len(frame) < 2:
        msg = f"“{name}” has {counted(len(frame), 'row')} of data; at least 2 are needed, add rows."
        raise InputError(msg, report)


def _describe(values: "pd.Series", dialect: Dialect) -> Column:
    import pandas as pd

    present = values.dropna()
    named = (
        dialect.header and values.name != f"column {list(dialect.columns).index(values.name) + 1}"
    )
    base = {"name": values.name, "named": named, "complete": len(present) == len(values)}
    if not len(present):
        return Column(kind="empty", distinct=0, whole=False, counts=False, **base)
    distinct = int(present.nunique())
    boolean = pd.api.types.is_bool_dtype(values)
    numbers = pd.to_numeric(present.astype(str) if boolean else present, errors="coerce")
    words = present[numbers.isna()]
    if len(words):
        mixed = len(words) < _MOSTLY * len(present)
        kind, odd = ("mixed", len(words)) if mixed else ("text", 0)
        example = str(words.iloc[0])
        return Column(
            kind=kind,
            distinct=distinct,
            whole=False,
            counts=False,
            example=example,
            n_odd=odd,
            **base,
        )
    floats = numbers.to_numpy(np.float64)
    whole = bool(np.isfinite(floats).all() and (floats == np.floor(floats)).all())
    steps = base["complete"] and floats[0] in (0, 1) and bool((np.diff(floats) == 1).all())
    return Column(kind="number", distinct=distinct, whole=whole, counts=steps, **base)


def _build(
    name: str, frame: "pd.DataFrame", dialect: Dialect, options: Options, report: dict
) -> Dataset:
    roles = report["roles"]
    features = _with(roles, "feature")
    matrix = _matrix(frame, features, report)
    X, rows = settle_missing(matrix, features, options.missing, report)
    note_quality(X, features, report)
    shape = _image_shape(options.image_shape, features, dialect, X)
    report["image_shape"] = shape
    provenance = {"source": "file", "files": [name], "report": report}
    if shape is not None:
        provenance["image_range"] = _range(X)
        X = X.astype(np.uint8) if are_bytes(X) else X
    return Dataset(
        name=Path(name).name.split(".")[0] or name,
        X=X,
        ids=_ids(frame, roles)[rows],
        labels={column: values[rows] for column, values in _labels(frame, roles).items()},
        image_shape=shape,
        feature_names=None if shape is not None and not dialect.header else tuple(features),
        provenance=provenance,
    )


def _with(roles: dict[str, str], role: str) -> list[str]:
    return [column for column, given in roles.items() if given == role]


def _check_features(name: str, features: list[str], roles: dict[str, str], report: dict) -> None:
    if len(features) < 2:
        msg = (
            f"“{name}” has {counted(len(features), 'feature column')} of {len(roles)}; at least 2 "
            "are needed, so check the separator or change the columns' roles."
        )
        raise InputError(msg, report)


def _matrix(frame: "pd.DataFrame", features: list[str], report: dict) -> np.ndarray:
    import pandas as pd

    words = [name for name in features if not pd.api.types.is_numeric_dtype(frame[name])]
    for column in words:
        numbers = pd.to_numeric(frame[column].astype("object"), errors="coerce")
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
    chosen: tuple[int, ...] | str | None, features: list[str], dialect: Dialect, X: np.ndarray
) -> tuple[int, ...] | None:
    if chosen != "auto":
        return None if chosen is None else tuple(chosen)
    side = image_side(features, dialect.header, X)
    return None if side is None else (side, side)


def _range(X: np.ndarray) -> list[float]:
    """Black and white of images: the usual scale they fit into, else their own extremes."""
    low, high = float(X.min()), float(X.max())
    for white in (1.0, 16.0, 255.0):
        if low >= 0 and high <= white:
            return [0.0, white]
    return [low, high]


def _label(values: "pd.Series") -> np.ndarray:
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
