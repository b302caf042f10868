"""Controls of several pages: tabs, one of a few choices, page numbers, a way on, and scripts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from appca.canvas.bundle import closed_bundle
from appca.ui.session.callbacks import guarded
from appca.ui.session.state import KEYS

V = TypeVar("V")
MOST = 2**53 - 1  # that a browser can count to


def tabs(names: Mapping[str, str]) -> str:
    """Draw the tabs of a page, key to name; return the key of the one that is to be drawn.

    The address names it as `tab`, and wins; a page that is left keeps its own.
    """
    key = f"tab-{'-'.join(names)}"
    asked, kept = st.query_params.get("tab"), st.session_state.get(key)
    now = next(tab for tab in (asked, kept, *names) if tab is not None and tab in names)
    if kept != now:
        st.session_state[key] = now
    one_of(
        "Part of this page",
        names,
        key,
        label_visibility="collapsed",
        on_change=_turned,
        args=[key],
    )
    st.session_state[KEYS.tab] = now
    return now


@guarded
def _turned(key: str) -> None:
    st.query_params["tab"] = st.session_state[key]


def one_of(
    label: str,
    names: Mapping[V, str],
    key: str,
    default: V | None = None,
    help_text: str | None = None,
    **more: Any,
) -> V:
    """Draw choices, by their names, as buttons of which one is always pressed; return that one."""
    first = next(iter(names)) if default is None else default
    if st.session_state.get(key) not in names:  # Streamlit warns of a default beside a state
        st.session_state[key] = first
    chosen = st.segmented_control(
        label,
        list(names),
        format_func=lambda value: names[value],
        key=key,
        required=True,
        persist_state="session",
        help=help_text,
        **more,
    )
    return first if chosen is None else chosen


def first_of_page(total: int, size: int, key: str) -> int:
    """Draw page numbers where there is more than one page; return the first item of the page."""
    pages = -(-total // size)
    if pages < 2:
        return 0
    width = 120 + 48 * min(pages, 7)
    return (st.pagination(pages, key=key, persist_state="session", width=width) - 1) * size


def onward(place: str, label: str, icon: str = ":material/arrow_forward:") -> None:
    """Draw a link to another page, or as ``page/tab`` to one of its tabs."""
    page, _, tab = place.partition("/")
    query = {"tab": tab} if tab else None
    file = f"pages/{page}/{page}.py"
    st.page_link(file, label=label, icon=icon, width="content", query_params=query)


def scripted(file: str, html: str | None = None) -> Any:
    """Return the part of a page that the script beside a Python file makes, with its style."""
    script, style = (Path(file).with_suffix(kind) for kind in (".js", ".css"))
    return st.components.v2.component(
        f"appca_{script.stem}",
        html=html,
        js=closed_bundle(script),
        css=style.read_text(encoding="utf-8") if style.is_file() else None,
        isolate_styles=False,
    )


def around(limits: tuple[float, float], value: float) -> tuple[float, float]:
    """Return limits of a widget with the value of a run inside, which may be the command line's.

    Streamlit shows its least number in place of one outside, and the next change would fit with it.
    """
    most = type(value)(MOST)  # Streamlit refuses whole numbers beside others
    return min(limits[0], value), max(limits[1], min(value, most))
