"""What the frame asks of the browser: undo and redo by keys and Back, and code ahead of its use."""

from pathlib import Path

import streamlit as st

from appca.ui.server import inside
from appca.ui.server.base import base
from appca.ui.session import history

_listener = st.components.v2.component(
    "appca_frame",
    js=Path(__file__).with_name("frame.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)
_files = inside.scripts("Selectbox", "PlotlyChart", "DataFrame", "StreamlitSyntaxHighlighter")


def listen() -> None:
    """Take up keys and the browser's history, and load code ahead; draws nothing."""
    _listener(
        key="appca-frame",
        data={"ahead": _files, "base": base()},
        on_undo_change=history.undo,
        on_redo_change=history.redo,
    )
