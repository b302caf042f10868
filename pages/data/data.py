"""Data: open or upload a data set, recent work, and new rows for the present fit."""

import streamlit as st

from appca.ui.data import (
    new_data,
    new_data_intake,
    new_data_pictures,
    overview,
    runs_list,
    session_file,
    sources,
    uploads,
)
from appca.ui.data.preprocessing_form import preprocessing
from appca.ui.parts import controls, progress
from appca.ui.parts.widgets import tabs
from appca.ui.session import state

controls.heading("Data")
tab = tabs({"open": "Open", "recent": "Recent work", "add": "Add rows"})

if tab == "open":
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
elif tab == "recent":
    kept = runs_list.all_runs()
    if kept:
        runs_list.listing(kept)
        runs_list.comparison(kept)
    else:
        runs_list.nothing_yet()
else:
    dataset = state.current_dataset()
    shown = progress.finished()
    new = None if shown is None else new_data_intake.choose(dataset, shown)
    seen = None if shown is None or new is None else new_data.described(shown, new)
    if shown is not None and seen is not None:
        said = new_data.verdict_of(shown, seen)
        rows = new_data_pictures.draw(dataset, shown, seen, said)
        new_data.listed(dataset, shown, seen, said, rows)
        new_data.files(shown, seen, said)
