"""A deep link on a server that has just started.

Streamlit 1.67 runs its old page discovery until the first `st.navigation` of a process, because a
folder named ``pages`` exists. That discovery does not know our pages: a deep link then opens the
right page, but under the notice "Page not found". Only the first run of a process is affected.
"""

from itertools import count
from pathlib import Path

import streamlit as st

_runs = count()
_closer = st.components.v2.component(
    "appca_cold_start",
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def close_false_alarm() -> None:
    """Close that notice in the first run of the process; do nothing ever after."""
    if next(_runs) == 0:
        _closer(key="appca-cold-start")
