"""Controls that several pages have: one of a few choices, page numbers, and a way on."""

from collections.abc import Mapping
from typing import Any, TypeVar

import streamlit as st

V = TypeVar("V")
MOST = 2**53 - 1  # that a browser can count to


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


def around(limits: tuple[float, float], value: float) -> tuple[float, float]:
    """Return limits of a widget with the value of a run inside, which may be the command line's.

    Streamlit shows its least number in place of one outside, and the next change would fit with it.
    """
    most = type(value)(MOST)  # Streamlit refuses whole numbers beside others
    return min(limits[0], value), max(limits[1], min(value, most))
