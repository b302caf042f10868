"""Controls that several pages have: one of a few choices, page numbers, and a way on."""

from collections.abc import Mapping
from typing import Any, TypeVar

import streamlit as st

V = TypeVar("V")


def one_of(
    label: str,
    names: Mapping[V, str],
    key: str,
    default: V | None = None,
    help_text: str | None = None,
    **more: Any,
) -> V:
    """Draw choices, by their names, as buttons of which one is always pressed; return that one."""
    chosen = st.segmented_control(
        label,
        list(names),
        default=next(iter(names)) if default is None else default,
        format_func=lambda value: names[value],
        key=key,
        required=True,
        persist_state="session",
        help=help_text,
        **more,
    )
    return next(iter(names)) if chosen is None else chosen


def first_of_page(total: int, size: int, key: str) -> int:
    """Draw page numbers where there is more than one page; return the first item of the page."""
    pages = -(-total // size)
    if pages < 2:
        return 0
    width = 120 + 48 * min(pages, 7)
    return (st.pagination(pages, key=key, persist_state="session", width=width) - 1) * size


def onward(page: str, label: str, icon: str = ":material/arrow_forward:") -> None:
    """Draw a link to another page."""
    st.page_link(f"pages/{page}.py", label=label, icon=icon, width="content")


def tabs(names: Mapping[str, str], *, key: str = "tab") -> str:
    """Draw the tabs of a page and return the key of the chosen one; only that is to be drawn.

    The chosen one stands in the address as ``tab=``.
    """
    asked = st.query_params.get(key)
    if asked in names and st.session_state.get(f"{key}-asked") != asked:
        st.session_state[key] = asked
    chosen = st.segmented_control(
        "View", list(names), format_func=lambda one: names[one], key=key,
        default=None if key in st.session_state else next(iter(names)),
        required=True, label_visibility="collapsed",
    )
    st.session_state[f"{key}-asked"] = chosen
    st.query_params[key] = chosen
    return chosen
