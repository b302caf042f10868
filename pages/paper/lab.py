"""Synthetic lab: data of the paper's five designs, and the experiments made with them."""

import streamlit as st

from appca.ui.paper import lab, lab_results
from appca.ui.parts import controls

controls.heading("Synthetic lab")
st.subheader("Draw data", anchor=False)
lab.body()
st.subheader("The paper's experiments", anchor=False)
lab_results.body()
