"""Buttons that save files; the file is made when a button is pressed, not before."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from mimetypes import guess_type
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from appca.analysis.components import in_data_space
from appca.analysis.fitted import FittedRun
from appca.analysis.tables import (
    USUAL,
    Columns,
    Patterns,
    component_npz,
    component_table,
    csv_bytes,
    headings,
    npz_bytes,
    projection_table,
)
from appca.data.dataset import Dataset
from appca.plots.components import component_sheet, png
from appca.ui import services
from appca.ui.fits import Shown
from appca.ui.services import by_key
from appca.words import InputError

if TYPE_CHECKING:
    import pandas as pd

Files = dict[str, Callable[[], bytes | str]]  # by name, made when they are saved
FORMATS = ("CSV", "Parquet", "NPZ")  # of tables; endings of files are the same in small letters


def save_button(
    label: str, make: Callable[[], bytes | str], file_name: str, *, key: str, primary: bool = False
) -> None:
    """Draw a button; `make` is called, away from the page, when it is pressed."""
    st.download_button(
        label,
        data=make,
        file_name=file_name,
        mime=guess_type(file_name)[0] or "application/octet-stream",
        key=f"download-{key}",
        on_click="ignore",
        icon=":material/download:",
        type="primary" if primary else "secondary",
    )


@contextmanager
def card(title: str, about: str | None = None) -> Iterator[None]:
    """Draw what is inside on a card with a title."""
    with st.container(border=True):
        st.subheader(title, anchor=False, help=about)
        yield


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
        for name in FORMATS:
            suffix = name.lower()
            save_button(
                f"Save {name}",
                partial(file_of, suffix, made, shown, columns),
                f"{stem}-{shown.config.id}.{suffix}",
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
        return table.to_parquet(index=False)
    return npz_bytes(table, in_data_space(shown.fitted), headings(shown.fitted, columns))


def stem_of(name: str) -> str:
    """Return what of a name can be part of a file's name on any machine."""
    return re.sub(r"[^\w-]+", "-", name).strip("-_")[:40] or "data"


def rows_popover(dataset: Dataset, shown: Shown, rows: np.ndarray, *, key: str) -> None:
    """Draw a popover, of its own `key` on a page, that saves the projections of rows."""
    with st.popover("Save", icon=":material/download:", key=f"save-{key}"):
        made = partial(projection_table, dataset, shown.fitted, rows)
        table_buttons(made, shown, f"selection-{key}")


def renewing(shown: Shown, make: Callable[[], bytes | str]) -> Callable[[], bytes | str]:
    """Return what makes a file, and counts the fit as work from then on."""
    store, run = services.runs(), shown.config.id

    def made() -> bytes | str:
        content = make()
        with suppress(InputError):  # gone meanwhile: the file is made all the same
            store.renew(run)
        return content

    return made


def component_buttons(dataset: Dataset, shown: Shown) -> None:
    """Draw a button for each format of the components."""
    columns = Columns(named=any(shown.fitted.names))
    patterns = _patterns(shown.key, shown.fitted)
    content = (dataset, shown.fitted, patterns, columns)
    files: Files = {
        "csv": lambda: csv_bytes(component_table(*content)),
        "npz": partial(component_npz, *content),
    }
    if dataset.image_shape is not None:
        files["png"] = partial(png, component_sheet(patterns.components, dataset.image_shape))
    with st.container(horizontal=True, gap="small"):
        for suffix, make in files.items():
            name = f"components-{shown.config.id}.{suffix}"
            save_button(f"Save {suffix.upper()}", make, name, key=f"components-{suffix}")


@by_key(8)
def _patterns(fitted: FittedRun) -> Patterns:
    mean = fitted.preprocessing.inverse_transform(fitted.mean[None])[0]
    return Patterns(in_data_space(fitted), mean)
