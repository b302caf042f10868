"""From a configuration to the fit on screen: stored, computed in the page, preview, or queued."""

import contextlib
import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.fitted import FittedRun
from appca.analysis.umap import EmbeddingConfig
from appca.jobs.queue import ENDED, JobStatus
from appca.runs import fit, store
from appca.runs.fit import estimate_seconds, fit_run, on_ground, preview, waits_for_compiler, width
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers, Numbering, directions, likeness, numbered
from appca.runs.run import MODELS, FitResult, RunConfig, RunInfo
from appca.storage.identity import is_id
from appca.ui import services, state
from appca.ui.state import KEYS, config, current_dataset, first_config, notify, open_config
from appca.words import InputError

MOST_NAMED = 8


class Watched(NamedTuple):
    """The reason why this window waits for a job."""

    kind: str
    key: str | None = None  # id of the run or embedding, name of the source
    refine: bool = False  # whether it was started automatically to replace a preview
    seen: str | None = None  # id of the configuration at the time of the request


def start_job(kind: str, spec: dict[str, Any], why: Watched, key: str | None = None) -> str:
    """Start a job, or join a job with the same key, and wait for it; automatic ones pause first."""
    pause = PAUSE_SECONDS + PAUSE_A_ROW * current_dataset().n_rows if why.refine else 0.0
    if not why.refine:  # a user asks for it, even if it was cancelled before
        declined().discard(why.key or "")
    job = services.jobs().submit(kind, spec, key or why.key, pause, asked=not why.refine)
    if job not in _watched() or _watched()[job].refine:
        _watch(job, why._replace(seen=state.config().id))
    return job


def adopt(run_id: str | None) -> None:
    """Wait for the address's jobs, which restore settings; a fit only if on screen (`run_id`)."""
    named, st.session_state[KEYS.awaited] = st.session_state.get(KEYS.awaited) or "", None
    for job in named.split(",")[-MOST_NAMED:]:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # forged
            status = services.jobs().status(job)
            if status is None:
                if is_id(job):
                    text = "The app was restarted. If a result is missing, compute it again."
                    state.notify("info", text)
                continue
            key: str | None = status.spec.get("key")
            seen: str | None = state.config().id
            if status.kind == "fit":
                wanted = RunConfig.from_record(status.spec["config"])
                key, seen = wanted.id, None
                if status.state not in ENDED and run_id in (None, key):
                    state.open_config(wanted)
            elif status.kind == "umap":
                key, seen = EmbeddingConfig.from_dict(status.spec).id, None
                st.session_state[KEYS.umap] = status.spec
            _watch(job, Watched(status.kind, key, refine=not status.asked, seen=seen))


def running(key: str) -> JobStatus | None:
    """Return the running job for `key`, from any window, and wait for it."""
    jobs = services.jobs().active()
    job = next((job for job in jobs if key in (job.key, job.spec.get("key"))), None)
    if job is not None and job.id not in _watched():
        _watch(job.id, Watched(job.kind, key, refine=not job.asked, seen=""))
    return job


def any_ended() -> bool:
    """Whether a job has ended that `settle` has not processed."""
    states = (services.jobs().status(job) for job in _watched())
    return any(status is None or status.state in ENDED for status in states)


def settle() -> None:
    """Show the results of ended jobs, or the reasons for their failure."""
    for job, why in list(_watched().items()):
        status = services.jobs().status(job)
        if status is not None and status.state not in ENDED:
            continue
        _watch(job, None)
        if status is None:
            continue
        if status.state != "done":
            if status.state == "failed" and (status.asked or status.kind == "fit"):
                state.notify("error", status.message)
            declined().add(why.key or status.key)
        elif status.kind == "download":
            digest = status.result["dataset"]
            if why.seen in (None, state.config().id):
                state.open_dataset(digest)
            else:
                name = services.dataset(digest).name
                state.notify("info", f"The data set “{name}” is ready; open it on the page Data.")
        elif status.kind == "fit" and why.kind == "fit":
            run = services.runs().get(status.result["run"])
            if run is not None and why.key == state.config().id:
                state.open_config(run.config)
            elif run is not None and not why.refine:
                text = f"The fit “{run.name}” is ready; open it under Recent on the page Data."
                state.notify("info", text)


def cancel(job: str) -> None:
    """Cancel a job from any window, and do not restart it automatically."""
    status = services.jobs().status(job)
    if status is not None and services.jobs().cancel(job):
        declined().add(status.key)
    _watch(job, None)


