"""Data: choose or upload a data set, see what it is, and say what is done to it before a fit."""

import streamlit as st

from appca.ui.data import overview, session_file, sources, uploads
from appca.ui.data.preprocessing_form import preprocessing
from appca.ui.parts import controls
from appca.ui.session import state

controls.heading("Data")
with st.container(key="beside"):
    choose, look = st.columns([1, 1.5], gap="large")

with choose:
    bundled, published, own = st.tabs(["Built in", "MNIST and COIL-20", "Your files"])
    with bundled:
        sources.cards(offline=True)
    with published:
        sources.published()
    with own:
        session_file.open_box()
        uploads.uploads()

with look:
    dataset = state.current_dataset()
    overview.overview(dataset)
    st.subheader("Before the fit", anchor=False)
    preprocessing(dataset)
