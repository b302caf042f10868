"""The frame of every page: state from the address, error sentences, the status line."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from appca.jobs.queue import JobStatus
from appca.runs.run import MODELS, RunConfig
from appca.storage.identity import ID_DIGITS
from appca.ui import STATIC, arrivals, fits, kit, services, state, streamlit_internals, warm_up
from appca.ui.canvas import SCRIPT
from appca.ui.kit import JOB_TITLES, LINE, NOTE, ending, markdown, nats_per_row, press, tag, words
from appca.ui.streamlit_internals import base
from appca.words import InputError, about, counted, percent

LOGO, ICON = ((STATIC / f"{name}.svg").read_text("utf-8") for name in ("logo", "icon"))
SHOWN = "status_shown"  # in `st.session_state`: the fit on screen during a slider's drag
FURTHER = 10  # factor of the iterations when a fit is continued


def _draw_status(place: st.delta_generator.DeltaGenerator) -> None:
    try:
        shown, running = st.session_state.pop(SHOWN, None), _announced()
        with place:
            if running:
                _work([job.id for job in running])
            elif state.is_ready():
                _outcome(shown or fits.stored())
            if state.is_ready():
                st.html(_on_screen(shown.config if shown else state.config()))
        ended = fits.any_ended()
    except state.TOLD:
        return  # the page shows this error
    if ended:
        st.rerun()  # redraw the page with the result


def _announced() -> list[JobStatus]:
    return [job for job in services.jobs().active() if job.asked or job.kind == "fit"]


def _outcome(shown: fits.Shown | None) -> None:
    from appca.ui.diagnostics import in_short  # imported after the first picture

    said, told, improving = "Not fitted yet", "", shown is not None and kit.still_improves(shown)
    if shown is not None:
        imported = " · imported" if shown.config.imported is not None else ""
        said, nats = in_short(state.current_dataset(), shown) + imported, nats_per_row(shown.info)
        told = f"{ending(shown)}. Log-likelihood of all rows: {nats}; higher is better."
    css = "ca-outcome ca-improving" if improving else "ca-outcome"
    st.html(tag("div", words(said), css, role="status", title=told))
    if improving:
        more = FURTHER * state.config().parameters["max_iter"]
        act = partial(state.set_parameters, max_iter=more)
        press("Continue", "continue_fit", act, type="tertiary")


def _on_screen(now: RunConfig) -> str:
    dataset = state.current_dataset()
    parts = [
        tag("b", words(dataset.name)),
        f"{dataset.n_rows:,} rows × {dataset.n_features:,}",
        words(", ".join([MODELS[now.model].title, *now.sizes])),
    ]
    if dataset.missing is not None:
        parts.insert(2, counted(dataset.n_missing, "missing cell"))
    return tag("div", " · ".join(parts), "ca-side")


@st.fragment(run_every=kit.POLL_SECONDS)
def _work(ids: list[str]) -> None:
    running = _announced()
    if [job.id for job in running] != ids:
        st.rerun()
    with st.container(**LINE, key="work"):
        for job in running:
            name = JOB_TITLES.get(job.kind, job.kind)
            if job.kind == "fit":
                name += f" {', '.join(RunConfig.from_record(job.spec['config']).sizes)}"
            left = f" · {about(job.seconds_left)} left" if job.seconds_left else ""
            said = f"{name} … {percent(min(max(job.fraction, 0.0), 1.0))}{left}"
            if job.state == "queued":
                said = f"{name} · {kit.waits_for()}"
            st.html(tag("div", words(said), role="status"))
            press("Stop", f"cancel-{job.id}", fits.cancel, job.id, type="tertiary")


STYLE, _listener = STATIC / "style.css", kit.scripted("frame")
_ahead = streamlit_internals.scripts(
    "Selectbox", "NumberInput", "PlotlyChart", "DataFrame", "StreamlitSyntaxHighlighter"
)


def around_page(draw: Callable[[], None], name: str) -> None:
    """Draw a page within the frame, and its errors as one sentence."""
    state.wait()
    # The browser numbers the parts of a page, so changing parts have their own containers.
    above, below = st.container(key="above"), st.container(key="status", horizontal=True)
    st.session_state[NOTE] = below.container(horizontal=True, key="status_note")
    with above:
        st.html(STYLE)
        _listener(
            key="appca-frame",
            data={"ahead": _ahead, "base": base(), "picture": "" if name else SCRIPT},
            on_undo_change=state.undo,
            on_redo_change=state.redo,
        )
    st.logo(LOGO, size="large", icon_image=ICON)
    try:
        with warm_up.drawing():
            with above:
                _prepare()
                if not name:
                    arrivals.assumed()
            draw()
            state.record()
            _write_address(tab=st.session_state[state.KEYS.tab])
    except state.TOLD as error:
        st.error(markdown(state.sentence(error)))
    _draw_status(below)


def _prepare() -> None:
    address = dict(st.query_params)
    st.session_state[state.KEYS.tab] = None  # until the page draws its tabs
    if state.begin():
        run = address.get("run", "")
        fits.adopt(address.get("run"))
        state.restore(state.current_dataset(), address.get("sel"))
        state.begin_at(address.get("step"))
        arrivals.take_look(address)
        if not st.session_state.get(state.KEYS.notices):
            if (damage := services.runs().damage(run)) is not None:
                state.notify("error", damage)
            elif run != state.config().id and len(run) == ID_DIGITS:
                text = f"The fit {run} of this link is not stored here; "
                state.notify("info", f"{text}the other settings of the link are shown.")
    elif streamlit_internals.went():
        state.follow(address)
    try:
        state.current_dataset()
    except InputError as error:
        state.notify("error", str(error))
        state.open_first()
    fits.settle()
    state.record()
    _write_address()  # also here, because a reload may come before the page is finished
    if (dropped := arrivals.anywhere()) is not None:
        arrivals.arrive(dropped)
    for notice in state.take_notices():
        getattr(st, "toast" if notice.kind == "success" else notice.kind)(markdown(notice.text))


def _write_address(**more: str | None) -> None:
    if state.is_ready():
        token, step = state.token(state.current_dataset()), state.number()
        state.write_address(sel=token, step=step, **arrivals.look(), **more)
