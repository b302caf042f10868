"""Classes on the page UMAP: their names on the map, and which one lies nearest to which."""

import numpy as np
import streamlit as st

from appca.analysis.explore.class_neighbours import ClassNeighbour, nearest_classes
from appca.analysis.export.projections import neutral
from appca.data.dataset import Dataset
from appca.plots.explore.panel import Name
from appca.storage.wording import shortened
from appca.ui.parts.text import markdown
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown

MOST_ROWS = 100_000  # looked at; 60,000 take a second or two
MOST_NAMES = 60  # classes; more names cover the map, and of a number each value is one
LONGEST = 24  # letters of a name on the map


def naming(dataset: Dataset) -> bool:
    """Draw the switch that writes the classes' names on the map; tell whether it is on."""
    if _classes(dataset) is None:
        return False
    return st.toggle(
        "Names of classes",
        key="umap_names",
        persist_state="session",
        help="Writes each class's name at its row that is nearest to the middle of the class.",
    )


def names_on_map(dataset: Dataset, coordinates: np.ndarray) -> list[Name]:
    """Return the name of each class at one of its rows, the largest class first.

    The row is the one nearest to the medians of its class: of a class in pieces, the middle may be
    empty.
    """
    names, codes = dataset.class_column or ([], np.arange(0))
    counts = np.bincount(codes, minlength=len(names))
    return [
        Name(shortened(names[code], LONGEST), *_middle(coordinates[codes == code]))
        for code in np.argsort(-counts, kind="stable")
        if counts[code]
    ]


def nearest_table(dataset: Dataset, shown: Shown) -> None:
    """Draw, for each class, the other class that lies nearest in the projection."""
    import pandas as pd

    classes = _classes(dataset)
    if classes is None:
        return
    names, codes = classes
    found = kept(
        f"nearest-{shown.key}-{dataset.digest}",
        lambda: nearest_classes(shown.fitted, codes, names, MOST_ROWS),
    )
    met = sorted((one for one in found if one.other), key=lambda one: -one.share)
    st.subheader("Nearest other class", anchor=False)
    st.caption(markdown(sentence(found, dataset.n_rows)))
    if not met:
        return
    columns = {
        "Class": [neutral(one.name) for one in met],
        "Nearest other class": [neutral(one.other) for one in met],
        "Share of its rows": [100 * one.share for one in met],
        "In subspaces of its own": [100 * one.alone for one in met],
        "Rows": [one.rows for one in met],
    }
    percent = st.column_config.NumberColumn(format="%.0f %%")
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        width="content",
        column_config={"Share of its rows": percent, "In subspaces of its own": percent},
    )


def sentence(found: list[ClassNeighbour], n_rows: int) -> str:
    """Say what the table counts, and which pairs of classes are each other's nearest."""
    text = (
        "For each row the nearest row of another class, among the rows of its own subspace and by "
        "the projection, not by the map."
    )
    if n_rows > MOST_ROWS:
        text += f" Counted on {MOST_ROWS:,} of the {n_rows:,} rows, drawn at random."
    nearest = {one.name: one.other for one in found if one.other}
    if not nearest:
        return f"{text} No subspace holds rows of two classes."
    names = list(nearest)
    pairs = [
        f"{one} and {other}"
        for place, one in enumerate(names)
        for other in names[place + 1 :]
        if nearest[one] == other and nearest[other] == one
    ]
    if not pairs:
        return text
    return f"{text} Each other’s nearest: {'; '.join(pairs)}."


def _classes(dataset: Dataset) -> tuple[list[str], np.ndarray] | None:
    """Return names and codes of the first label if it tells classes, and not single rows."""
    column = dataset.class_column
    return column if column is not None and 1 < len(column[0]) <= MOST_NAMES else None


def _middle(points: np.ndarray) -> tuple[float, float]:
    away = np.square(points - np.median(points, axis=0)).sum(axis=1)
    x, y = points[away.argmin()]
    return float(x), float(y)
