"""A table beside an array: what it says of the array's rows becomes their names and labels."""

import numpy as np

from appca.data.readers.arrays.choice import Beside
from appca.data.readers.source import File, ReadLimits
from appca.data.readers.tables import csv, parquet
from appca.data.readers.tables.frame import check_texts, describe, ids_of, labels_of
from appca.data.readers.tables.roles import guess_roles
from appca.words.errors import InputError
from appca.words.wording import counted, shortened


def named_by(name: str, file: File, kind: str, n_rows: int, limits: ReadLimits) -> Beside:
    """Read a table, "csv" or "parquet", with one line for each row of an array.

    All columns are labels but those that name the rows and those that a table leaves out. Raises
    InputError when it has another number of lines, or cannot be read.
    """
    if kind == "csv":
        frame, named, _ = csv.frame_of(name, file, csv.CsvOptions(), limits)
    else:
        frame = parquet.frame_of(name, file, limits)
        named = [True] * len(frame.columns)
    if len(frame) != n_rows:
        msg = (
            f"“{shortened(name)}” has {counted(len(frame), 'line')} for the "
            f"{counted(n_rows, 'row')} of the array; give a table with one line for each row."
        )
        raise InputError(msg)
    columns = describe(frame, named)
    mixed = {column.name: "label" for column in columns if column.kind == "mixed"}
    roles = guess_roles(columns, n_rows, mixed)
    roles = {key: "label" if role == "feature" else role for key, role in roles.items()}
    check_texts(frame, roles, limits)
    ids = ids_of(frame, roles) if "id" in roles.values() else None
    if ids is not None and len(np.unique(ids)) < n_rows:
        ids = None
    return Beside(ids, labels_of(frame, roles))
