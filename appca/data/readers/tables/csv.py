"""Text tables: CSV, TSV and the like, gzipped or not."""

import io
from typing import TYPE_CHECKING, Any, NamedTuple

from appca.data.dataset import Dataset
from appca.data.readers.reader import Reader
from appca.data.readers.source import LIMITS, File, ReadLimits, check_matrix, file_bytes
from appca.data.readers.tables.dialect import BLANK, Dialect, as_text, check_rectangle, guess
from appca.data.readers.tables.frame import ImageShape, TableOptions, build, check_columns
from appca.words.errors import InputError
from appca.words.wording import shortened

if TYPE_CHECKING:
    import pandas as pd

_GAPS = ["?", "-", "."]  # beside those pandas knows


class CsvOptions(NamedTuple):
    """How to read a text table; what is None is guessed."""

    separator: str | None = None  # one character; a blank stands for any run of blanks
    decimal: str | None = None  # "." or ","
    header: bool | None = None  # whether the first line holds the columns' names
    encoding: str | None = None
    roles: dict[str, str] | None = None  # name to role (see `roles.ROLES`) where the guess is wrong
    missing: str = "refuse"  # or "model", "mean", "drop": what to do when feature cells are missing
    image_shape: ImageShape = "auto"  # "auto" takes squares of grey for images


def read(name: str, file: File, options: CsvOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a text table: float64, or uint8 for images.

    Ids are those of the id column, else ``row-1`` and so on, so that they name the file's rows also
    after some were dropped.
    """
    frame, named, report = frame_of(name, file, options, limits)
    common = TableOptions(options.roles, options.missing, options.image_shape)
    return build(name, frame, named, common, report, limits)


def frame_of(
    name: str, file: File, options: CsvOptions, limits: ReadLimits
) -> "tuple[pd.DataFrame, list[bool], dict[str, Any]]":
    """Return the cells, whether each column's name is in the file, and how the text is written."""
    text, encoding = as_text(name, file_bytes(name, file, limits), options.encoding)
    dialect = guess(name, text, options.separator, options.header, options.decimal)
    check_columns(name, len(dialect.columns), limits)
    check_matrix(name, text.count(b"\n"), len(dialect.columns), 8, limits)
    check_rectangle(name, text, dialect)
    frame = _parse(name, text, dialect)
    named = [
        dialect.header and column != f"column {j + 1}" for j, column in enumerate(dialect.columns)
    ]
    report = {
        "encoding": encoding,
        "separator": dialect.separator,
        "decimal": dialect.decimal,
        "header": dialect.header,
    }
    return frame, named, report


def _parse(name: str, text: bytes, dialect: Dialect) -> "pd.DataFrame":
    import pandas as pd

    # pandas 2 rounds the last bit otherwise; pandas 3 deprecates the argument
    is_old = int(pd.__version__.partition(".")[0]) < 3
    exact: dict[str, Any] = {"float_precision": "round_trip"} if is_old else {}
    try:
        frame: pd.DataFrame = pd.read_csv(
            io.BytesIO(text),
            sep=r"\s+" if dialect.separator == BLANK else dialect.separator,
            decimal=dialect.decimal,
            header=None,
            names=list(dialect.columns),
            # up to the header's end; blank lines may stand before it
            skiprows=len(text) - len(text.lstrip(b"\n")) + 1 if dialect.header else 0,
            index_col=False,
            skipinitialspace=True,
            na_values=_GAPS,
            low_memory=False,
            **exact,
        )
        return frame
    except (ValueError, OverflowError) as error:
        reason = shortened(str(error).removeprefix("Error tokenizing data. C error: "), 120)
        msg = f"“{name}” cannot be read as a table ({reason}); check its lines and quotation marks."
        raise InputError(msg) from error


READER = Reader(CsvOptions, read)
