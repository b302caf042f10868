"""Which other sites may open a connection is decided without asking anybody."""

import streamlit as st
from streamlit import net_util

LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def ask_nobody() -> None:
    """Tell Streamlit this machine's address, before it asks others for it.

    When a page of another site knocks, Streamlit 1.67 compares its name with the address that a
    machine on the Internet sees of this one, and every visitor waits until that has answered. Here
    such a name counts only as one of `server.corsAllowedOrigins`.
    """
    if st.get_option("server.address") in LOOPBACK:
        net_util._internal_ip = "127.0.0.1"
    net_util._external_ip = net_util.get_internal_ip()  # sends nothing: it looks at a route
