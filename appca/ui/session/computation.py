"""What pages compute: at once and kept in memory, or as a job that is started and waited for."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from appca.jobs.folder import ENDED
from appca.ui.parts import progress
from appca.ui.session import services, watching

POLL_SECONDS = 1.0


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


def follow_filling(key: str, cancel: str, caption: str, draw: Callable[[], None]) -> bool:
    """Draw the job as `progress.follow` does, with what it has found so far below it."""
    job = watching.running(key)
    if job is not None:
        _filling(job.id, cancel, caption, draw)
    return job is not None


@st.fragment(run_every=POLL_SECONDS)
def _filling(job_id: str, cancel: str, caption: str, draw: Callable[[], None]) -> None:
    job = services.jobs().status(job_id)
    if job is None or job.state in ENDED or not watching.waits_for(job_id):
        st.rerun()
    st.progress(min(max(job.fraction, 0.0), 1.0), text=progress.line(job))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Cancel", key=cancel, on_click=watching.cancel, args=[job.id])
        st.caption(caption)
    draw()
