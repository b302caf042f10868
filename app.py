"""The frame around every page: settings of the window, and navigation."""

import streamlit as st

from appca.ui import server, streamlit_internals, warm_up

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
    from appca.ui import frame  # loads most of appca: the server answers before that

    st.set_page_config(page_title="appca", page_icon=frame.ICON, layout="wide")
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
elif __name__ != "__mp_main__":  # once, imported by `streamlit run` before it serves
    streamlit_internals.prepare()
    server.check_and_hold()
    server.allow_many_files()
    app = st.App(
        __file__,
        routes=server.routes(),
        middleware=server.middleware(),
        lifespan=warm_up.while_serving,
    )
