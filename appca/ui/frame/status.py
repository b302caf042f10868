"""The line at the bottom of every page: how the fit went or how far work is, and what is open."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import streamlit as st

from appca.jobs.queue import JobStatus
from appca.runs.configuration import MODELS, RunConfig
from appca.ui.parts.text import nats_per_row, tag, words
from appca.ui.session import fitting, services, state, watching
from appca.ui.session.callbacks import TOLD, guarded
from appca.words.numbers import about, percent
from appca.words.wording import counted

POLL_SECONDS = 0.5
_LINE: Any = {"horizontal": True, "vertical_alignment": "center", "gap": "small"}
NOTE = "status_note"  # in `st.session_state`: the place where a page adds something to the line
SHOWN = "status_shown"  # there, too: the fit on screen where it is not that of the settings
NATS = "Nats per row: the mean log-likelihood of a row under the fit; higher is better."
FURTHER = 10  # times as many iterations, for a fit that has not converged
KINDS = {  # of jobs: what is going on
    "fit": "Fitting",
    "umap": "Mapping rows",
    "download": "Loading data",
    "grid": "Trying each K and L",
    "stability": "Fitting again",
    "models": "Comparing models",
    "quality": "Comparing methods",
    "study": "Computing the experiment",
    "project": "Placing new rows",
    "masked": "Predicting hidden cells",
}


@contextmanager
def fitting_now() -> Iterator[None]:
    """Say that the present settings are being fitted, while the page waits for that."""
    now = state.config()
    if services.runs().get(now.id) is not None or watching.running(now.id) is not None:
        yield
        return
    place = st.session_state[NOTE].empty()
    with place.container(**_LINE, key="fitting"):
        st.html(tag("div", words(f"Fitting {', '.join(now.sizes)} …"), role="status"))
        st.button("Stop", "stop_fit", type="tertiary", on_click=guarded(fitting.stop))
    try:
        yield
    finally:
        place.empty()


def draw(place: st.delta_generator.DeltaGenerator) -> None:
    """Fill the line at its place."""
    try:
        shown, running = st.session_state.pop(SHOWN, None), services.jobs().active()
        with place:
            if running:
                _work([job.id for job in running])
            elif state.is_ready():
                _outcome(shown or fitting.stored())
            if state.is_ready():
                st.html(_open())
        ended = watching.any_ended()
    except TOLD:
        return  # the page has met it, too, and said so
    if ended:
        st.rerun()  # a job ended while the page was drawn without its result


def outcome(shown: fitting.Shown) -> str:
    """Say how a fit ended and how well it describes the data."""
    imported = " · imported" if shown.config.imported is not None else ""
    return f"{ending(shown)} · {nats_per_row(shown.info)}{imported}"


def ending(shown: fitting.Shown) -> str:
    """Say how a fit ended."""
    info, config = shown.info, shown.config
    n = counted(info.n_iter, "sweep" if config.is_sampled else "iteration")
    if config.stopped_at is not None:
        return f"Stopped by hand after {n}"
    if still_improves(shown):
        return f"Still improving after {n}"
    if info.stop_reason == "closed form":
        return "Solved directly"
    return n if config.is_sampled else f"Converged after {n}"


def still_improves(shown: fitting.Shown) -> bool:
    """Whether a fit ended because it had no more iterations."""
    return bool(re.match("reached max_iter", shown.info.stop_reason)) and (
        "max_iter" in shown.config.parameters
    )


def _outcome(shown: fitting.Shown | None) -> None:
    said = "Not fitted yet" if shown is None else outcome(shown)
    improving = shown is not None and still_improves(shown)
    css = "ca-outcome ca-improving" if improving else "ca-outcome"
    st.html(tag("div", words(said), css, role="status", title=NATS))
    if improving:
        st.button("Continue", key="continue_fit", type="tertiary", on_click=_further)


@guarded
def _further() -> None:
    state.set_parameters(max_iter=FURTHER * state.config().parameters["max_iter"])


def _open() -> str:
    now, dataset = state.config(), state.current_dataset()
    parts = [
        tag("b", words(dataset.name)),
        f"{dataset.n_rows:,} rows × {dataset.n_features:,}",
        f"{words(MODELS[now.model].title)}, {_sizes(now)}",
    ]
    if dataset.missing is not None:
        parts.insert(2, counted(dataset.n_missing, "missing cell"))
    return tag("div", " · ".join(parts), "ca-side")


def _sizes(now: RunConfig) -> str:
    """Return K and L as HTML in which the browser can show the numbers under the hand."""
    return ", ".join(tag("span", words(size), f"ca-size-{size[0].lower()}") for size in now.sizes)


@st.fragment(run_every=POLL_SECONDS)
def _work(ids: list[str]) -> None:
    """Follow the running jobs; when one starts or ends the whole page must know."""
    running = services.jobs().active()
    if [job.id for job in running] != ids:
        st.rerun()
    with st.container(**_LINE, key="work"):
        for job in running:
            st.html(tag("div", words(_progress(job)), role="status"))
            key, act = f"cancel-{job.id}", guarded(watching.cancel)
            st.button("Stop", key, type="tertiary", on_click=act, args=[job.id])


def waiting() -> str:
    """Say what a job in the queue waits for."""
    running = (job for job in services.jobs().active() if job.state == "running")
    ahead = [KINDS.get(job.kind, "other work").lower() for job in running]
    return f"waits for: {ahead[0]}" if ahead else "waiting"


def _progress(job: JobStatus) -> str:
    name = KINDS.get(job.kind, job.kind)
    if job.kind == "fit":
        name += f" {', '.join(RunConfig.from_record(job.spec['config']).sizes)}"
    if job.state == "queued":
        return f"{name} · {waiting()}"
    left = f" · {about(job.seconds_left)} left" if job.seconds_left else ""
    return f"{name} … {percent(min(max(job.fraction, 0.0), 1.0))}{left}"
