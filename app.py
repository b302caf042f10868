"""The frame around every page: settings of the window, and navigation."""

import streamlit as st

from appca.ui.data.files import dropping
from appca.ui.explorer import serving
from appca.ui.frame import frame, old_addresses, token, warm_up

PAGES = {  # the first one opens at the bare address
    "explore": ("Explore", "explore"),
    "data": ("Data", "database"),
    "components": ("Components", "tonality"),
    "groups": ("Groups", "join"),
    "check": ("Check", "monitoring"),
    "paper": ("Paper", "article"),
    "export": ("Export", "download"),
}

if __name__ == "__main__":  # for every visitor
    st.set_page_config(page_title="appca", page_icon=frame.icon(), layout="wide")
    page = st.navigation(
        [
            st.Page(
                f"pages/{name}/{name}.py",
                title=title,
                icon=f":material/{icon}:",
                default=name == "explore",
            )
            for name, (title, icon) in PAGES.items()
        ],
        expanded=True,
    )
    frame.around_page(page.run)
else:  # once, imported by `streamlit run` before it serves
    token.ask_nobody()
    drop = dropping.drops().routes(serving.base())
    app = st.App(
        __file__,
        routes=[*serving.routes(), *drop, *old_addresses.routes()],
        middleware=token.middleware(),
        lifespan=warm_up.while_serving,
    )
