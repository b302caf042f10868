"""The drawer on the right: components, selection or one row; it never moves the picture."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.ui.explore import component_list, selected
from appca.ui.parts.widgets import scripted, tabs
from appca.ui.rows import point
from appca.ui.session import selection
from appca.ui.session.fitting import Shown

TABS = {"components": "Components", "selection": "Selection", "point": "Point"}
_handle = scripted(__file__)


def drawer(dataset: Dataset, shown: Shown, colouring: str) -> None:
    """Draw the drawer."""
    count = int(selection.get(dataset).sum())
    names = TABS | ({"selection": f"Selection {count:,}"} if count else {})
    with st.container(key="drawer"):
        _handle(key="drawer_handle")
        with st.container(key="drawer_tab"):
            tab = tabs(names)
        with st.container(key="drawer_body"):
            if tab == "components":
                component_list.listing(dataset, shown)
            elif tab == "selection":
                selected.body(dataset, shown, colouring)
            else:
                point.body(dataset, shown)
