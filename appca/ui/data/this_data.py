"""The tab This data: what is on screen, what was assumed of its files, and the preprocessing."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.data.readers.facts import facts
from appca.ui.arrivals import opening
from appca.ui.arrivals.upload_forms import form_of
from appca.ui.data import overview
from appca.ui.parts.text import fact_list, markdown
from appca.ui.settings.preprocessing import preprocessing
from appca.words.wording import counted


def page(dataset: Dataset) -> None:
    """Draw the tab."""
    opened = opening.of(dataset.digest)
    if opened is not None and not _is_as_opened(opened):
        return
    with st.container(key="beside"):
        look, before = st.columns([1.5, 1], gap="large")
    with look:
        overview.overview(dataset)
    with before:
        st.subheader("Before the fit", anchor=False)
        preprocessing(dataset)


def _is_as_opened(opened: opening.Opened) -> bool:
    """Draw how the files are read; return whether the data on screen are what that gives."""
    names = [name for name, _ in opened.arrival.files]
    st.subheader(names[0] if len(names) == 1 else counted(len(names), "file"), anchor=False)
    options = form_of(
        opened.kind, opened.key, lambda chosen: opened.read(chosen).report, opened.options
    )
    outcome = opened.read(options)
    if outcome.dataset is None:
        st.error(markdown(outcome.sentence))
    elif outcome.dataset.digest == opened.digest:
        return True
    else:
        label = f"Explore these {counted(outcome.dataset.n_rows, 'row')}"
        pressed = st.button(label, type="primary", key="upload_use")
        st.html(fact_list(facts(outcome.report, outcome.dataset)))
        if pressed:
            opened.options = options
            opening.use(opened, outcome.dataset)
    return False
