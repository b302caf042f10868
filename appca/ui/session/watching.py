"""The jobs of the server, those this window waits for, and what happens when one ends."""

import contextlib
from typing import Any, NamedTuple

import streamlit as st

from appca.analysis.explore.umap import EmbeddingConfig
from appca.jobs.queue import ENDED, JobStatus
from appca.runs.configuration import RunConfig
from appca.ui.session import services, state
from appca.ui.session.state import KEYS

_NAMED = 8  # jobs in the address


class Watched(NamedTuple):
    """Why this window waits for a job."""

    kind: str
    key: str | None = None  # what it makes: id of a run or an embedding, name of a source
    refine: bool = False  # started by itself to replace a preview
    seen: str | None = None  # id of the configuration on screen when it was asked for


def start(
    kind: str, spec: dict[str, Any], why: Watched, *, key: str | None = None, after: float = 0.0
) -> str:
    """Begin a job, `after` so many seconds, and wait for it; one that makes the same is joined."""
    job = services.jobs().submit(kind, spec, key or why.key, after, asked=not why.refine)
    if job not in _watched() or _watched()[job].refine:
        _watch(job, why._replace(seen=state.config().id))
    return job


def adopt(run_id: str | None) -> None:
    """Wait for the jobs that the address names; after a reload the session knows no more of them.

    A job that is still running brings its settings back; a fit only if it was on screen (`run_id`).
    """
    named, st.session_state[KEYS.job] = st.session_state.get(KEYS.job) or "", None
    for job in named.split(",")[-_NAMED:]:
        # A file that has been tampered with names nothing to wait for.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            status = services.jobs().status(job)
            if status is not None:
                _adopt(job, status, run_id)


def _adopt(job: str, status: JobStatus, run_id: str | None) -> None:
    if status.kind == "fit":
        config = RunConfig.from_record(status.spec["config"])
        why = Watched("fit", config.id)
        if status.state not in ENDED and run_id in (None, config.id):
            state.open_config(config)
    elif status.kind == "umap":
        why = Watched("umap", EmbeddingConfig.from_dict(status.spec).id)
        st.session_state[KEYS.umap] = status.spec
    else:
        why = Watched(status.kind, status.spec.get("key"), seen=state.config().id)
    _watch(job, why._replace(refine=not status.asked))


def running(key: str) -> JobStatus | None:
    """Return the job that makes this, whichever window began it; this one waits for it, too."""
    jobs = services.jobs().active()
    job = next((job for job in jobs if key in (job.key, job.spec.get("key"))), None)
    if job is not None and job.id not in _watched():
        _watch(job.id, Watched(job.kind, key, refine=not job.asked, seen=""))
    return job


def any_ended() -> bool:
    """Whether a job this window waits for is over and has not been acted on."""
    states = (services.jobs().status(job) for job in _watched())
    return any(status is None or status.state in ENDED for status in states)


def settle() -> None:
    """Act on the jobs that have ended: show the result, or say in a sentence why there is none."""
    for job, why in list(_watched().items()):
        status = services.jobs().status(job)
        if status is not None and status.state not in ENDED:
            continue
        _forget(job)
        if status is not None:
            _ended(status, why)


def cancel(job: str) -> None:
    """End a job, whichever window began it, and do not begin it again unasked."""
    status = services.jobs().status(job)
    if status is not None and services.jobs().cancel(job):
        decline(status.key)
    _forget(job)


def keep(job: str) -> None:
    """Stop a fit and keep what it has."""
    services.jobs().keep(job)


def stop_other_refinements(run_id: str) -> None:
    """Give up the refinements of previews that are no longer on screen."""
    for job, why in list(_watched().items()):
        if why.refine and why.key != run_id:
            services.jobs().leave(job)
            _forget(job)


def decline(key: str) -> None:
    """Do not make this again without being asked."""
    st.session_state.setdefault(KEYS.declined, set()).add(key)


def declined(key: str) -> bool:
    """Whether the job that makes this was cancelled or failed."""
    return key in st.session_state.get(KEYS.declined, set())


def allow(key: str) -> None:
    """Let this be made again."""
    st.session_state.get(KEYS.declined, set()).discard(key)


def _watched() -> dict[str, Watched]:
    watched: dict[str, Watched] = st.session_state.setdefault(KEYS.watched, {})
    return watched


def _watch(job: str, why: Watched) -> None:
    _watched()[job] = why
    _name()


def _forget(job: str) -> None:
    _watched().pop(job, None)
    _name()


def _name() -> None:
    """Name in the address what was asked for, and the newest job, so that a reload finds them."""
    *older, newest = _watched() or [""]
    named = [job for job in older if not _watched()[job].refine]
    st.session_state[KEYS.job] = ",".join([*named, newest][-_NAMED:]) or None


def _ended(status: JobStatus, why: Watched) -> None:
    if status.state == "done":
        _done(status, why)
        return
    if status.state == "failed":
        state.notify("error", status.message)
    decline(why.key or status.key)


def _done(status: JobStatus, why: Watched) -> None:
    if status.kind == "umap":
        st.session_state[KEYS.map_ready] = True
    elif status.kind == "download":
        _arrived(status.result["dataset"], why)
    elif status.kind == "fit" and why.kind == "fit":
        run = services.runs().get(status.result["run"])
        moved_on = why.key != state.config().id
        if run is not None and not moved_on:
            state.open_config(run.config)
        elif run is not None and not why.refine:
            state.notify(
                "info", f"The fit “{run.name}” is ready; open it under Recent on the page Data."
            )


def _arrived(digest: str, why: Watched) -> None:
    """Open a data set; only say so if one looks elsewhere."""
    if why.seen in (None, state.config().id):
        state.open_dataset(digest)
    else:
        name = services.dataset(digest).name
        state.notify("info", f"The data set “{name}” is ready; open it on the page Data.")
