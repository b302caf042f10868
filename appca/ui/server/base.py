"""Where the server lives, as it was told."""

import streamlit as st


def base() -> str:
    """Return the path below which all of its addresses are."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""
