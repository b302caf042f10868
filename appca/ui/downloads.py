"""Buttons that save projections; the file is made when a button is pressed, not before."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from appca.analysis.export import csv_bytes, npz_bytes, parquet_bytes, projection_table
from appca.data.dataset import Dataset
from appca.ui.component_list import in_data_space
from appca.ui.fitting import Shown

if TYPE_CHECKING:
    import pandas as pd

FORMATS = {
    "csv": ("CSV", "text/csv"),
    "parquet": ("Parquet", "application/vnd.apache.parquet"),
    "npz": ("NPZ", "application/octet-stream"),
}


def download_buttons(
    dataset: Dataset, shown: Shown, rows: np.ndarray | None, stem: str, *, primary: bool = False
) -> None:
    """Draw one button a format; `rows` None saves all rows."""
    made = partial(projection_table, dataset, shown.arrays, rows)
    table_buttons(made, shown, stem, primary=primary)


def table_buttons(
    made: Callable[[], "pd.DataFrame"], shown: Shown, stem: str, *, primary: bool = False
) -> None:
    """Draw one button a format for a table of rows of a run, `made` when one is pressed."""
    with st.container(horizontal=True, gap="small"):
        for suffix, (name, mime) in FORMATS.items():
            st.download_button(
                f"Save {name}",
                data=partial(file_of, suffix, made, shown),
                file_name=f"{stem}-{shown.config.id}.{suffix}",
                mime=mime,
                key=f"download-{stem}-{suffix}",
                on_click="ignore",
                icon=":material/download:",
                type="primary" if primary and suffix == "csv" else "secondary",
            )


def make(suffix: str, dataset: Dataset, shown: Shown, rows: np.ndarray | None) -> bytes:
    """Return the file of one format."""
    return file_of(suffix, partial(projection_table, dataset, shown.arrays, rows), shown)


def file_of(suffix: str, made: Callable[[], "pd.DataFrame"], shown: Shown) -> bytes:
    """Return a table of rows of a run as a file of one format."""
    table = made()
    if suffix == "csv":
        return csv_bytes(table)
    if suffix == "parquet":
        return parquet_bytes(table)
    return npz_bytes(table, in_data_space(shown.arrays))
