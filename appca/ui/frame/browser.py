"""What the frame asks of the browser: undo and redo by keys and Back, and code ahead of its use."""

from pathlib import Path

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from appca.ui.session import history

_listener = st.components.v2.component(
    "appca_frame",
    js=Path(__file__).with_name("frame.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


_SCRIPTS = Path(st.__file__).parent / "static" / "static" / "js"
_AHEAD = ("Selectbox", "PlotlyChart", "DataFrame", "StreamlitSyntaxHighlighter")
_files = [file.name for name in _AHEAD for file in _SCRIPTS.glob(f"{name}.*.js")]


def went() -> bool:
    """Whether the page is drawn because the browser went back or forward."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def listen() -> None:
    """Take up keys and the browser's history, and load code ahead; draws nothing."""
    _listener(
        key="appca-frame",
        data={"ahead": _files},
        on_undo_change=history.undo,
        on_redo_change=history.redo,
    )
