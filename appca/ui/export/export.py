"""The page Export: which rows, projections, the picture, the script."""

import numpy as np
import streamlit as st

from appca.analysis.components.components import own_name
from appca.analysis.export.as_python import script
from appca.analysis.export.projections import Columns, projection_table
from appca.data.dataset import Dataset
from appca.storage.wording import counted
from appca.ui.explore import umap
from appca.ui.explorer import canvas
from appca.ui.export.button import picture_button
from appca.ui.export.export_material import coordinates, recipe
from appca.ui.parts import controls
from appca.ui.parts.downloads import download_buttons
from appca.ui.parts.widgets import one_of
from appca.ui.session import selection
from appca.ui.session.fitting import Shown

EXAMPLE_ROWS = 5
LINES = (
    "One line per row: id, labels, subspace, scores (zero for unused components), how sure "
    "the subspace is, mean squared error, log-likelihood. NPZ has the components, too."
)
PICTURE = (
    "One HTML file with hover, images, lasso, search, tour and colours. It opens in a browser "
    "without a network."
)


def which_rows(dataset: Dataset) -> np.ndarray | None:
    """Draw the choice of rows; None stands for all."""
    mask = selection.get(dataset)
    n_selected = int(mask.sum())
    choices = {
        "all": f"All {counted(dataset.n_rows, 'row')}",
        "selected": f"Selected ({n_selected:,})",
    }
    wanted = one_of(
        "Rows",
        choices,
        key="export_rows",
        help_text="The selected rows alone in files of projections; marked in figures and report.",
    )
    if wanted == "selected" and not n_selected:
        st.info("Nothing is selected yet; draw a lasso in Explore.")
    return np.flatnonzero(mask) if wanted == "selected" else None


def projections(dataset: Dataset, shown: Shown, rows: np.ndarray | None) -> None:
    """Draw the projections: the buttons, which columns, and the first lines."""
    st.subheader("Projections", anchor=False, help=LINES)
    place = st.container()
    columns = _columns(dataset, shown)
    stem = "projection" if rows is None else "selection"
    with place:
        download_buttons(dataset, shown, rows, stem, primary=True, columns=columns)
    first = np.arange(min(EXAMPLE_ROWS, dataset.n_rows)) if rows is None else rows[:EXAMPLE_ROWS]
    table = projection_table(dataset, shown.fitted, first, columns)
    st.dataframe(table, hide_index=True, width="stretch")


def picture(dataset: Dataset, shown: Shown) -> str:
    """Draw what saves the picture, and return its colouring."""
    st.subheader("Picture", anchor=False, help=PICTURE)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        colour = controls.colouring(dataset)
        scene = canvas.scene(dataset, shown, colour, umap.at_hand(dataset, shown))
        picture_button(dataset, shown, scene, colour, key="picture")
    return colour


def as_python(dataset: Dataset, shown: Shown) -> None:
    """Draw the script that makes the fit again, to be copied by the button in its corner."""
    st.subheader("Python", anchor=False)
    st.caption(
        "This fit was imported; the script fits its data anew, which need not give its numbers."
        if shown.config.imported is not None
        else "Makes the same numbers again on the same machine with the same versions."
    )
    with st.expander("Show the script"):
        st.code(script(dataset, recipe(shown)), language="python", wrap_lines=True)


def _columns(dataset: Dataset, shown: Shown) -> Columns:
    k, places = len(shown.fitted.components), coordinates(dataset, shown)
    has_names = any(own_name(shown.fitted, i) for i in range(k))
    with st.container(horizontal=True, gap="medium"):
        named = has_names and st.toggle(
            "Names of components as headings",
            key="export_named",
            persist_state="session",
            help="The names given on the page Components, instead of component_1 and so on.",
        )
        inclusion = st.toggle(
            "Inclusion probabilities",
            key="export_inclusion",
            persist_state="session",
            help="How sure it is that a row uses each component, one column more for each.",
        )
        mapped = places is not None and st.toggle(
            "Place on the map",
            key="export_places",
            persist_state="session",
            help="Where UMAP has put each row, as map_x and map_y.",
        )
    return Columns(bool(named), bool(inclusion), places if mapped else None)
