"""The mark on a preview: what it is, and when the full fit replaces it."""

import streamlit as st

from appca.ui import fitting, progress, state, watching
from appca.ui.fitting import Shown
from appca.ui.text import duration


def preview_note(shown: Shown) -> None:
    """Draw the mark, or nothing for a finished fit."""
    if shown.config.stopped_at is not None:
        st.badge(
            f"stopped by hand after {shown.config.stopped_at:,} passes",
            color="orange",
            help="This run was kept before it had settled.",
        )
    if not shown.is_preview:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(
            "preview",
            color="orange",
            help="A short fit of a part of the rows, with all rows drawn on it. The fit of all "
            "rows replaces it here as soon as it is done.",
        )
        if watching.running(state.config().id) is not None:
            st.caption("the fit of all rows is on its way", width="content")
        else:
            st.button(
                f"Fit all rows ({duration(fitting.seconds())})",
                key="refine",
                type="tertiary",
                on_click=progress.start,
            )
