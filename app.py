"""The frame around every page: settings of the window, and navigation."""

import streamlit as st

from appca.ui.server import inside, routes, token, warm_up

PAGES = {  # the first one opens at the bare address
    "explore": ("Explore", "explore"),
    "data": ("Data", "database"),
    "components": ("Components", "tonality"),
    "groups": ("Groups", "join"),
    "check": ("Check", "monitoring"),
    "paper": ("Paper", "article"),
    "export": ("Export", "download"),
}

if __name__ == "__main__":  # for every window
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
    token.check_address()
    routes.hold_home()
    routes.allow_many_files()
    app = st.App(
        __file__,
        routes=routes.routes(),
        middleware=token.middleware(),
        lifespan=warm_up.while_serving,
    )
