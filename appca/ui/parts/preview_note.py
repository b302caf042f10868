"""The mark on a preview: what it is, and when the full fit replaces it."""

import streamlit as st

from appca.ui.parts import progress
from appca.ui.parts.text import about, passes
from appca.ui.session import fitting, state, watching
from appca.ui.session.fitting import Shown


def preview_note(shown: Shown) -> bool:
    """Draw the mark; False for a finished fit, which needs none."""
    if shown.config.stopped_at is not None:
        st.badge(
            f"stopped by hand after {_work(shown)}",
            color="orange",
            help="This run was kept before it had settled.",
        )
        return True
    if not shown.is_preview:
        return False
    st.badge(
        "preview",
        color="orange",
        help="A short fit to at most 5,000 of the rows, with all rows drawn on it. The full fit "
        "replaces it here as soon as it is done.",
    )
    if watching.running(state.config().id) is not None:
        st.caption("A short fit to begin with; the full fit replaces it in a moment.")
    else:
        st.button(
            f"Fit fully ({about(fitting.seconds())})",
            key="refine",
            type="tertiary",
            on_click=progress.start,
        )
    return True


def _work(shown: Shown) -> str:
    return passes(shown.info.n_iter, sampled=shown.config.is_sampled)
