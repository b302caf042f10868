"""The jobs a session waits for, and what happens when one of them ends."""

from typing import Any, NamedTuple

import streamlit as st

from appca.analysis.explore.umap import EmbeddingConfig
from appca.jobs.folder import ENDED, JobStatus
from appca.runs.configuration import RunConfig
from appca.ui.session import services, state
from appca.ui.session.state import KEYS


class Watched(NamedTuple):
    """Why this session waits for a job."""

    kind: str
    key: str | None = None  # what it makes: id of a run or an embedding, name of a source
    refine: bool = False  # started by itself to replace a preview
    seen: str | None = None  # id of the configuration on screen when it was asked for


def add(job: str, why: Watched) -> None:
    """Wait for a job; one that was asked for does not become a mere refinement."""
    if job not in _watched() or _watched()[job].refine:
        _watched()[job] = why._replace(seen=state.config().id)
    st.session_state[KEYS.job] = job


def fit(config: RunConfig, *, refine: bool = False, after: float = 0.0) -> str:
    """Begin and wait for a fit, which starts so many seconds from now."""
    spec = {"config": config.to_dict(), "name": None}
    job = services.jobs().submit("fit", spec, key=config.id, after=after)
    add(job, Watched("fit", config.id, refine=refine))
    return job


def adopt(run_id: str | None) -> None:
    """Wait for the job that the address names; after a reload the session knows no more of it.

    A job that is still running brings its settings back; a fit only if it was on screen (`run_id`).
    """
    job = st.session_state.get(KEYS.job) or ""
    try:
        _adopt(job, services.jobs().status(job) if job else None, run_id)
    except (ValueError, KeyError, TypeError, AttributeError):  # its file has been tampered with
        st.session_state[KEYS.job] = None


def _adopt(job: str, status: JobStatus | None, run_id: str | None) -> None:
    if status is None:
        st.session_state[KEYS.job] = None
    elif status.kind == "fit":
        config = RunConfig.from_record(status.spec["config"])
        _watched()[job] = Watched("fit", config.id)
        if status.state not in ENDED and run_id in (None, config.id):
            state.open_config(config)
    elif status.kind == "umap":
        _watched()[job] = Watched("umap", EmbeddingConfig.from_dict(status.spec).id)
        st.session_state[KEYS.umap] = status.spec
    else:
        _watched()[job] = Watched(status.kind, status.spec.get("key"), seen=state.config().id)


def running(key: str) -> JobStatus | None:
    """Return the job that makes this, if this session waits for it and it is not over."""
    for job, why in _watched().items():
        if why.key == key:
            status = services.jobs().status(job)
            if status is not None and status.state not in ENDED:
                return status
    return None


def any_ended() -> bool:
    """Whether a job this session waits for is over and has not been acted on."""
    found = (services.jobs().status(job) for job in _watched())
    return any(status is None or status.state in ENDED for status in found)


def settle() -> None:
    """Act on the jobs that have ended: show the result, or say in a sentence why there is none."""
    for job, why in list(_watched().items()):
        status = services.jobs().status(job)
        if status is not None and status.state not in ENDED:
            continue
        del _watched()[job]
        if st.session_state.get(KEYS.job) == job:
            st.session_state[KEYS.job] = None
        if status is not None:
            _ended(status, why)


def cancel(job: str) -> None:
    """Stop a job without a result."""
    why = _watched().get(job)
    if why is not None and why.key:
        decline(why.key)
    services.jobs().cancel(job)


def stop_other_refinements(run_id: str) -> None:
    """Cancel the refinements of previews that are no longer on screen."""
    for job, why in list(_watched().items()):
        if why.refine and why.key != run_id:
            del _watched()[job]
            services.jobs().cancel(job)


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


def _ended(status: JobStatus, why: Watched) -> None:
    if status.state == "done":
        _done(status, why)
    elif status.state == "failed":
        state.notify("error", status.message)
    if status.state != "done" and why.key:
        decline(why.key)


def _done(status: JobStatus, why: Watched) -> None:
    if status.kind == "download":
        _arrived(status.result["dataset"], status.spec.get("then"), why)
    elif status.kind == "fit" and why.kind == "fit":
        run = services.runs().get(status.result["run"])
        moved_on = why.key != state.config().id
        if run is not None and not moved_on:
            state.open_config(run.config)
        elif run is not None and not why.refine:
            state.notify("info", f"The fit “{run.name}” is ready; open it on the page Runs.")


def _arrived(digest: str, then: dict[str, Any] | None, why: Watched) -> None:
    """Open a data set, and fit what was asked for with it; only say so if one looks elsewhere."""
    stays = why.seen in (None, state.config().id)
    if stays:
        state.open_dataset(digest)
    else:
        name = services.dataset(digest).name
        state.notify("info", f"The data set “{name}” is ready; open it on the page Data.")
    if then:  # see `appca.ui.components.sharing.paper`
        config = RunConfig(digest, **then)
        if stays:
            state.open_config(config)
        if services.runs().get(config.id) is None:
            fit(config)
