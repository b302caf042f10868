"""What pages compute as a job that is started and waited for."""

from typing import Any

import streamlit as st

from appca.ui.session import watching


def start(kind: str, key: str, spec: dict[str, Any]) -> None:
    """Start the job that makes `key`, also when that was cancelled before, and wait for it."""
    watching.allow(key)
    watching.start(kind, spec, watching.Watched(kind, key))


def button(
    label: str, widget: str, kind: str, key: str, spec: dict[str, Any], *, primary: bool = True
) -> None:
    """Draw the button with the key `widget` that starts the job; see `start`."""
    # Not a callback: that would start what the numbers were before one was typed just now.
    if st.button(label, type="primary" if primary else "secondary", key=widget):
        start(kind, key, spec)
        st.rerun()
