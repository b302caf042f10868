"""The tab This data: what is on screen, what was assumed of its files, what is done before a fit."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.storage.wording import counted
from appca.ui.data import opening, overview
from appca.ui.data.preprocessing_form import preprocessing
from appca.ui.data.upload_forms import form_of
from appca.ui.parts.text import markdown


def page(dataset: Dataset) -> None:
    """Draw the tab."""
    opened = opening.of(dataset.digest)
    if opened is not None:
        dataset = _read_otherwise(opened) or dataset
    if opened is not None and opened.digest is None:
        return
    with st.container(key="beside"):
        look, before = st.columns([1.5, 1], gap="large")
    with look:
        overview.overview(dataset)
    if opened is None or opened.digest == dataset.digest:
        with before:
            st.subheader("Before the fit", anchor=False)
            preprocessing(dataset)


def _read_otherwise(opened: opening.Opened) -> Dataset | None:
    """Draw how the files are read; return what they are when read so."""
    names = [name for name, _ in opened.arrival.files]
    st.subheader(names[0] if len(names) == 1 else counted(len(names), "file"), anchor=False)
    options = form_of(
        opened.kind, opened.key, lambda chosen: opened.read(chosen).finding, opened.options
    )
    found = opened.read(options)
    if found.dataset is None:
        st.error(markdown(found.sentence))
        return None
    if found.dataset.digest != opened.digest:
        label = f"Explore these {counted(found.dataset.n_rows, 'row')}"
        if st.button(label, type="primary", key="upload_use"):
            opened.options = options
            opening.use(opened, found.dataset)
    return found.dataset
