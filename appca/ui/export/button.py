"""Buttons that save what a view shows: projections of rows in a popover, and a canvas."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.export.projections import projection_table
from appca.canvas.file import picture_page
from appca.data.dataset import Dataset
from appca.ui.canvas.scenes import PageScene
from appca.ui.parts.downloads import save_button, stem_of, table_buttons
from appca.ui.session import services
from appca.ui.session.fitting import Shown
from appca.words.errors import InputError


def save(dataset: Dataset, shown: Shown, rows: np.ndarray, *, key: str) -> None:
    """Draw a popover, of its own `key` on a page, that saves the projections of rows."""
    with st.popover("Save", icon=":material/download:", key=f"save-{key}"):
        made = partial(projection_table, dataset, shown.fitted, rows)
        table_buttons(made, shown, f"selection-{key}")


def picture_button(
    dataset: Dataset, shown: Shown, scene: PageScene, colouring: str, *, key: str
) -> None:
    """Draw the button that saves a canvas as one HTML file."""
    colourings = scene.meta["colourings"]
    first = colouring if colouring in colourings else next(iter(colourings), "")
    made = partial(picture_page, scene.scene, dataset.name, first)
    name = f"{stem_of(dataset.name)}-{shown.config.id}.html"
    save_button("Save HTML", kept(shown, made), name, "text/html", key=key)


def kept(shown: Shown, make: Callable[[], bytes | str]) -> Callable[[], bytes | str]:
    """Return what makes a file, and counts the fit as work from then on."""
    store, run = services.runs(), shown.config.id

    def made() -> bytes | str:
        content = make()
        with suppress(InputError):  # gone meanwhile: the file is made all the same
            store.renew(run)
        return content

    return made
