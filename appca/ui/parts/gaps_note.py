"""What a page says of missing cells where it does not leave them out, as the fit does."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.words.wording import counted


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
