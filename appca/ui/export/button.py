"""The button Save that a view has: files of what it shows, in a popover."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from appca.data.dataset import Dataset
from appca.storage.errors import InputError
from appca.ui.explorer import canvas
from appca.ui.explorer.scenes import PageScene
from appca.ui.export.picture import picture_page
from appca.ui.parts.downloads import download_buttons, save_button, stem_of, table_buttons
from appca.ui.session import services
from appca.ui.session.fitting import Shown

if TYPE_CHECKING:
    import pandas as pd


def save(
    dataset: Dataset,
    shown: Shown,
    *,
    key: str,
    rows: np.ndarray | None = None,
    scene: PageScene | None = None,
    colouring: str = "",
    table: "Callable[[], pd.DataFrame] | None" = None,
) -> None:
    """Draw a popover that saves what a view shows.

    Parameters
    ----------
    key : str
        Another one for each on a page.
    rows : ndarray of int, optional
        Whose projections are saved; by default all.
    scene : PageScene, optional
        Of a canvas, to be saved as one HTML file.
    colouring : str
        That the canvas has.
    table : callable, optional
        Makes the table of a view that shows other numbers than projections.
    """
    with st.popover("Save", icon=":material/download:", key=f"save-{key}"):
        if table is not None:
            table_buttons(table, shown, key)
            return
        download_buttons(dataset, shown, rows, f"projection-{key}")
        if scene is not None:
            picture_button(dataset, shown, scene, colouring, key=f"picture-{key}")


def picture_button(
    dataset: Dataset, shown: Shown, scene: PageScene, colouring: str, *, key: str
) -> None:
    """Draw the button that saves a canvas as one HTML file."""
    colourings = scene.meta["colourings"]
    first = colouring if colouring in colourings else next(iter(colourings), "")
    made = partial(picture_page, scene.scene, dataset.name, canvas.views(scene), first)
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
