"""The frame around every page: settings of the window, navigation, and the sidebar."""

import streamlit as st

from appca.ui.frame import frame

st.set_page_config(page_title="appca", page_icon=frame.icon(), layout="wide")

page = st.navigation(
    {
        "Data": [
            st.Page("pages/data/data.py", title="Data", icon=":material/database:"),
            st.Page("pages/explore/fit.py", title="Fit", icon=":material/tune:"),
            st.Page("pages/data/runs.py", title="Runs", icon=":material/history:"),
        ],
        "Explore": [
            st.Page(
                "pages/explore/subspaces.py",
                title="Subspaces",
                icon=":material/scatter_plot:",
                default=True,
            ),
            st.Page(
                "pages/components/components.py", title="Components", icon=":material/tonality:"
            ),
            st.Page("pages/explore/point.py", title="Point", icon=":material/my_location:"),
            st.Page("pages/explore/umap.py", title="UMAP", icon=":material/bubble_chart:"),
            st.Page("pages/groups/group.py", title="Selection", icon=":material/compare_arrows:"),
            st.Page("pages/groups/similar.py", title="Similar objects", icon=":material/join:"),
            st.Page("pages/components/sharing.py", title="Sharing", icon=":material/hub:"),
        ],
        "Judge": [
            st.Page("pages/check/choose.py", title="Choose K and L", icon=":material/grid_on:"),
            st.Page("pages/check/compare.py", title="Compare", icon=":material/compare:"),
            st.Page(
                "pages/check/diagnostics.py", title="Diagnostics", icon=":material/monitoring:"
            ),
        ],
        "Studies": [
            st.Page("pages/paper/paper.py", title="Paper", icon=":material/article:"),
            st.Page("pages/paper/whitening.py", title="Whitening", icon=":material/blur_on:"),
            st.Page("pages/paper/lab.py", title="Synthetic lab", icon=":material/science:"),
            st.Page("pages/paper/brain.py", title="Brain", icon=":material/neurology:"),
        ],
        "Share": [
            st.Page("pages/export/export.py", title="Export", icon=":material/download:"),
            st.Page("pages/data/new_data.py", title="New data", icon=":material/add_chart:"),
        ],
    },
    expanded=True,
)

frame.around_page(page.run)
frame.sidebar()
