"""A Plotly figure on a page, with words for those who hear it."""

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from appca.plots.words import described


def chart(figure: go.Figure, **options: Any) -> None:
    """Draw a figure as `st.plotly_chart` does, its alternative text made from what it shows."""
    st.plotly_chart(figure, alt=described(figure), **options)
