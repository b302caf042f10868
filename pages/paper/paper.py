"""Paper: reproduced results, and three experiments to vary."""

from functools import partial

import streamlit as st

from appca.ui import controls, paper, state

EXPERIMENTS = {
    "whitening": ("Whitening", partial(paper.whitening, state.current_dataset())),
    "lab": ("Synthetic laboratory", paper.laboratory),
    "brain": ("Brain", paper.brain),
}

controls.heading("Paper")
paper.results()
st.subheader("Experiments", anchor=False)
for key, (title, draw) in EXPERIMENTS.items():
    if st.toggle(title, key=f"experiment_{key}", persist_state="session"):
        draw()
