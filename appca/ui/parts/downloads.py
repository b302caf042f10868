"""Buttons that save files; the file is made when a button is pressed, not before."""

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from appca.analysis.components.components import in_data_space
from appca.analysis.export.projections import (
    USUAL,
    Columns,
    csv_bytes,
    headings,
    npz_bytes,
    parquet_bytes,
)
from appca.ui.session.fitting import Shown

if TYPE_CHECKING:
    import pandas as pd

FORMATS = {
    "csv": ("CSV", "text/csv"),
    "parquet": ("Parquet", "application/vnd.apache.parquet"),
    "npz": ("NPZ", "application/octet-stream"),
}


def save_button(
    label: str,
    make: Callable[[], bytes | str],
    file_name: str,
    mime: str = "application/octet-stream",
    *,
    key: str,
    primary: bool = False,
) -> None:
    """Draw a button; `make` is called, away from the page, when it is pressed."""
    st.download_button(
        label,
        data=make,
        file_name=file_name,
        mime=mime,
        key=f"download-{key}",
        on_click="ignore",
        icon=":material/download:",
        type="primary" if primary else "secondary",
    )


def table_buttons(
    made: Callable[[], "pd.DataFrame"],
    shown: Shown,
    stem: str,
    *,
    primary: bool = False,
    columns: Columns = USUAL,
) -> None:
    """Draw one button a format for a table of rows of a run, `made` when one is pressed."""
    with st.container(horizontal=True, gap="small"):
        for suffix, (name, mime) in FORMATS.items():
            save_button(
                f"Save {name}",
                partial(file_of, suffix, made, shown, columns),
                f"{stem}-{shown.config.id}.{suffix}",
                mime,
                key=f"{stem}-{suffix}",
                primary=primary and suffix == "csv",
            )


def file_of(
    suffix: str, made: Callable[[], "pd.DataFrame"], shown: Shown, columns: Columns = USUAL
) -> bytes:
    """Return a table of rows of a run as a file of one format."""
    table = made()
    if suffix == "csv":
        return csv_bytes(table)
    if suffix == "parquet":
        return parquet_bytes(table)
    return npz_bytes(table, in_data_space(shown.fitted), headings(shown.fitted, columns))


def stem_of(name: str) -> str:
    """Return what of a name can be part of a file's name on any machine."""
    return re.sub(r"[^\w-]+", "-", name).strip("-_")[:40] or "data"
