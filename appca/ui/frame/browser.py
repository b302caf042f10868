"""What the frame asks of the browser: keys for undo and redo, and a Back that undoes."""

from pathlib import Path

import streamlit as st

from appca.ui.session import history

_listener = st.components.v2.component(
    "appca_frame",
    js=Path(__file__).with_name("frame.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def listen() -> None:
    """Take up keys and the browser's history; draws nothing."""
    _listener(key="appca-frame", on_undo_change=history.undo, on_redo_change=history.redo)
