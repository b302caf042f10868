"""What Streamlit 1.67 does in the first run of a process only.

It runs its old page discovery until the first `st.navigation`, because a folder named ``pages``
exists. That discovery does not know our pages: a deep link then opens the right page, but under the
notice "Page not found". And with its first element it finds out whether it runs in a console, which
opens the files of all modules: half a second while they are still being loaded.
"""

from itertools import count
from pathlib import Path

import streamlit as st
from streamlit import delta_generator

_runs = count()
_closer = st.components.v2.component(
    "appca_cold_start",
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
    isolate_styles=False,
)
if st.runtime.exists():
    delta_generator._use_warning_has_been_displayed = True


def close_false_alarm() -> None:
    """Close that notice in the first run of the process; do nothing ever after."""
    if next(_runs) == 0:
        _closer(key="appca-cold-start")
