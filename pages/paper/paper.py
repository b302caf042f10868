"""Paper: its figures and tables computed anew, whitening, the synthetic lab, and a recording."""

import streamlit as st

from appca.ui.paper import brain, lab, lab_results, paper, whitening
from appca.ui.parts import controls
from appca.ui.parts.widgets import tabs
from appca.ui.session import state

controls.heading("Paper")
tab = tabs(
    {"results": "Results", "whitening": "Whitening", "lab": "Synthetic lab", "brain": "Brain"}
)

if tab == "results":
    paper.body()
elif tab == "whitening":
    whitening.body(state.current_dataset())
elif tab == "lab":
    st.subheader("Draw data", anchor=False)
    lab.body()
    st.subheader("The paper's experiments", anchor=False)
    lab_results.body()
else:
    brain.body()
