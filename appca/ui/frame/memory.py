"""A server whose memory stays level, though glibc likes to keep what it once took."""

import ctypes
from contextlib import suppress

import streamlit as st

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in glibc's malloc.h
KEPT_BYTES = 8 << 20  # free at the end of an arena before they are given back
LARGE_BYTES = 1 << 20  # arrays that get a mapping of their own, which ends with them
_TIDIED = "memory_tidied"  # in `st.session_state`


def tidy() -> None:
    """Give back what ended sessions have left, once a session.

    Every run of a page is a thread, and glibc serves the threads from up to eight arenas a core. It
    raises both limits, to 32 and 64 MB, as soon as a large array is freed; then every arena keeps
    the space of the largest arrays it has seen: the server grew by 10 MB a session though no object
    was kept. Limits that are set are not raised. Much lower ones would cost a fit a third more
    time. Other C libraries have no such calls.
    """
    if st.session_state.get(_TIDIED):
        return
    st.session_state[_TIDIED] = True
    with _where_glibc_is():
        system = _c_library()
        system.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        system.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
        system.malloc_trim(0)


def _where_glibc_is() -> suppress:
    return suppress(AttributeError, OSError, TypeError)  # of another C library, or of none


def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
