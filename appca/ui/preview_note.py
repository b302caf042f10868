"""The mark on a preview: what it is, and when the full fit replaces it."""

import streamlit as st

from appca.ui import fitting, progress, state, watching
from appca.ui.fitting import Shown
from appca.ui.text import duration


def preview_note(shown: Shown) -> bool:
    """Draw the mark; False for a finished fit, which needs none."""
    if shown.config.stopped_at is not None:
        st.badge(
            f"stopped by hand after {shown.config.stopped_at:,} passes",
            color="orange",
            help="This run was kept before it had settled.",
        )
        return True
    if not shown.is_preview:
        return False
    st.badge(
        "preview",
        color="orange",
        help="A short fit of a part of the rows, with all rows drawn on it. The fit of all rows "
        "replaces it here as soon as it is done.",
    )
    if watching.running(state.config().id) is not None:
        st.caption("A short fit of a part of the rows; the fit of all rows is on its way.")
    else:
        st.button(
            f"Fit all rows ({duration(fitting.seconds())})",
            key="refine",
            type="tertiary",
            on_click=progress.start,
        )
    return True
