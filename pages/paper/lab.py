"""Synthetic lab: data of the paper's five designs, and the experiments made with them."""

import streamlit as st

from appca.ui.paper import lab, lab_results
from appca.ui.parts import controls

controls.heading("Synthetic lab")

st.subheader("Draw data", anchor=False)
design, choices = lab.choices()
truth = lab.draw(design, choices)
if truth is not None:
    lab.picture(design, truth)
    lab.opening(design, choices)

st.subheader("The paper's experiments", anchor=False)
study, size = lab_results.which()
stored = lab_results.stored(study, size)
if stored is None:
    lab_results.wait_or_offer(study, size)
else:
    lab_results.result(study, stored)
