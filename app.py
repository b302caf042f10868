"""The frame around every page: settings of the window, navigation, and the sidebar."""

import streamlit as st

from appca.ui.explorer import serving
from appca.ui.frame import frame, origins
from appca.ui.session import services

FIRST = "explore/subspaces"
PAGES = {
    "Data": [
        ("data/data", "Data", "database"),
        ("explore/fit", "Fit", "tune"),
        ("data/runs", "Runs", "history"),
    ],
    "Explore": [
        ("explore/explore", "Explore", "explore"),
        (FIRST, "Subspaces", "scatter_plot"),
        ("components/components", "Components", "tonality"),
        ("explore/point", "Point", "my_location"),
        ("explore/umap", "UMAP", "bubble_chart"),
        ("groups/groups", "Groups", "join"),
    ],
    "Judge": [
        ("check/choose", "Choose K and L", "grid_on"),
        ("check/compare", "Compare", "compare"),
        ("check/diagnostics", "Diagnostics", "monitoring"),
    ],
    "Studies": [
        ("paper/paper", "Paper", "article"),
        ("paper/whitening", "Whitening", "blur_on"),
        ("paper/lab", "Synthetic lab", "science"),
        ("paper/brain", "Brain", "neurology"),
    ],
    "Share": [("export/export", "Export", "download"), ("data/new_data", "New data", "add_chart")],
}

if __name__ == "__main__":  # for every visitor
    st.set_page_config(page_title="appca", page_icon=frame.icon(), layout="wide")
    sections = {
        section: [
            st.Page(
                f"pages/{path}.py", title=title, icon=f":material/{icon}:", default=path == FIRST
            )
            for path, title, icon in pages
        ]
        for section, pages in PAGES.items()
    }
    page = st.navigation(sections, expanded=True)
    frame.around_page(page.run)
    frame.sidebar()
else:  # once, imported by `streamlit run` before it serves
    origins.ask_nobody()
    app = st.App(__file__, routes=serving.routes(), lifespan=services.until_closed)
