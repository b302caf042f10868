"""The tab Neighbours: a row as an equation, and the rows that lie nearest to it."""

import numpy as np
import streamlit as st

from appca.analysis.explore.point import NearRows, near_in_data, near_in_subspace, parts, row_of
from appca.analysis.explore.subspaces import title
from appca.data.dataset import Dataset
from appca.data.numbers import number, percent
from appca.ui.cards import acts
from appca.ui.cards.row_buttons import row_buttons
from appca.ui.explore import point, point_choice
from appca.ui.parts.text import markdown
from appca.ui.session import selection
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown

NEAREST = 8
DOUBTFUL = 0.5


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the choice of a row, the row as a sum, and its neighbours in two senses."""
    row = point_choice.choose(dataset)
    fitted = shown.fitted
    found = parts(fitted, row_of(dataset, fitted, row), row)
    st.markdown(f"{markdown(str(dataset.ids[row]))} ≈ {point.equation(fitted, found)}")
    with st.container(key="neighbour"):
        st.html(point.built(dataset, fitted, found))
    used = tuple(np.flatnonzero(fitted.active[row]).tolist())
    if used:
        within = kept(f"within-{shown.key}-{row}", lambda: near_in_subspace(fitted, row, NEAREST))
        _near(dataset, within, f"Nearest in {title(used, fitted.numbers)}", "within")
    before = fitted.preprocessing
    key = f"neighbours-{shown.key}-{row}"
    near = kept(key, lambda: near_in_data(dataset.X, before, row, NEAREST))
    _near(dataset, near, "Nearest in the data", "near")
    _how_sure(shown, row)


def _near(dataset: Dataset, found: NearRows, heading: str, key: str) -> None:
    st.subheader(heading, anchor=False)
    if not len(found.rows):
        st.caption("No other row uses exactly these components.")
        return
    said = (f"{number(distance)} away" for distance in found.distances.tolist())
    html = row_buttons(dataset, found.rows, said, "show", selection.get(dataset))
    acts.acting(html, key, {"show": lambda row, _: point_choice.show(dataset, _row(dataset, row))})


def _row(dataset: Dataset, text: str) -> int:
    """Return a row number from what the browser sent."""
    return min(max(int(text), 0), dataset.n_rows - 1)


def _how_sure(shown: Shown, row: int) -> None:
    fitted = shown.fitted
    sure = float(fitted.membership[row])
    worse = float((fitted.error < fitted.error[row]).mean())
    doubt = ", which is doubtful" if sure < DOUBTFUL else ""
    st.caption(
        f"These components are {percent(sure)} probable{doubt}. "
        f"{percent(worse)} of rows are rebuilt better."
    )
