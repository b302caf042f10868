"""Files dropped anywhere on a page, brought to the session of the page."""

from functools import cache
from pathlib import Path

import streamlit as st

from appca.runs.home import home
from appca.storage.identity import ID_DIGITS
from appca.ui.arrivals.drops import MOST_FILES, PREFIX, DroppedFiles, Drops
from appca.ui.canvas import serving
from appca.ui.parts.widgets import scripted
from appca.ui.server import inside
from appca.ui.server.routes import base
from appca.ui.session import state

SCRATCH = "uploads"  # below the home: where files lie while they are looked at
_part = scripted(__file__, '<div class="ca-drop" role="status"></div>')


@cache
def drops() -> Drops:
    """Return what was dropped on the windows of this server."""
    delivery = serving.delivery()
    return Drops(delivery.session_of, inside.is_connected, scratch, largest)


def scratch() -> Path:
    """Return the folder below which files lie while they are looked at."""
    return home() / SCRATCH


def largest() -> int:
    """Return the bytes that a file may have, as Streamlit is told."""
    return int(st.get_option("server.maxUploadSize")) << 20


def anywhere() -> DroppedFiles | None:
    """Let files be dropped on the page; return those that were, once."""
    session = inside.session()
    result = _part(
        key="dropping",
        data={
            "at": f"{base()}{PREFIX}/",
            "key": serving.delivery().key_of(session),
            "digits": ID_DIGITS,
            "most": MOST_FILES,
            "largest": largest(),
        },
        on_dropped_change=lambda: None,  # what was dropped is there only with a reaction to it
        on_refused_change=lambda: None,
    )
    if result.refused:
        state.notify("error", str(result.refused)[:1000])
    dropped = result.dropped
    return drops().take(session, dropped) if isinstance(dropped, str) else None
