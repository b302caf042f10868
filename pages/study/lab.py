"""Synthetic lab: data of the paper's five designs, and the experiments made with them."""

import streamlit as st

from appca.ui import controls, lab_page, lab_results

controls.heading("Synthetic lab")

st.subheader("Draw data", anchor=False)
design, choices = lab_page.choices()
truth = lab_page.draw(design, choices)
if truth is not None:
    lab_page.picture(design, truth)
    lab_page.opening(design, choices)

st.subheader("The paper's experiments", anchor=False)
study, size = lab_results.which()
stored = lab_results.stored(study, size)
if stored is None:
    lab_results.wait_or_offer(study, size)
else:
    lab_results.result(study, stored)