def declined() -> set[str]:
    """Return the keys that are not restarted automatically: jobs cancelled or failed."""
    keys: set[str] = st.session_state.setdefault(KEYS.declined, set())
    return keys


def _watched() -> dict[str, Watched]:
    watched: dict[str, Watched] = st.session_state.setdefault(KEYS.watched, {})
    return watched


def _watch(job: str, why: Watched | None) -> None:
    if why is None:
        _watched().pop(job, None)
    else:
        _watched()[job] = why
    *older, newest = _watched() or [""]
    named = [job for job in older if not _watched()[job].refine]
    st.session_state[KEYS.awaited] = ",".join([*named, newest][-MOST_NAMED:]) or None


LIVE_SECONDS, INSTANT_SECONDS = 1.0, 0.25  # a shorter fit runs in the page; during a drag
MOST_RECENT, NEAR = 12, 12  # unstored fits; difference in K of a fit shown during a drag
REFINED_SECONDS = 180.0  # a preview of a longer fit is not refined automatically
PAUSE_SECONDS, PAUSE_A_ROW = 1.0, 2e-5  # delay of a fit, so that the browser can draw its preview


class Shown(NamedTuple):
    """A fit as drawn by pages."""

    config: RunConfig
    fitted: FittedRun
    info: RunInfo
    run: store.Run | None  # None for a preview, and for a fit that is only in memory
    numbering: Numbering = Numbering((), (), ())
    is_whole: bool = False  # a fit that is only in memory
    is_refused: bool = False  # only in memory because it could not be stored

    @property
    def is_preview(self) -> bool:
        """Whether this is a short fit to some of the rows."""
        return self.run is None and not self.is_whole

    @property
    def key(self) -> str:
        """Cache key of these numbers and of how the data are drawn."""
        noted = services.dataset(self.config.dataset).provenance
        drawn = f"{hash(repr([noted.get(name) for name in services.NOTED])):x}"
        marks = ("preview" if self.is_preview else "", self.numbering.key, drawn)
        return "-".join([self.config.id, *filter(None, marks)])


class Screen(NamedTuple):
    """The last drawn fit, to which the components of the next are matched."""

    dataset: str  # see `state.whole`
    config: str
    key: str
    directions: np.ndarray  # (K, D)
    came: tuple[str, ...]  # (K,) "was 5", "new" or ""


@st.cache_resource(show_spinner=False)
def recent() -> dict[str, FitResult]:
    """Return the latest unstored fits: from a moving slider, or with a full disk."""
    return {}


def _keep(run_id: str, result: FitResult) -> None:
    held = recent()
    held[run_id] = result
    for old in list(held)[:-MOST_RECENT]:
        held.pop(old, None)


def shown() -> Shown | None:
    """Return the fit or preview to draw; start its job, None until it ended. Raises ValueError."""
    for job, why in list(_watched().items()):
        if why.refine and config().id not in (why.key, why.seen):  # it would slow down other work
            services.jobs().leave(job)
            _watch(job, None)
    fit = finished()
    if fit is None and is_quick(config()) and f"{config().id} preview" not in declined():
        fit = _preview(config(), watch=state.is_ready)
    if fit is None or fit.is_preview:
        _refine()
    return fit


def stored() -> Shown | None:
    """Return the stored run; delete damaged arrays; InputError if it may be readable later."""
    now = config()
    if (run := services.runs().get(now.id)) is not None:
        try:
            return _on_screen(run)
        except InputError as error:
            if store.is_passing(error.__cause__):
                raise
            services.runs().drop_arrays(run.id)
            notify("error", str(error))
    if now.imported is None:
        return None
    notify("info", f"The imported fit {now.id} is gone; you see a new fit with its settings.")
    open_config(now.to_be_fitted(stopped_at=now.stopped_at))
    return stored()


def drawn_before() -> Shown | None:
    """Return the last run found for these data, to draw while a fit is awaited."""
    run = services.runs().get(st.session_state.get(KEYS.drawn) or "")
    return None if run is None or run.config.dataset != config().dataset else _on_screen(run)


def finished() -> Shown | None:
    """Return a stored or quickly fitted run, but no preview; starts no job."""
    return stored() or _live()


def seconds(wanted: RunConfig | None = None) -> float:
    """Return the estimated time of a fit, by default of the configuration."""
    now = wanted or config()
    data = services.dataset(now.dataset)
    return estimate_seconds(data.n_rows, data.n_features, now, incomplete=len(data.incomplete_rows))


