"""From a configuration to the fit on screen: stored, live, preview or in the queue."""

import contextlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.fitted import FittedRun
from appca.analysis.umap import EmbeddingConfig
from appca.jobs.queue import ENDED, JobStatus
from appca.runs.fit import (
    estimate_seconds,
    fit_run,
    on_ground,
    prepare,
    preview,
    waits_for_compiler,
    width,
)
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers, Numbering, directions, likeness, numbered
from appca.runs.run import MODELS, FitResult, RunConfig, RunInfo
from appca.runs.store import Run, is_passing
from appca.storage.identity import is_id
from appca.ui import services, state
from appca.ui.services import by_key
from appca.ui.state import KEYS, config, first_config, notify, open_config
from appca.words import InputError

_NAMED = 8  # jobs in the address


class Watched(NamedTuple):
    """Why this window waits for a job."""

    kind: str
    key: str | None = None  # what it makes: id of a run or an embedding, name of a source
    refine: bool = False  # started by itself to replace a preview
    seen: str | None = None  # id of the configuration on screen when it was asked for


RESTARTED = "The app was restarted. If a result is missing, compute it again."


def start_job(
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
            if status is None:
                if is_id(job):
                    state.notify("info", RESTARTED)
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
        _watch(job, None)
        if status is None:
            continue
        if status.state == "done":
            _done(status, why)
            continue
        if status.state == "failed":
            state.notify("error", status.message)
        decline(why.key or status.key)


def cancel(job: str) -> None:
    """End a job, whichever window began it, and do not begin it again unasked."""
    status = services.jobs().status(job)
    if status is not None and services.jobs().cancel(job):
        decline(status.key)
    _watch(job, None)


def stop_other_refinements(run_id: str) -> None:
    """Give up the refinements of previews that are no longer on screen."""
    for job, why in list(_watched().items()):
        if why.refine and why.key != run_id:
            services.jobs().leave(job)
            _watch(job, None)


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


def _watch(job: str, why: Watched | None) -> None:
    """Wait for a job, or no longer.

    The address names what was asked for, and the newest job, so that a reload finds them.
    """
    if why is None:
        _watched().pop(job, None)
    else:
        _watched()[job] = why
    *older, newest = _watched() or [""]
    named = [job for job in older if not _watched()[job].refine]
    st.session_state[KEYS.job] = ",".join([*named, newest][-_NAMED:]) or None


def _done(status: JobStatus, why: Watched) -> None:
    if status.kind == "download":
        digest = status.result["dataset"]
        if why.seen in (None, state.config().id):
            state.open_dataset(digest)
        else:
            name = services.dataset(digest).name
            text = f"The data set “{name}” is ready; open it on the page Data."
            state.notify("info", text)
    elif status.kind == "fit" and why.kind == "fit":
        run = services.runs().get(status.result["run"])
        moved_on = why.key != state.config().id
        if run is not None and not moved_on:
            state.open_config(run.config)
        elif run is not None and not why.refine:
            state.notify(
                "info", f"The fit “{run.name}” is ready; open it under Recent on the page Data."
            )


LIVE_SECONDS = 1.0  # a fit this short runs at once
INSTANT_SECONDS = 0.25  # and this short already while a slider is dragged
MOST_RECENT = 12  # fits held in memory
REFINED_SECONDS = 180.0  # a preview is refined without being asked if that takes no longer
# A refinement begins when the browser has drawn the preview: both want all the cores there are.
PAUSE_SECONDS, PAUSE_A_ROW = 1.0, 2e-5


class Shown(NamedTuple):
    """What the pages draw."""

    config: RunConfig
    fitted: FittedRun
    info: RunInfo
    run: Run | None  # None for a preview, and for a fit in memory alone
    numbering: Numbering = Numbering((), (), ())  # already in `fitted`
    is_whole: bool = False  # a fit in memory alone: its numbers are those of the run to come
    is_refused: bool = False  # in memory alone because the disk takes nothing

    @property
    def is_preview(self) -> bool:
        """Whether the numbers come from a short fit of a part of the rows."""
        return self.run is None and not self.is_whole

    @property
    def key(self) -> str:
        """Name these numbers in a cache."""
        marks = ("preview" if self.is_preview else "", self.numbering.key)
        return "-".join([self.config.id, *filter(None, marks)])


class Screen(NamedTuple):
    """The fit on screen, to which the components of the next one are matched."""

    dataset: str
    config: str  # its id
    key: str
    directions: np.ndarray  # (K, D)
    came: tuple[str, ...]  # (K,) "was 5" or "new" where a component was not there before


@st.cache_resource(show_spinner=False)
def recent() -> dict[str, FitResult]:
    """Return the last fits that no disk has yet: of a moving slider, and of a full disk."""
    return {}


def _keep(run_id: str, result: FitResult) -> None:
    """Hold a fit in memory; the oldest goes where there are too many."""
    held = recent()
    held[run_id] = result
    for old in list(held)[:-MOST_RECENT]:
        held.pop(old, None)


def shown() -> Shown | None:
    """Return what there is to draw now, starting what is missing; None while only a job can tell.

    Raises ValueError when the data or the parameters do not allow a fit; one sentence for the page.
    """
    stop_other_refinements(config().id)  # first of all: they would slow down what follows
    fit = stored() or _live()
    if fit is None and _quick(config()) and not declined(f"{config().id} preview"):
        fit = _preview(config(), watch=_is_wanted)
    if fit is None or fit.is_preview:
        _refine()
    return fit


def stored() -> Shown | None:
    """Return the run of the present configuration, if it has been fitted.

    The arrays of one that is damaged are removed: they would stand in the way of a new fit.

    Raises InputError when it cannot be read now but may be later: it is neither deleted nor fitted
    again.
    """
    run = services.runs().get(config().id)
    if run is None:
        return _without_import()
    try:
        return _on_screen(run)
    except InputError as error:
        if is_passing(error.__cause__):
            raise
        services.runs().drop_arrays(run.id)
        notify("error", str(error))
        return _without_import()


def _without_import() -> Shown | None:
    """Look at what is fitted here by the settings of an imported run that is gone."""
    now = config()
    if now.imported is None:
        return None
    notify("info", f"The imported fit {now.id} is gone; shown is a fit with its settings.")
    open_config(now.to_be_fitted(stopped_at=now.stopped_at))
    return stored()


def drawn_before() -> Shown | None:
    """Return the run of these data that was found last, to be looked at while a fit is awaited."""
    run = services.runs().get(st.session_state.get(KEYS.drawn) or "")
    if run is None or run.config.dataset != config().dataset:
        return None
    return _on_screen(run)


def finished() -> Shown | None:
    """Return a stored or quickly fitted run; never a preview, never starts a job."""
    return stored() or _live()


def seconds(wanted: RunConfig | None = None) -> float:
    """Return the estimated duration of a fit, by default the present configuration's."""
    now = wanted or config()
    dataset = services.dataset(now.dataset)
    return estimate_seconds(
        dataset.n_rows, dataset.n_features, now, incomplete=len(dataset.incomplete_rows)
    )


def start_fit(*, refine: bool = False) -> str:
    """Fit the present configuration in the background; the same one twice is one job."""
    now = config()
    n_rows = services.dataset(now.dataset).n_rows
    pause = PAUSE_SECONDS + PAUSE_A_ROW * n_rows if refine else 0.0
    spec = {"config": now.to_dict(), "name": None, "origin": "live" if refine else "fit"}
    why = Watched("fit", now.id, refine=refine)
    return start_job("fit", spec, why, after=pause)


def stop() -> None:
    """Give up the fit that the page waits for; of a long one, or once more, its preview, too."""
    now = config()
    if seconds(now) > LIVE_SECONDS or declined(now.id):
        decline(f"{now.id} preview")
    decline(now.id)


def _live() -> Shown | None:
    now = config()
    result = recent().get(now.id)
    if result is None and (seconds(now) > LIVE_SECONDS or declined(now.id)):
        return None
    result = result or _fitted_here(now)
    if result is None:
        return None
    try:
        return _on_screen(services.runs().save(now, result, origin="live"))
    except InputError as error:
        if not isinstance(error.__cause__, OSError):
            raise
    _keep(now.id, result)  # until the disk takes it
    held = _held(now)
    return held and held._replace(is_refused=True)


def _fitted_here(wanted: RunConfig) -> FitResult | None:
    """Fit at once, where the web process may; what the browser asks for meanwhile ends it."""
    if not _quick(wanted) or wanted.is_sampled:
        return None
    before = services.prepared(wanted.dataset, wanted.preprocessing)
    dataset = services.dataset(wanted.dataset)
    return fit_run(dataset, wanted, callback=lambda _: _is_wanted(), preprocessing=before)


def while_moving(wanted: RunConfig) -> Shown | None:
    """Return the fit of a K or L that a slider moves over, without storing it.

    None where none is stored and a new one would take longer than a step of the slider.
    """
    run = services.runs().get(wanted.id)
    if run is not None:
        return _put_on_screen(of_run(run, _before()))
    if recent().get(wanted.id) is None and seconds(wanted) < INSTANT_SECONDS:
        result = _fitted_here(wanted)
        if result is not None:
            _keep(wanted.id, result)
    return _held(wanted)


def _held(wanted: RunConfig) -> Shown | None:
    """Return a fit that is in memory alone, with the numbers that it will have when stored."""
    result = recent().get(wanted.id)
    if result is None:
        return None
    numbering = ComponentNumbers(home()).expected(wanted, result.fitted, _before())
    fitted = numbered(result.fitted, numbering)
    return _put_on_screen(Shown(wanted, fitted, result.info, None, numbering, is_whole=True))


def _quick(wanted: RunConfig) -> bool:
    """Whether the web process may fit it itself: no compiler and no slow optimiser to wait for."""
    return (
        wanted.k <= MODELS[wanted.model].can.uncompiled
        and wanted.parameters.get("w_update") != "pymanopt"
        and wanted.stopped_at is None
        and not waits_for_compiler(services.dataset(wanted.dataset), wanted)
    )


def is_live(wanted: RunConfig) -> bool:
    """Whether a page may fit it itself, at once."""
    return _quick(wanted) and not wanted.is_sampled and seconds(wanted) <= LIVE_SECONDS


def preview_ahead(digest: str) -> Shown | None:
    """Make the preview with which a data set will first be shown, where its fit would take long."""
    now = first_config(services.dataset(digest))
    long = seconds(now) > LIVE_SECONDS and services.runs().get(now.id) is None
    return _preview(now) if long and _quick(now) else None


def _preview(now: RunConfig, watch: Callable[[], object] = bool) -> Shown | None:
    result = _short_fit(now.id, now, watch)
    numbering = _of_preview(f"{home()} {now.id}", now, result.fitted, _before())
    return _put_on_screen(
        Shown(now, numbered(result.fitted, numbering), result.info, None, numbering)
    )


@by_key(48)  # decided once for all windows; the fit is then matched to it
def _of_preview(wanted: RunConfig, fitted: FittedRun, before: np.ndarray | None) -> Numbering:
    return ComponentNumbers(home()).expected(wanted, fitted, before)


def of_run(run: Run, before: np.ndarray | None = None) -> Shown:
    """Return a stored run with its numbers, signs and names, decided now if it has none."""
    numbering = ComponentNumbers(home()).of_run(run, before)
    return Shown(run.config, numbered(run.fitted, numbering), run.info, run, numbering)


def screen() -> Screen | None:
    """Return the fit of the present data that was drawn last."""
    last: Screen | None = st.session_state.get(KEYS.screen)
    return last if last is not None and last.dataset == config().dataset else None


def came(now: Shown) -> tuple[str, ...]:
    """Return of each component on screen "was 5" or "new", or ""; () where none has changed."""
    last = screen()
    return last.came if last is not None and last.key == now.key and any(last.came) else ()


def _before() -> np.ndarray | None:
    last = screen() if KEYS.config in st.session_state else None
    return None if last is None else last.directions


def _on_screen(run: Run) -> Shown:
    st.session_state[KEYS.drawn] = run.id
    return _put_on_screen(of_run(run, _before()))


def _put_on_screen(now: Shown) -> Shown:
    """Remember a fit as the one on screen, and what its components were in the one before."""
    last = st.session_state.get(KEYS.screen)
    if last is None or last.key != now.key:
        rows, same = directions(now.fitted), last is not None and last.config == now.config.id
        came = [""] * len(rows)
        if last is not None and last.dataset == now.config.dataset:
            pairs = likeness(rows, last.directions)
            for k in range(len(rows)):
                old = pairs[k][0] if k in pairs else -1
                kept = last.came[k] if same and k < len(last.came) else ""
                came[k] = "new" if old < 0 else f"was {old + 1}" if old != k else kept
        new = Screen(now.config.dataset, now.config.id, now.key, rows, tuple(came))
        st.session_state[KEYS.screen] = new
    return now


@by_key(12)
def _short_fit(wanted: RunConfig, watch: Callable[[], object]) -> FitResult:
    dataset = services.dataset(wanted.dataset)
    if not on_ground(dataset, wanted):
        return preview(dataset, wanted, watch=watch)
    # All that the ground takes of a configuration:
    key = json.dumps([wanted.dataset, wanted.preprocessing, width(wanted)], sort_keys=True)
    ground = _ground(key, dataset, wanted, watch=watch)
    return preview(dataset, wanted, ground=ground, watch=watch)


def _is_wanted() -> bool:
    """Look into the session, where Streamlit ends a run that is out of date."""
    return KEYS.config in st.session_state


_ground = by_key(2)(prepare)


def _refine() -> None:
    now = config()
    wanted = now.stopped_at is None and not declined(now.id)
    if wanted and running(now.id) is None and seconds() <= REFINED_SECONDS:
        try:
            start_fit(refine=True)
        except InputError:  # too many jobs wait: a person may ask for it, and is told so then
            decline(now.id)
