"""Check: choose K and L, judge the fit, and compare models."""

import streamlit as st

from appca.ui import choose, compare, controls, diagnostics, fits, kit, state
from appca.ui.kit import tabs

dataset = state.current_dataset()
controls.heading("Check")
tab = tabs({"choose": "Choose K and L", "trust": "Can I trust it?", "advanced": "Advanced"})
if tab == "choose":
    if choose.is_offered():
        choose.choose_tab(dataset)
elif tab == "trust":
    if (shown := kit.shown(fits.finished)) is not None:
        diagnostics.body(dataset, shown)
        st.subheader("Compared with PCA and other fits", anchor=False)
        compare.compare_tab(dataset, shown)
        st.subheader("Does the picture keep neighbours?", anchor=False)
        compare.map_quality(dataset, shown)
else:
    choose.which_model_tab(dataset)
    hidden = st.toggle("Predict hidden cells", key="check_hidden", persist_state="session")
    if hidden and (shown := kit.shown(fits.finished)) is not None:
        choose.hidden_cells(dataset, shown)
