"""What surrounds every page: state from the address, errors as one sentence, the status."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from appca.storage.identity import ID_DIGITS
from appca.ui.arrivals import dropping, opening
from appca.ui.frame import memory, status
from appca.ui.frame.icon import icon, logo
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import scripted
from appca.ui.server import inside, warm_up
from appca.ui.server.routes import base
from appca.ui.session import callbacks, history, selection, services, state, watching
from appca.ui.session.callbacks import TOLD, sentence
from appca.ui.session.state import KEYS
from appca.words.errors import InputError

STYLE = Path(__file__).with_name("style.css")
_listener = scripted(__file__)  # for undo and redo by keys and Back
_ahead = inside.scripts("Selectbox", "PlotlyChart", "DataFrame", "StreamlitSyntaxHighlighter")


def around_page(draw: Callable[[], None], name: str) -> None:
    """Prepare the session, draw a page, and show what either refuses as one sentence."""
    callbacks.wait()
    memory.tidy()
    # What comes and goes stands in one place of its own: the browser numbers the parts of a page,
    # and would build all pictures anew when one more stands above them.
    above, below = st.container(key="above"), st.container(key="status", horizontal=True)
    st.session_state[status.NOTE] = below.container(horizontal=True, key="status_note")
    with above:
        st.html(STYLE)
        _listener(
            key="appca-frame",
            data={"ahead": _ahead, "base": base()},
            on_undo_change=history.undo,
            on_redo_change=history.redo,
        )
    st.logo(logo(), size="large", icon_image=icon())
    try:
        with warm_up.drawing():
            with above:
                _prepare()
                if name != "data":  # there it would hide what it leads to
                    opening.assumed()
            draw()
            history.record()
            _write_address(tab=st.session_state[KEYS.tab])
    except TOLD as error:
        st.error(markdown(sentence(error)))
    status.draw(below)


def _prepare() -> None:
    address = dict(st.query_params)
    st.session_state[KEYS.tab] = None  # until the page draws its tabs
    if state.begin():
        watching.adopt(address.get("run"))
        selection.restore(state.current_dataset(), address.get("sel"))
        history.begin_at(address.get("step"))
        _say_what_is_not_shown(address.get("run", ""))
    elif inside.went():
        history.follow(address)
    _leave_what_is_gone()
    watching.settle()
    history.record()
    _write_address()  # also now: a reload may come before the page is finished
    dropped = dropping.anywhere()
    if dropped is not None:
        opening.arrive(dropped)
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


def _leave_what_is_gone() -> None:
    """Go back to the digits when the data set on screen was deleted or damaged meanwhile."""
    try:
        state.current_dataset()
    except InputError as error:
        state.notify("error", str(error))
        state.open_first()


def _write_address(**more: str | None) -> None:
    if state.is_ready():
        token, step = selection.token(state.current_dataset()), history.number()
        state.write_address(sel=token, step=step, **more)
