"""Where the server lives, as it was told, and how many files it may open."""

from contextlib import suppress

import streamlit as st

MOST_FILES = 1 << 16  # open at once: each visitor takes several


def base() -> str:
    """Return the path below which all of its addresses are."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def allow_many_files() -> None:
    """Raise the limit of open files as far as the system lets this process."""
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
