"""Fit: the model's settings at the left, the fit and what came out of it at the right."""

import streamlit as st

from appca.ui import controls, fitting, masked_section, progress, state, vae_view
from appca.ui.settings import settings
from appca.ui.summary import next_steps, summary

dataset = state.current_dataset()
controls.heading("Fit")
with st.container(key="beside"):
    left, right = st.columns([1, 1.5], gap="large")

with left:
    settings(dataset)

with right:
    shown = fitting.settled()
    if shown is not None:
        summary(shown)
        masked_section.section(dataset, shown)
        vae_view.of_run(dataset, shown)
        next_steps()
    elif not progress.waiting():
        progress.offer()
