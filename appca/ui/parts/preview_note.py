"""The mark on a first look at a long fit: what it is, and when the full fit replaces it."""

import streamlit as st

from appca.runs.home import home
from appca.runs.store import MOST_HELD
from appca.ui.parts import progress
from appca.ui.parts.text import markdown
from appca.ui.session import fitting, state, watching
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.words.numbers import about
from appca.words.wording import counted


def preview_note(shown: Shown) -> bool:
    """Draw the marks; False for a finished fit of this machine."""
    if shown.run is not None and shown.run.is_held:
        st.badge(
            "not stored",
            color="red",
            help=f"The disk is full, so this fit is held in memory, with the {MOST_HELD} newest "
            f"like it. Free some space in {markdown(str(home()))}: it is stored when you look at "
            "it again. Until then, Export keeps it.",
        )
    if shown.config.imported is not None:
        st.badge(
            "imported",
            color="orange",
            help="This fit came in a session file. Fit here to check that its settings give these "
            "numbers.",
        )
        own = shown.config.to_be_fitted()
        st.button(
            "Fit here", "fit_here", type="tertiary", on_click=guarded(state.open_config), args=[own]
        )
        return True
    if shown.config.stopped_at is not None:
        work = counted(shown.info.n_iter, "sweep" if shown.config.is_sampled else "iteration")
        help_text = "This fit was kept before it had converged."
        st.badge(f"stopped by hand after {work}", color="orange", help=help_text)
        return True
    if not shown.is_preview:
        return False
    st.badge(
        "first look",
        color="orange",
        help="A short fit to at most 5,000 of the rows, with all rows drawn on it. The full fit "
        "replaces it here as soon as it is done.",
    )
    if watching.running(state.config().id) is None:
        label = f"Fit fully ({about(fitting.seconds())})"
        st.button(label, key="refine", type="tertiary", on_click=progress.start)
    return True
