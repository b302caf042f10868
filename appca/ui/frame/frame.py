"""What surrounds every page: state from the address, errors as one sentence, and the sidebar."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from appca.jobs.folder import JobStatus
from appca.runs.configuration import MODELS
from appca.storage.errors import InputError
from appca.storage.identity import ID_DIGITS
from appca.storage.wording import counted
from appca.ui.frame import cold_start, memory, page_turn, upload_limit
from appca.ui.frame.icon import icon, logo
from appca.ui.frame.place import place_of_fits
from appca.ui.parts.text import about, markdown, nats_per_row, passes, tag, words
from appca.ui.session import fitting, selection, services, state, watching
from appca.ui.session.callbacks import TOLD, sentence
from appca.ui.session.state import KEYS

STYLE = Path(__file__).with_name("style.css")
POLL_SECONDS = 0.5
KINDS = {
    "fit": "Fit",
    "umap": "UMAP",
    "download": "Loading data",
    "grid": "Grid over K and L",
    "stability": "Stability",
    "quality": "Comparison",
    "study": "Experiment",
    "brain": "Brain",
    "whitening": "Whitening",
    "project": "New rows",
    "masked": "Hidden cells",
}


def around_page(draw: Callable[[], None]) -> None:
    """Prepare the session, draw the page, and show what either refuses as one sentence."""
    memory.tidy()
    upload_limit.bound()
    # What comes and goes stands in one place of its own: the browser numbers the parts of a page,
    # and would build all pictures anew when one more stands above them.
    above = st.container(key="above")
    with above:
        st.html(STYLE)
        cold_start.close_false_alarm()
    st.logo(logo(), size="large", icon_image=icon())
    try:
        with page_turn.turn():
            with above:
                _prepare()
            draw()
            _write_address(tab=st.session_state[KEYS.tab])
    except TOLD as error:
        st.error(markdown(sentence(error)))


def sidebar() -> None:
    """Show the data set, the model, and the jobs that this window waits for."""
    try:
        with st.sidebar:
            if state.is_ready():
                st.html(_summary())
            running = watching.mine()
            if running:
                _jobs_now([job.id for job in running])
        ended = watching.any_ended()
    except TOLD:
        return  # `around_page` has met it, too, and said so
    if ended:
        st.rerun()  # a job ended while the page was drawn without its result


def _prepare() -> None:
    address = dict(st.query_params)
    st.session_state[KEYS.tab] = None  # until the page draws its tabs
    if state.begin():
        watching.adopt(address.get("run"))
        selection.restore(state.current_dataset(), address.get("sel"))
        _say_what_is_not_shown(address.get("run", ""))
    _leave_what_is_gone()
    watching.settle()
    _write_address()  # also now: a reload may come before the page is finished
    for refusal in upload_limit.refusals():
        state.notify("error", refusal)
    for notice in state.take_notices():
        box = {"error": st.error, "info": st.info, "success": st.success}[notice.kind]
        box(markdown(notice.text))


def _say_what_is_not_shown(run: str) -> None:
    """Say why the run of a link is not on screen, unless something was said already."""
    damage = services.runs().damage(run)
    if st.session_state.get(KEYS.notices):
        return
    if damage is not None:
        state.notify("error", damage)
    elif run != state.config().id and len(run) == ID_DIGITS:
        text = f"Run {run} of this link is not stored here; shown is what else the link says."
        state.notify("info", text)


def _leave_what_is_gone() -> None:
    """Go back to the digits when the data set on screen was deleted or damaged meanwhile."""
    try:
        state.current_dataset()
    except InputError as error:
        state.notify("error", str(error))
        state.open_first()


def _write_address(**more: str | None) -> None:
    if state.is_ready():
        state.write_address(sel=selection.token(state.current_dataset()), **more)


def _summary() -> str:
    now, dataset = state.config(), state.current_dataset()
    lines = [
        tag("b", words(dataset.name)),
        f"{dataset.n_rows:,} rows × {dataset.n_features:,}",
        words(f"{MODELS[now.model].title} · {', '.join(now.sizes)}"),
    ]
    if dataset.missing is not None:
        lines.insert(2, counted(dataset.n_missing, "missing cell"))
    found = fitting.stored()
    if found is not None:
        lines.append(words(_fit_line(found)))
    where = place_of_fits(now, dataset)
    lines += [words(where)] if where else []
    return tag("div", "<br>".join(lines), "ca-side")


def _fit_line(found: fitting.Shown) -> str:
    partial = " · stopped by hand" if found.config.stopped_at is not None else ""
    partial += " · imported" if found.config.imported is not None else ""
    work = passes(found.info.n_iter, sampled=found.config.is_sampled)
    return f"{nats_per_row(found.info)} · {work}{partial}"


@st.fragment(run_every=POLL_SECONDS)
def _jobs_now(known: list[str]) -> None:
    """Follow the running jobs; when one starts or ends the whole page must know."""
    running = watching.mine()
    if [job.id for job in running] != known:
        st.rerun()
    for job in running:
        with st.container(border=True):
            st.progress(min(max(job.fraction, 0.0), 1.0), text=_progress_line(job))
            key = f"cancel-{job.id}"
            st.button("Cancel", key, width="stretch", on_click=watching.cancel, args=[job.id])


def _progress_line(job: JobStatus) -> str:
    name = KINDS.get(job.kind, job.kind)
    if job.state == "queued":
        return f"{name} · waiting for a free worker"
    left = f" · {about(job.seconds_left)} left" if job.seconds_left else ""
    return f"{name} · {markdown(job.stage)}{left}"
