"""What a command leaves behind: one file, of the kind its name says, whole or not at all."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.commands.terminal import say
from appca.data.dataset import Dataset
from appca.storage import atomic
from appca.storage.errors import InputError
from appca.storage.refusal import OTHER, storing

if TYPE_CHECKING:
    import pandas as pd

KINDS = (".csv", ".parquet", ".npz")
OUT_HELP = "where the result goes; its name ends in .csv, .parquet or .npz"


def check_place(path: Path | None) -> None:
    """Refuse a place where nothing can be written, before anything is computed.

    Raises
    ------
    InputError
        For a name of another kind, or a folder that is not there.
    """
    if path is None:
        return
    if path.suffix not in KINDS:
        msg = f"The output's name must end in {', '.join(KINDS)}; got “{path.name}”."
        raise InputError(msg)
    if not path.parent.is_dir():
        msg = f"The folder of the output must exist; there is no “{path.parent}”."
        raise InputError(msg)


def write(
    path: Path, table: Callable[[], "pd.DataFrame"], arrays: Callable[[], Mapping[str, np.ndarray]]
) -> None:
    """Write a table, or arrays, as the name of the file asks for; an older file is replaced whole.

    Raises
    ------
    InputError
        When the disk refuses.
    """
    check_place(path)
    content = npz(arrays()) if path.suffix == ".npz" else _table(path.suffix, table())
    with storing(f"“{path.name}”", path.parent, OTHER):
        atomic.write(path, content, private=False)
    say(f"wrote {path}, {len(content)} bytes")


def identity(dataset: Dataset) -> dict[str, np.ndarray]:
    """Return ids and labels as arrays."""
    labels = {f"label_{i}": column for i, column in enumerate(dataset.labels.values())}
    return {"ids": dataset.ids, "label_names": np.array(list(dataset.labels), dtype="U"), **labels}


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays as a compressed NPZ file."""
    buffer = io.BytesIO()
    named: Mapping[str, Any] = arrays  # savez_compressed has a keyword of another type
    np.savez_compressed(buffer, **named)
    return buffer.getvalue()


def _table(suffix: str, table: "pd.DataFrame") -> bytes:
    from appca.analysis.export.projections import csv_bytes, parquet_bytes

    return csv_bytes(table) if suffix == ".csv" else parquet_bytes(table)
