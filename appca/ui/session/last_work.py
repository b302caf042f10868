"""What this browser looked at last, which the bare address opens again.

The page keeps it as a cookie (see `frame/frame.js`): the server learns it when a window opens, and
another person's browser does not. What it names is looked up like an address, and may be gone.
"""

from urllib.parse import parse_qsl, unquote

import streamlit as st

COOKIE = "appca_last"
NAMES = {"data", "run", "k", "l"}
LONGEST = 400  # characters; what is longer was not written here


def address() -> dict[str, str]:
    """Return the query parameters of the last work; empty where there is none."""
    text = unquote(st.context.cookies.get(COOKIE, "")[:LONGEST])
    return {name: value for name, value in parse_qsl(text) if name in NAMES}