def start_fit(*, refine: bool = False) -> str:
    """Fit the configuration in the background; `refine` marks an automatic start."""
    now = config()
    spec = {"config": now.to_dict(), "name": None, "origin": "live" if refine else "fit"}
    return start_job("fit", spec, Watched("fit", now.id, refine=refine))


def check_ahead(kind: str, key: str, spec: dict[str, Any]) -> None:
    """Start a check automatically while the server is idle; redraw the page when it ends."""
    if running(key) is None:
        if services.jobs().active():
            return
        start_job(kind, spec | {"key": key}, Watched(kind, key, refine=True))
    _draw_after(key)


@st.fragment(run_every=1.0)
def _draw_after(key: str) -> None:
    if running(key) is None:
        st.rerun()


def stop() -> None:
    """Cancel the awaited fit; if it is long, or on a second call, cancel its preview, too."""
    now = config()
    if seconds(now) > LIVE_SECONDS or now.id in declined():
        declined().add(f"{now.id} preview")
    declined().add(now.id)


def _live() -> Shown | None:
    now = config()
    result = recent().get(now.id)
    if result is None and (seconds(now) > LIVE_SECONDS or now.id in declined()):
        return None
    result = result or _fit_begun(now) or _fitted_here(now)
    if result is None:
        return None
    try:
        return _on_screen(services.runs().save(now, result, origin="live"))
    except InputError as error:
        if not isinstance(error.__cause__, OSError):
            raise
    _keep(now.id, result)  # until it can be stored
    held = _held(now)
    return held and held._replace(is_refused=True)


_threads = ThreadPoolExecutor(1, "appca-fit")
_begun: dict[str, "Future[FitResult]"] = {}  # the fit that goes on while its preview is drawn


def _begin(wanted: RunConfig) -> None:
    def go_on(_: object) -> None:
        if _begun and wanted.id not in _begun:
            raise StopIteration  # another K is wanted by now

    _begun.clear()
    before = services.prepared(wanted.dataset, wanted.preprocessing)
    begin = partial(fit_run, callback=go_on, preprocessing=before)
    _begun[wanted.id] = _threads.submit(begin, services.dataset(wanted.dataset), wanted)


def _fit_begun(wanted: RunConfig) -> FitResult | None:
    begun = _begun.get(wanted.id)
    while begun is not None and state.is_ready() and not begun.done():
        wait([begun], 0.01)
    is_whole = begun is not None and _begun.pop(wanted.id, None) is begun
    return begun.result() if begun is not None and is_whole else None


def _fitted_here(wanted: RunConfig) -> FitResult | None:
    if not is_quick(wanted) or wanted.is_sampled:
        return None
    before = services.prepared(wanted.dataset, wanted.preprocessing)
    dataset = services.dataset(wanted.dataset)
    return fit_run(dataset, wanted, callback=lambda _: state.is_ready(), preprocessing=before)


def while_moving(wanted: RunConfig) -> Shown | None:
    """Return an unstored fit during a slider's drag; if it takes long, one with the nearest K."""
    unknown = wanted.id not in recent() and services.runs().get(wanted.id) is None
    if unknown and seconds(wanted) < INSTANT_SECONDS and (result := _fitted_here(wanted)):
        _keep(wanted.id, result)
    for step in sorted(range(-NEAR, NEAR + 1), key=abs):
        k = wanted.k + step
        if k >= (wanted.chosen_size or 1):
            near = replace(wanted, parameters=wanted.parameters | {wanted.name_of_k: k})
            run = services.runs().get(near.id)
            fit = _put_on_screen(of_run(run, _before())) if run is not None else _held(near)
            if fit is not None:
                return fit
    return None


def coarse() -> Shown | None:
    """Return a preview to draw once before an unknown fit that runs in the page."""
    now, last = config(), st.session_state.get(KEYS.coarse)
    st.session_state[KEYS.coarse] = now.id
    is_new = services.runs().get(now.id) is None and now.id not in recent()
    is_long = INSTANT_SECONDS < seconds() <= LIVE_SECONDS and on_ground(current_dataset(), now)
    is_due = is_new and is_long and is_quick(now) and last not in {None, now.id}
    shown = _preview(now, watch=state.is_ready) if is_due else None
    if is_due and not now.is_sampled:
        _begin(now)
    return shown


