"""Buttons that save projections; the file is made when a button is pressed, not before."""

from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.export import csv_bytes, npz_bytes, parquet_bytes, projection_table
from appca.data.dataset import Dataset
from appca.ui.component_list import in_data_space
from appca.ui.fitting import Shown

FORMATS = {
    "csv": ("CSV", "text/csv"),
    "parquet": ("Parquet", "application/vnd.apache.parquet"),
    "npz": ("NPZ", "application/octet-stream"),
}


def download_buttons(
    dataset: Dataset, shown: Shown, rows: np.ndarray | None, stem: str, *, primary: bool = False
) -> None:
    """Draw one button a format; `rows` None saves all rows."""
    with st.container(horizontal=True, gap="small"):
        for suffix, (name, mime) in FORMATS.items():
            st.download_button(
                f"Save {name}",
                data=partial(make, suffix, dataset, shown, rows),
                file_name=f"{stem}-{shown.config.id}.{suffix}",
                mime=mime,
                key=f"download-{stem}-{suffix}",
                on_click="ignore",
                icon=":material/download:",
                type="primary" if primary and suffix == "csv" else "secondary",
            )


def make(suffix: str, dataset: Dataset, shown: Shown, rows: np.ndarray | None) -> bytes:
    """Return the file of one format."""
    table = projection_table(dataset, shown.arrays, rows)
    if suffix == "csv":
        return csv_bytes(table)
    if suffix == "parquet":
        return parquet_bytes(table)
    return npz_bytes(table, in_data_space(shown.arrays))
