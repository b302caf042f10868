"""Work on its way: what starts it, how far it is, a fit's curve, and the two ways to stop it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from appca.jobs.queue import ENDED, JobStatus
from appca.plots.curves import likelihood
from appca.ui.frame import status
from appca.ui.parts.chart import chart
from appca.ui.parts.text import markdown
from appca.ui.session import fitting, services, state, watching
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.words.numbers import about
from appca.words.wording import capital

POLL_SECONDS = 0.5


def finished() -> Shown | None:
    """Return the fit of the present settings; without one draw how far it is, or offer it."""
    return _or_wait(fitting.finished)


def shown() -> Shown | None:
    """Return what there is to draw, be it a preview; without it do as `finished` does."""
    return _or_wait(fitting.shown)


def _or_wait(find: Callable[[], Shown | None]) -> Shown | None:
    with status.fitting_now():
        result = find()
    if result is None and not waiting():
        takes = about(fitting.seconds())
        st.markdown(f"This has not been fitted yet. The fit takes {takes}.")
        st.button("Start the fit", type="primary", key="start_fit", on_click=start)
    return result


def waiting() -> bool:
    """Draw the running fit of the present settings; False when there is none."""
    return follow(state.config().id)


def follow(
    key: str,
    cancel: str = "job_cancel",
    caption: str = "",
    arrived: Callable[[], None] | None = None,
) -> bool:
    """Draw the running job that makes this, `cancel` its button; False when there is none.

    `arrived` draws below it what there is already, and `caption` stands beside the button.
    """
    job = watching.running(key)
    if job is not None:
        _follow(job.id, cancel, caption, arrived)
    return job is not None


def begin(kind: str, key: str, spec: dict[str, Any]) -> None:
    """Start the job that makes `key`, also when that was cancelled before, and wait for it."""
    watching.allow(key)
    watching.start(kind, spec, watching.Watched(kind, key))


def button(
    label: str, widget: str, kind: str, key: str, spec: dict[str, Any], *, primary: bool = True
) -> None:
    """Draw the button with the key `widget` that starts the job; see `begin`."""
    # Not a callback: that would start what the numbers were before one was typed just now.
    if st.button(label, type="primary" if primary else "secondary", key=widget):
        begin(kind, key, spec)
        st.rerun()


@guarded
def start() -> None:
    """Fit the present settings, also when that was cancelled before."""
    watching.allow(state.config().id)
    fitting.start()


@st.fragment(run_every=POLL_SECONDS)
def _follow(job_id: str, cancel: str, caption: str, arrived: Callable[[], None] | None) -> None:
    job = services.jobs().status(job_id)
    if job is None or job.state in ENDED:
        st.rerun()
    st.progress(min(max(job.fraction, 0.0), 1.0), text=line(job))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Cancel", key=cancel, on_click=guarded(watching.cancel), args=[job.id])
        if job.kind == "fit":
            st.button(
                "Stop here and keep",
                key="fit_keep",
                on_click=guarded(watching.keep),
                args=[job.id],
                disabled=not job.curve,
                help="End the fit now and keep what it has; it is marked as stopped by hand.",
            )
        if caption:
            st.caption(caption)
    if arrived is not None:
        arrived()
    if job.curve:
        curve = np.array(job.curve, dtype=float)
        n_rows = services.dataset(state.config().dataset).n_rows
        sampled = job.kind == "fit" and state.config().is_sampled
        chart(likelihood(curve[:, 0], curve[:, 1], n_rows, sampled), "fit_curve")


def line(job: JobStatus) -> str:
    """Say how far a job is and how long it will take."""
    if job.state == "queued":
        return capital(status.waiting())
    parts = [markdown(job.stage) or "starting"]
    if job.iteration:
        sweeping = job.stage in ("burn-in", "draws")
        parts.append(f"{'sweep' if sweeping else 'iteration'} {job.iteration:,}")
    if job.seconds_left:
        parts.append(f"{about(job.seconds_left)} left")
    return " · ".join(parts)
