"""What surrounds every page: state from the address, errors as one sentence, the status."""

from collections.abc import Callable

import streamlit as st

from appca.jobs.queue import JobStatus
from appca.plots.style import CATEGORICAL
from appca.runs.run import MODELS, RunConfig
from appca.storage.identity import ID_DIGITS
from appca.ui import STATIC, arrivals, fits, services, state, streamlit_internals, warm_up
from appca.ui.kit import (
    JOB_TITLES,
    LINE,
    NOTE,
    ending,
    markdown,
    nats_per_row,
    scripted,
    still_improves,
    tag,
    waits_for,
    words,
)
from appca.ui.state import KEYS, TOLD, guarded, sentence
from appca.ui.streamlit_internals import base
from appca.words import InputError, about, counted, percent

PLANES = dict(zip((90, 30, -30), CATEGORICAL[:3], strict=True))  # angle, in degrees: colour
LINES = "".join(
    f'<line x1="-17" y1="0" x2="17" y2="0" stroke="{hexcode}" stroke-width="6.5" '
    f'transform="rotate({-angle})"/>'
    for angle, hexcode in PLANES.items()
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg"'


def icon() -> str:
    """Return the mark on a transparent ground as SVG."""
    return f'{SVG} width="40" height="40" viewBox="-20 -20 40 40">{LINES}</svg>'


def logo() -> str:
    """Return the mark with the app's name as SVG; the grey reads on light and on dark."""
    return (
        f'{SVG} width="132" height="40" viewBox="0 0 132 40">'
        f'<g transform="translate(20 20)">{LINES}</g>'
        '<text x="48" y="28" font-family="Source Sans, Source Sans Pro, Helvetica, sans-serif" '
        'font-size="25" font-weight="600" fill="#7d8da0">appca</text></svg>'
    )


POLL_SECONDS = 0.5
SHOWN = "status_shown"  # there, too: the fit on screen where it is not that of the settings
NATS = "Nats per row: the mean log-likelihood of a row under the fit; higher is better."
FURTHER = 10  # times as many iterations, for a fit that has not converged


def draw_status(place: st.delta_generator.DeltaGenerator) -> None:
    """Fill the line at its place."""
    try:
        shown, running = st.session_state.pop(SHOWN, None), services.jobs().active()
        with place:
            if running:
                _work([job.id for job in running])
            elif state.is_ready():
                _outcome(shown or fits.stored())
            if state.is_ready():
                st.html(_on_screen())
        ended = fits.any_ended()
    except TOLD:
        return  # the page has met it, too, and said so
    if ended:
        st.rerun()  # a job ended while the page was drawn without its result


def outcome(shown: fits.Shown) -> str:
    """Say how a fit ended and how well it describes the data."""
    imported = " · imported" if shown.config.imported is not None else ""
    return f"{ending(shown)} · {nats_per_row(shown.info)}{imported}"


def _outcome(shown: fits.Shown | None) -> None:
    said = "Not fitted yet" if shown is None else outcome(shown)
    improving = shown is not None and still_improves(shown)
    css = "ca-outcome ca-improving" if improving else "ca-outcome"
    st.html(tag("div", words(said), css, role="status", title=NATS))
    if improving:
        st.button("Continue", key="continue_fit", type="tertiary", on_click=_further)


@guarded
def _further() -> None:
    state.set_parameters(max_iter=FURTHER * state.config().parameters["max_iter"])


def _on_screen() -> str:
    """Say what is open; the browser shows the K and L under the hand in their places."""
    now, dataset = state.config(), state.current_dataset()
    sizes = (tag("span", words(size), f"ca-size-{size[0].lower()}") for size in now.sizes)
    parts = [
        tag("b", words(dataset.name)),
        f"{dataset.n_rows:,} rows × {dataset.n_features:,}",
        f"{words(MODELS[now.model].title)}, {', '.join(sizes)}",
    ]
    if dataset.missing is not None:
        parts.insert(2, counted(dataset.n_missing, "missing cell"))
    return tag("div", " · ".join(parts), "ca-side")


@st.fragment(run_every=POLL_SECONDS)
def _work(ids: list[str]) -> None:
    """Follow the running jobs; when one starts or ends the whole page must know."""
    running = services.jobs().active()
    if [job.id for job in running] != ids:
        st.rerun()
    with st.container(**LINE, key="work"):
        for job in running:
            st.html(tag("div", words(_progress(job)), role="status"))
            key, act = f"cancel-{job.id}", guarded(fits.cancel)
            st.button("Stop", key, type="tertiary", on_click=act, args=[job.id])


def _progress(job: JobStatus) -> str:
    name = JOB_TITLES.get(job.kind, job.kind)
    if job.kind == "fit":
        name += f" {', '.join(RunConfig.from_record(job.spec['config']).sizes)}"
    if job.state == "queued":
        return f"{name} · {waits_for()}"
    left = f" · {about(job.seconds_left)} left" if job.seconds_left else ""
    return f"{name} … {percent(min(max(job.fraction, 0.0), 1.0))}{left}"


STYLE = STATIC / "style.css"
_listener = scripted("frame")  # for undo and redo by keys and Back
_ahead = streamlit_internals.scripts(
    "Selectbox", "PlotlyChart", "DataFrame", "StreamlitSyntaxHighlighter"
)


def around_page(draw: Callable[[], None], name: str) -> None:
    """Prepare the session, draw a page, and show what either refuses as one sentence."""
    state.wait()
    # What comes and goes stands in one place of its own: the browser numbers the parts of a page,
    # and would build all pictures anew when one more stands above them.
    above, below = st.container(key="above"), st.container(key="status", horizontal=True)
    st.session_state[NOTE] = below.container(horizontal=True, key="status_note")
    with above:
        st.html(STYLE)
        _listener(
            key="appca-frame",
            data={"ahead": _ahead, "base": base()},
            on_undo_change=state.undo,
            on_redo_change=state.redo,
        )
    st.logo(logo(), size="large", icon_image=icon())
    try:
        with warm_up.drawing():
            with above:
                _prepare()
                if name != "data":  # there it would hide what it leads to
                    arrivals.assumed()
            draw()
            state.record()
            _write_address(tab=st.session_state[KEYS.tab])
    except TOLD as error:
        st.error(markdown(sentence(error)))
    draw_status(below)


def _prepare() -> None:
    address = dict(st.query_params)
    st.session_state[KEYS.tab] = None  # until the page draws its tabs
    if state.begin():
        fits.adopt(address.get("run"))
        state.restore(state.current_dataset(), address.get("sel"))
        state.begin_at(address.get("step"))
        _say_what_is_not_shown(address.get("run", ""))
    elif streamlit_internals.went():
        state.follow(address)
    try:
        state.current_dataset()
    except InputError as error:  # it was deleted or damaged meanwhile
        state.notify("error", str(error))
        state.open_first()
    fits.settle()
    state.record()
    _write_address()  # also now: a reload may come before the page is finished
    dropped = arrivals.anywhere()
    if dropped is not None:
        arrivals.arrive(dropped)
    for notice in state.take_notices():
        say: dict[str, Callable[[str], object]]
        say = {"error": st.error, "info": st.info, "success": st.toast}  # the last goes by itself
        say[notice.kind](markdown(notice.text))


def _say_what_is_not_shown(run: str) -> None:
    """Say why the run of a link is not on screen, unless something was said already."""
    damage = services.runs().damage(run)
    if st.session_state.get(KEYS.notices):
        return
    if damage is not None:
        state.notify("error", damage)
    elif run != state.config().id and len(run) == ID_DIGITS:
        text = f"The fit {run} of this link is not stored here; shown is what else the link says."
        state.notify("info", text)


def _write_address(**more: str | None) -> None:
    if state.is_ready():
        token, step = state.token(state.current_dataset()), state.number()
        state.write_address(sel=token, step=step, **more)
