"""The frame around every page: settings of the window, and navigation."""

import streamlit as st

from appca.ui.server import (
    admission,
    base,
    inside,
    late_routes,
    old_addresses,
    token,
    warm_up,
    watch,
)

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
    from appca.ui.frame import frame  # loads most of appca: the server answers before that

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
    frame.around_page(page.run, page.url_path)
else:  # once, imported by `streamlit run` before it serves
    inside.prepare()
    base.allow_many_files()
    token.check_address()
    app = st.App(
        __file__,
        routes=[*late_routes.routes(), *old_addresses.routes(), *watch.routes()],
        middleware=[*watch.middleware(), *token.middleware(), *admission.middleware()],
        lifespan=warm_up.while_serving,
    )
