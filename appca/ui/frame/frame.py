"""What surrounds every page: state from the address, errors as one sentence, the status."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import streamlit as st
from PIL import Image

from appca.plots.palette import CATEGORICAL
from appca.storage.errors import InputError
from appca.storage.identity import ID_DIGITS
from appca.ui.data.files import dropping, opening
from appca.ui.frame import browser, cold_start, memory, page_turn, status, upload_limit
from appca.ui.parts.text import markdown
from appca.ui.session import history, selection, services, state, watching
from appca.ui.session.callbacks import TOLD, sentence
from appca.ui.session.state import KEYS

STYLE = Path(__file__).with_name("style.css")
SIDE = 96
PLANES = dict(zip((90, 30, -30), CATEGORICAL[:3], strict=True))  # angle, in degrees: colour


def around_page(draw: Callable[[], None]) -> None:
    """Prepare the session, draw the page, and show what either refuses as one sentence."""
    memory.tidy()
    upload_limit.bound()
    # What comes and goes stands in one place of its own: the browser numbers the parts of a page,
    # and would build all pictures anew when one more stands above them.
    above, below = st.container(key="above"), st.container(key="status", horizontal=True)
    st.session_state[status.NOTE] = below.container(horizontal=True, key="status_note")
    with above:
        st.html(STYLE)
        cold_start.close_false_alarm()
        browser.listen()
    st.logo(logo(), size="large", icon_image=icon())
    try:
        with page_turn.turn():
            with above:
                _prepare()
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
    else:
        history.follow(address)
    _leave_what_is_gone()
    watching.settle()
    history.record()
    _write_address()  # also now: a reload may come before the page is finished
    dropped = dropping.anywhere()
    if dropped is not None:
        opening.arrive(dropped)
    for refusal in upload_limit.refusals():
        state.notify("error", refusal)
    for notice in state.take_notices():
        box = {"error": st.error, "info": st.info, "success": st.success}[notice.kind]
        box(markdown(notice.text))
    opening.assumed()


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


@cache
def icon() -> Image.Image:
    """Return the mark on a transparent ground."""
    y, x = np.mgrid[:SIDE, :SIDE] / (SIDE - 1) * 2 - 1
    picture = np.zeros((SIDE, SIDE, 4), np.uint8)
    for angle, hexcode in PLANES.items():
        turn = np.deg2rad(angle)
        along, across = x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)
        inside = (np.abs(across) < 0.17) & (np.abs(along) < 0.95)
        picture[inside] = [*bytes.fromhex(hexcode[1:]), 255]
    return Image.fromarray(picture)


def logo() -> str:
    """Return the mark with the app's name as SVG; the grey reads on light and on dark."""
    lines = "".join(
        f'<line x1="-17" y1="0" x2="17" y2="0" stroke="{hexcode}" stroke-width="6.5" '
        f'transform="rotate({-angle})"/>'
        for angle, hexcode in PLANES.items()
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="132" height="40" viewBox="0 0 132 40">'
        f'<g transform="translate(20 20)">{lines}</g>'
        '<text x="48" y="28" font-family="Source Sans, Source Sans Pro, Helvetica, sans-serif" '
        'font-size="25" font-weight="600" fill="#7d8da0">appca</text></svg>'
    )