def _held(wanted: RunConfig) -> Shown | None:
    if (result := recent().get(wanted.id)) is None:
        return None
    numbering = ComponentNumbers(home()).expected(wanted, result.fitted, _before())
    fitted = numbered(result.fitted, numbering)
    return _put_on_screen(Shown(wanted, fitted, result.info, None, numbering, is_whole=True))


def needs_complete_rows(wanted: RunConfig) -> bool:
    """Whether missing cells prevent the fit."""
    return services.dataset(wanted.dataset).missing is not None and not wanted.fits_around_gaps


def is_quick(wanted: RunConfig) -> bool:
    """Whether a page may fit the configuration without the compiler or a slow optimizer."""
    return (
        not needs_complete_rows(wanted)
        and wanted.k <= MODELS[wanted.model].can.uncompiled
        and wanted.parameters.get("w_update") != "pymanopt"
        and wanted.stopped_at is None
        and not waits_for_compiler(services.dataset(wanted.dataset), wanted)
    )


def preview_ahead(digest: str) -> None:
    """Compute the first preview of a data set if its fit takes long."""
    now = first_config(services.dataset(digest))
    if seconds(now) > LIVE_SECONDS and services.runs().get(now.id) is None and is_quick(now):
        _preview(now)


def _preview(now: RunConfig, watch: Callable[[], object] = bool) -> Shown | None:
    result = _short_fit(now.id, now, watch)
    numbers, key = ComponentNumbers(home()), f"{home()} {now.id}"
    numbering = _of_preview(key, numbers, now, result.fitted, _before())
    fitted = numbered(result.fitted, numbering)
    return _put_on_screen(Shown(now, fitted, result.info, None, numbering))


def of_run(run: store.Run, before: np.ndarray | None = None) -> Shown:
    """Return a stored run; its components are numbered now if they were not before."""
    numbering = ComponentNumbers(home()).of_run(run, before)
    return Shown(run.config, numbered(run.fitted, numbering), run.info, run, numbering)


def _screen() -> Screen | None:
    last: Screen | None = st.session_state.get(KEYS.screen)
    return last if last is not None and last.dataset == state.whole(config().dataset) else None


def came(now: Shown) -> tuple[str, ...]:
    """Return "was 5", "new" or "" for each component; () if no component has changed."""
    last = _screen()
    return last.came if last is not None and last.key == now.key and any(last.came) else ()


def _before() -> np.ndarray | None:
    last = _screen() if state.is_ready() else None
    return None if last is None else last.directions


def _on_screen(run: store.Run) -> Shown:
    st.session_state[KEYS.drawn] = run.id
    return _put_on_screen(of_run(run, _before()))


def _put_on_screen(now: Shown) -> Shown:
    """Remember a fit as the last one drawn, and the origins of its components."""
    last = st.session_state.get(KEYS.screen)
    if last is None or last.key != now.key:
        rows, same = directions(now.fitted), last is not None and last.config == now.config.id
        came, whole = [""] * len(rows), state.whole(now.config.dataset)
        if last is not None and last.dataset == whole:
            pairs = likeness(rows, last.directions)
            for k in range(len(rows)):
                old = pairs[k][0] if k in pairs else -1
                kept = last.came[k] if same and k < len(last.came) else ""
                came[k] = "new" if old < 0 else f"was {old + 1}" if old != k else kept
        st.session_state[KEYS.screen] = Screen(whole, now.config.id, now.key, rows, tuple(came))
    return now


@services.by_key(12)
def _short_fit(wanted: RunConfig, watch: Callable[[], object]) -> FitResult:
    dataset = services.dataset(wanted.dataset)
    if not on_ground(dataset, wanted):
        return preview(dataset, wanted, watch=watch)
    key = json.dumps([wanted.dataset, wanted.preprocessing, width(wanted)], sort_keys=True)
    return preview(dataset, wanted, ground=_ground(key, dataset, wanted, watch=watch), watch=watch)


_ground = services.by_key(2)(fit.prepare)
# once for all windows; the fit is then matched to it
_of_preview = services.by_key(48)(ComponentNumbers.expected)


def _refine() -> None:
    now = config()
    wanted = now.stopped_at is None and now.id not in declined()
    if wanted and running(now.id) is None and seconds() <= REFINED_SECONDS:
        try:
            start_fit(refine=True)
        except InputError:  # too many jobs; reported only if a user asked for it
            declined().add(now.id)
