"""A Plotly figure on a page, with words for those who hear it."""

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from appca.plots.words import described


def chart(figure: go.Figure, key: str, **options: Any) -> None:
    """Draw a figure without a toolbar, its alternative text made from what it shows."""
    config = {"displayModeBar": False}
    st.plotly_chart(figure, key=key, alt=described(figure), config=config, **options)
