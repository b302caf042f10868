"""The guided first tour: a slim strip below the heading that points at one thing after the other.

It is shown on the first visit, which the home folder remembers, and again when asked for. It stands
in the page and covers nothing. ``APPCA_TOUR=never`` leaves the first one out, for machines that are
driven by scripts or shared by a class.
"""

import os
from contextlib import suppress
from typing import NamedTuple

import streamlit as st

from appca.runs.home import home
from appca.storage import atomic, rights
from appca.ui.parts.text import tag, words
from appca.ui.session.state import KEYS

MEMORY = "tour_seen"  # file in the home folder
ATLAS = ":not(.st-key-pca_beside *)"  # what stands in the picture beside it is not meant
PANEL = f".appca-panel:first-child{ATLAS}"


class Step(NamedTuple):
    """One thing to know, and where it is."""

    title: str
    text: str
    target: str  # CSS selector of what is framed meanwhile


def steps(*, with_l: bool, with_images: bool) -> list[Step]:
    """Return the tour of the page Subspaces, without what a data set or a model does not have."""
    sizes = (
        "K is how many building blocks the data share, L how many of them one row may use. "
        "Every move fits again and redraws the panels."
        if with_l
        else "K is how many building blocks the data share. Every move fits again."
    )
    card = "with the mouse or with the arrow keys, and a card tells what is known of it."
    images = (
        Step("Images on points", f"Their size is set here. Go to one {card}", f".appca-size{ATLAS}")
        if with_images
        else Step("Points", f"Go to a point {card}", PANEL)
    )
    return [
        Step(
            "Panels",
            "Each panel is a subspace: the rows that are built from the same components, placed by "
            "how much of each they take.",
            PANEL,
        ),
        Step("K and L" if with_l else "K", sizes, ".st-key-k, .st-key-l"),
        Step(
            "Colour",
            "Colour the points by class, by how well the model explains them, or by a column of "
            "the data.",
            '[class*="st-key-colour-"]',
        ),
        images,
        Step(
            "Lasso",
            "Draw around points, or click one: they are marked in every panel and on every page, "
            "and the box below the panels tells what they have in common.",
            f'.appca-button[data-action="lasso"]{ATLAS}, .st-key-tray',
        ),
        Step(
            "Export",
            "Take it with you: tables, pictures, and a Python script that makes it again.",
            '[data-testid="stSidebarNav"] a[href*="/export"]',
        ),
    ]


def start() -> None:
    """Begin the tour, whether it was seen or not."""
    st.session_state[KEYS.tour] = 0


def strip(*, with_l: bool, with_images: bool) -> None:
    """Draw the tour where it is due; its place is there always, so that nothing else moves in."""
    with st.container(key="tour"):
        if _is_on():
            _strip(steps(with_l=with_l, with_images=with_images))


def _is_on() -> bool:
    if KEYS.tour not in st.session_state:
        st.session_state[KEYS.tour] = 0 if _is_first_visit() else None
    return st.session_state[KEYS.tour] is not None


def _is_first_visit() -> bool:
    """Whether nobody has seen the tour here; says so once."""
    memory = home() / MEMORY
    if os.environ.get("APPCA_TOUR") == "never" or memory.exists():
        return False
    with suppress(OSError):  # a home that cannot be written to forgets, and the page works
        rights.make_folder(memory.parent)
        atomic.write(memory, b"")
    return True


@st.fragment
def _strip(all_steps: list[Step]) -> None:
    now = st.session_state[KEYS.tour]
    if now is None:
        return
    last = len(all_steps) - 1
    now = min(now, last)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="tour_strip"):
        st.html(_text(all_steps[now], f"{now + 1} of {len(all_steps)}"))
        with st.container(horizontal=True, gap="small", width="content"):
            _button("Back", "back", now - 1, disabled=now == 0)
            if now < last:
                _button("Next", "next", now + 1)
            _button("Done" if now == last else "Close", "close", None)


def _button(label: str, key: str, to: int | None, *, disabled: bool = False) -> None:
    st.button(label, key=f"tour_{key}", on_click=_go, args=[to], disabled=disabled)


def _go(to: int | None) -> None:
    st.session_state[KEYS.tour] = to


def _text(step: Step, place: str) -> str:
    frame = f"<style>{step.target} {{ outline: 3px solid #d97706; outline-offset: 0; }}</style>"
    body = f"{tag('span', words(place))} {tag('b', words(step.title))}: {words(step.text)}"
    return frame + tag("div", body, "ca-tour", role="status")
