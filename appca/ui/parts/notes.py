"""Notes beside a title: of a first look at a long fit, missing cells."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.runs.home import home
from appca.ui.parts import progress
from appca.ui.parts.text import markdown
from appca.ui.session import fitting, state, watching
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.words.numbers import about
from appca.words.wording import counted


def preview_note(shown: Shown) -> bool:
    """Draw the marks; False for a finished fit of this machine."""
    if shown.is_refused:
        st.badge(
            "not stored",
            color="red",
            help=f"The disk is full or read-only, so this fit is in memory alone. Free some space "
            f"in {markdown(str(home()))}, or make it writable: the fit is stored when you look at "
            "it again. Until then, Export keeps it.",
        )
    if shown.config.imported is not None:
        st.badge(
            "imported",
            color="orange",
            help="This fit came in a session file. Fit here to check that its settings give these "
            "numbers.",
        )
        st.button(
            "Fit here",
            "fit_here",
            type="tertiary",
            on_click=guarded(state.open_config),
            args=[shown.config.to_be_fitted()],
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


def gaps_note(dataset: Dataset, whose: str) -> None:
    """Say that `whose` fits ("The fits of the grid") read placeholders; nothing of whole data."""
    if dataset.missing is None:
        return
    verb = "is" if dataset.n_missing == 1 else "are"
    st.caption(
        f":material/info: {counted(dataset.n_missing, 'cell')} of these data {verb} missing. "
        f"{whose} use the column's mean there, while the fit on screen leaves them out: compare "
        "these numbers only with each other."
    )
