"""Fit: the model's settings at the left, the fit and what came out of it at the right."""

import streamlit as st
from appca.ui.explore.settings import settings

from appca.ui.data import vae
from appca.ui.explore import masked
from appca.ui.explore.summary import next_steps, summary
from appca.ui.parts import controls, progress
from appca.ui.session import state

dataset = state.current_dataset()
controls.heading("Fit")
with st.container(key="beside"):
    left, right = st.columns([1, 1.5], gap="large")

with left:
    settings(dataset)

with right:
    shown = progress.finished()
    if shown is not None:
        summary(shown)
        masked.section(dataset, shown)
        vae.of_run(dataset, shown)
        next_steps()
