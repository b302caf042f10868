"""Cards of the page Export: projections, the picture, files for other explorers, the script."""

from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.export.as_python import script
from appca.analysis.export.parquet import explorer_parquet, own_axes
from appca.analysis.export.projections import Columns, projection_table
from appca.data.dataset import Dataset
from appca.plots.components.components import png
from appca.ui.canvas.scenes import scene_of
from appca.ui.export.run_figures import coordinates, recipe
from appca.ui.parts import controls
from appca.ui.parts.downloads import FORMATS, card, picture_button, save_button, table_buttons
from appca.ui.parts.widgets import one_of
from appca.ui.session import selection
from appca.ui.session.fitting import Shown
from appca.ui.settings import umap
from appca.words.wording import counted

EXAMPLE_ROWS = 5
LINES = (
    "One line per row: id, labels, subspace, scores (zero for unused components), how sure "
    "the subspace is, mean squared error, log-likelihood. NPZ has the components, too."
)
PICTURE = (
    "One HTML file with hover, images, lasso, search, tour and colours. It opens in a browser "
    "without a network."
)


def choices(dataset: Dataset) -> tuple[np.ndarray | None, str]:
    """Draw the choice of rows and colours; no rows stand for all."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        rows = _which_rows(dataset)
        return rows, controls.colouring(dataset)


def _which_rows(dataset: Dataset) -> np.ndarray | None:
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
    stem = "projection" if rows is None else "selection"
    with card("Projections", LINES):
        place = st.container()
        columns = _columns(shown)
        with place:
            made = partial(projection_table, dataset, shown.fitted, rows, columns)
            table_buttons(made, shown, stem, columns=columns)
        first = np.arange(min(EXAMPLE_ROWS, dataset.n_rows)) if rows is None else rows
        table = projection_table(dataset, shown.fitted, first[:EXAMPLE_ROWS], columns)
        st.dataframe(table, hide_index=True, width="stretch")
        with st.expander("For other explorers"):
            _for_explorers(dataset, shown, rows, columns)


def picture(dataset: Dataset, shown: Shown, colour: str) -> None:
    """Draw what saves the picture."""
    with card("Picture", PICTURE):
        scene = scene_of(dataset, shown, colour, umap.at_hand(dataset, shown.config))
        picture_button(dataset, shown, scene, colour, key="picture")


def as_python(dataset: Dataset, shown: Shown) -> None:
    """Draw the script that makes the fit again, as a file and to be copied by its button."""
    imported = "This fit was imported; the script fits its data, which need not give its numbers."
    again = "Makes the same numbers again on the same machine with the same versions."
    made = script(dataset, recipe(shown))
    with card("Python", again if shown.config.imported is None else None):
        if shown.config.imported is not None:
            st.caption(imported)
        name = f"fit-{shown.config.id}.py"
        save_button("Save script", made.encode, name, "text/x-python", key="script")
        with st.expander("Show the script"):
            st.code(made, language="python", wrap_lines=True)


def _columns(shown: Shown) -> Columns:
    has_names = any(shown.fitted.names)
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
    return Columns(bool(named), bool(inclusion))


def _for_explorers(
    dataset: Dataset, shown: Shown, rows: np.ndarray | None, columns: Columns
) -> None:
    """Draw what saves a file for other programs that show rows as points."""
    pictured = dataset.image_shape is not None
    what = "map, neighbours and images" if pictured else "map and neighbours"
    map_, name = coordinates(dataset, shown), f"explorer-{shown.config.id}.parquet"
    places = own_axes(shown.fitted) if map_ is None else map_
    picture = png if pictured else None
    save_button(
        f"Save Parquet with {what}",
        partial(explorer_parquet, dataset, shown.fitted, places, rows, columns, picture),
        name,
        FORMATS["parquet"][1],
        key="explorer",
    )
    where = "its first two own components" if map_ is None else "UMAP"
    image = " --image image" if pictured else ""
    st.caption(
        f"The same table with x and y by {where}, the 15 rows whose projections lie nearest, and "
        f"{'each image as PNG' if pictured else 'no images'}. Embedding Atlas opens it by"
    )
    st.code(
        f"embedding-atlas {name} --x x --y y --neighbors neighbors{image}",
        language="bash",
        wrap_lines=True,
    )
