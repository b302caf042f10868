"""Buttons side by side, of which one is pressed at all times."""

from collections.abc import Mapping
from typing import TypeVar

import streamlit as st

_Choice = TypeVar("_Choice")


def buttons(
    label: str,
    names: Mapping[_Choice, str],
    *,
    key: str,
    first: _Choice | None = None,
    help: str | None = None,
    collapsed: bool = False,
) -> _Choice:
    """Draw what `names` call the choices; `first`, or the first of them, is pressed to begin."""
    return st.segmented_control(
        label,
        names,
        default=next(iter(names)) if first is None else first,
        required=True,
        format_func=names.__getitem__,
        key=key,
        persist_state="session",
        help=help,
        label_visibility="collapsed" if collapsed else "visible",
    )
