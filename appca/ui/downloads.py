"""Buttons that save files, which are created when a button is pressed."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from mimetypes import guess_type
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from appca.analysis import tables
from appca.analysis.components import in_data_space
from appca.analysis.fitted import FittedRun
from appca.analysis.tables import USUAL, Columns, Patterns, component_npz, csv_bytes, headings
from appca.data.dataset import Dataset
from appca.plots.components import component_sheet, png
from appca.ui import fits, services

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("CSV", "Parquet", "NPZ")


def save_button(
    label: str, make: Callable[[], bytes | str], file_name: str, *, key: str, primary: bool = False
) -> None:
    """Draw a button that calls `make` outside the page's run, and saves its file."""
    look: Any = {"type": "primary" if primary else "secondary", "icon": ":material/download:"}
    look |= {"mime": guess_type(file_name)[0] or "application/octet-stream", "on_click": "ignore"}
    st.download_button(label, data=make, file_name=file_name, key=f"download-{key}", **look)


@contextmanager
def card(title: str, about: str | None = None) -> Iterator[None]:
    """Draw a titled card around the content of the with block."""
    with st.container(border=True):
        st.subheader(title, anchor=False, help=about)
        yield


def table_buttons(
    made: Callable[[], "pd.DataFrame"],
    shown: fits.Shown,
    stem: str,
    *,
    primary: bool = False,
    columns: Columns = USUAL,
) -> None:
    """Draw a button per format for a table of a run's rows."""
    with st.container(horizontal=True, gap="small"):
        for name in FORMATS:
            suffix = name.lower()
            make = partial(file_of, suffix, made, shown, columns)
            look: Any = {"key": f"{stem}-{suffix}", "primary": primary and suffix == "csv"}
            save_button(f"Save {name}", make, f"{stem}-{shown.config.id}.{suffix}", **look)


def file_of(
    suffix: str, made: Callable[[], "pd.DataFrame"], shown: fits.Shown, columns: Columns = USUAL
) -> bytes:
    """Return a table of a run's rows in a format."""
    table = made()
    if suffix == "csv":
        return csv_bytes(table)
    if suffix == "parquet":
        return table.to_parquet(index=False)
    return tables.npz_bytes(table, in_data_space(shown.fitted), headings(shown.fitted, columns))


def stem_of(name: str) -> str:
    """Return a name as part of a file name that every system allows."""
    return re.sub(r"[^\w-]+", "-", name).strip("-_")[:40] or "data"


def rows_popover(dataset: Dataset, shown: fits.Shown, rows: np.ndarray, *, key: str) -> None:
    """Draw a popover, with a unique `key`, for saving projections of rows."""
    with st.popover("Save", icon=":material/download:", key=f"save-{key}"):
        made = partial(tables.projection_table, dataset, shown.fitted, rows)
        table_buttons(made, shown, f"selection-{key}")


def component_buttons(dataset: Dataset, shown: fits.Shown) -> None:
    """Draw a button per format for the components."""
    columns, patterns = Columns(named=any(shown.fitted.names)), _patterns(shown.key, shown.fitted)
    content = (dataset, shown.fitted, patterns, columns)
    files: dict[str, Callable[[], bytes | str]] = {
        "csv": lambda: csv_bytes(tables.component_table(*content)),
        "npz": partial(component_npz, *content),
    }
    if dataset.image_shape is not None:
        files["png"] = partial(png, component_sheet(patterns.components, dataset.image_shape))
    with st.container(horizontal=True, gap="small"):
        for suffix, make in files.items():
            name = f"components-{shown.config.id}.{suffix}"
            save_button(f"Save {suffix.upper()}", make, name, key=f"components-{suffix}")


@services.by_key(8)
def _patterns(fitted: FittedRun) -> Patterns:
    before = fitted.preprocessing._replace(prepare=None)  # in the units of the components
    return Patterns(in_data_space(fitted), before.inverse_transform(fitted.mean[None])[0])
