"""Which row the page Point shows: by id or number, or stepping through the selection."""

import numpy as np
import streamlit as st

from appca.data.dataset import Dataset
from appca.ui.parts.text import apart, markdown
from appca.ui.session import selection
from appca.ui.session.callbacks import guarded
from appca.ui.session.state import KEYS

PARAMETER = "row"  # in the address
WANTED = "point_wanted"
LONGEST = 200  # characters
LONGEST_NUMBER = 16  # digits


def chosen(dataset: Dataset) -> int:
    """Return the row on screen: the one last chosen, the address's, or the first selected one."""
    rows = st.session_state.setdefault(KEYS.points, {})
    selected = np.flatnonzero(selection.get(dataset)).tolist()
    alone = selected[0] if len(selected) == 1 else None
    if alone != rows.get(f"alone-{dataset.digest}"):  # selected since
        rows[f"alone-{dataset.digest}"] = alone
        rows |= {} if alone is None else {dataset.digest: alone}
    if dataset.digest not in rows:
        wanted = st.query_params.get(PARAMETER, "")
        linked = _by_id(dataset, wanted)
        rows[dataset.digest] = [*selected, 0][0] if linked is None else linked
        if wanted and linked is None:
            st.session_state[WANTED] = wanted[:LONGEST]  # as if it had been typed
    row: int = min(rows[dataset.digest], dataset.n_rows - 1)
    st.query_params[PARAMETER] = str(dataset.ids[row])
    return row


def show(dataset: Dataset, row: int) -> None:
    """Look at this row from now on, and ring it in the picture."""
    rows = st.session_state.setdefault(KEYS.points, {})
    rows |= {dataset.digest: int(row), f"held-{dataset.digest}": True}


def hold(dataset: Dataset, row: int | None) -> None:
    """Show the row that a click in the picture holds beside it; None lets go of it."""
    if row is None:
        st.session_state.setdefault(KEYS.points, {}).pop(f"held-{dataset.digest}", None)
        return
    show(dataset, row)
    st.query_params["tab"] = "point"


def held(dataset: Dataset) -> int | None:
    """Return the row on screen where it is ringed in the picture, until a click lets go of it."""
    is_held = f"held-{dataset.digest}" in st.session_state.get(KEYS.points, {})
    return chosen(dataset) if is_held else None


def choose(dataset: Dataset) -> int:
    """Draw what chooses a row, and return the row."""
    row = chosen(dataset)
    through = np.flatnonzero(selection.get(dataset))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.text_input(
            "Find a row",
            key=WANTED,
            placeholder="Row id or number",
            max_chars=LONGEST,
            width=160,
            label_visibility="collapsed",
            on_change=_search,
            args=[dataset],
        )
        _step(dataset, row, through, -1)
        _step(dataset, row, through, 1)
    text = st.session_state.get(WANTED, "").strip()
    if text:  # there only until a row is found
        st.warning(
            f"No row has “{markdown(text)}” in its id, and there is no row of that number; "
            f"numbers go from 1 to {dataset.n_rows:,}."
        )
    return row


def find(dataset: Dataset, text: str) -> int | None:
    """Return the row a text stands for: by its id, else its number from 1, else part of its id.

    Of several rows whose ids have that part it is the first, as in the search of the picture.
    """
    text = text.strip()
    exact = _by_id(dataset, text)
    if exact is not None or not text:
        return exact
    if text.isdecimal() and len(text) < LONGEST_NUMBER and 1 <= int(text) <= dataset.n_rows:
        return int(text) - 1
    matches = np.flatnonzero(np.char.find(np.char.lower(dataset.ids), text.lower()) >= 0)
    return int(matches[0]) if len(matches) else None


def _by_id(dataset: Dataset, text: str) -> int | None:
    matches = np.flatnonzero(dataset.ids == text)
    return int(matches[0]) if len(matches) else None


@guarded
def _search(dataset: Dataset) -> None:
    row = find(dataset, st.session_state[WANTED])
    if row is not None:
        show(dataset, row)
        st.session_state[WANTED] = ""


def _step(dataset: Dataset, row: int, through: np.ndarray, by: int) -> None:
    target = neighbour(row, through, dataset.n_rows, by)
    word = "selected row" if len(through) else "row"
    st.button(
        apart("", "Previous row" if by < 0 else "Next row"),
        key=f"point_{'previous' if by < 0 else 'next'}",
        icon=f":material/chevron_{'left' if by < 0 else 'right'}:",
        disabled=target is None,
        on_click=guarded(show),
        args=[dataset, target],
        help=f"The {'one before' if by < 0 else 'next one'}, {word} by {word}.",
    )


def neighbour(row: int, through: np.ndarray, n_rows: int, by: int) -> int | None:
    """Return the row before (-1) or after (1), among `through` if that has rows; None at an end."""
    among = through if len(through) else np.arange(n_rows)
    place = np.searchsorted(among, row) - 1 if by < 0 else np.searchsorted(among, row, side="right")
    return int(among[place]) if 0 <= place < len(among) else None
