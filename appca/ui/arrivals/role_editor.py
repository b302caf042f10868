"""What each column of a table is for, to look at and change, also where there are thousands."""

from typing import Any

import numpy as np
import streamlit as st

from appca.data.readers.tables.roles import ROLES
from appca.ui.parts.text import markdown
from appca.ui.session.callbacks import guarded
from appca.words.wording import counted, shortened

MOST_ROWS = 200  # of the editor; of more columns it shows those that were looked for
_ROLE = "used as"
Report = dict[str, Any]  # of files, as the readers make it


def roles(key: str, report: Report, begun: dict[str, str]) -> dict[str, str]:
    """Draw the columns' roles; return those that are not the reader's own.

    `begun` are those with which the files were opened.
    """
    changed: dict[str, str] = st.session_state.setdefault(f"changed-{key}", dict(begun))
    guessed = report.get("roles")
    if guessed:
        with st.expander("What each column is for", expanded=True):
            names = _look_for(key, guessed, changed) if len(guessed) > MOST_ROWS else list(guessed)
            _editor(key, report, names, changed)
    return changed


def offer_labels(key: str, report: Report) -> None:
    """Offer to use as labels the features that hold few whole numbers, such as a group's."""
    changed: dict[str, str] = st.session_state[f"changed-{key}"]
    likely = {name: n for name, n in report.get("likely_labels", {}).items() if name not in changed}
    if not likely:
        return
    st.caption("Used as features, though they may be labels:")
    with st.container(horizontal=True):
        for name, n in likely.items():
            st.button(
                f"Use {markdown(f'“{shortened(name)}”')} as a label",
                key=f"label-{key}-{name}",
                help=f"It holds {counted(n, 'whole number')}.",
                on_click=_set_all,
                args=[key, [name], "label", changed],
            )


def matching(names: list[str], wanted: str) -> list[str]:
    """Return the names that hold a text, whatever its case."""
    return [name for name in names if wanted.casefold() in name.casefold()]


def _look_for(key: str, guessed: dict[str, str], changed: dict[str, str]) -> list[str]:
    """Draw a search over many columns; return those to show, the special ones first."""
    wanted = st.text_input(
        "Find columns by name", key=f"find-{key}", placeholder="part of the name"
    )
    names = matching(list(guessed), wanted.strip())
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    label = f"Use all {counted(len(names), 'column')} found as"
    role = left.selectbox(label, ROLES, index=2, key=f"role_of_all-{key}")
    right.button(
        "Set",
        key=f"set_all-{key}",
        width="stretch",
        disabled=not wanted.strip() or not names,
        on_click=_set_all,
        args=[key, names, role, changed],
    )
    shown = sorted(names, key=lambda name: guessed[name] == "feature")[:MOST_ROWS]
    st.caption(f"{len(shown):,} of {counted(len(guessed), 'column')} shown.")
    return shown


@guarded
def _set_all(key: str, names: list[str], role: str, changed: dict[str, str]) -> None:
    changed |= dict.fromkeys(names, role)
    st.session_state[f"edition-{key}"] = st.session_state.get(f"edition-{key}", 0) + 1


def _editor(key: str, report: Report, names: list[str], changed: dict[str, str]) -> None:
    import pandas as pd

    place = f"roles-{key}-{st.session_state.get(f'edition-{key}', 0)}-{hash(tuple(names))}"
    # The roles with which the editor began: it keeps its own changes for as long as it is drawn,
    # and would lose them with other data.
    if place not in st.session_state:
        st.session_state[f"{place}-base"] = dict(changed)
    base = st.session_state[f"{place}-base"]
    now = report["roles"] | base
    gaps, why = report.get("missing", {}), report.get("left_out", {})
    table = pd.DataFrame(
        {
            "column": names,
            _ROLE: [now[name] for name in names],
            "holds": [report.get("kinds", {}).get(name, "numbers") for name in names],
            "missing": np.array([gaps.get(name, 0) for name in names], dtype=np.int64),
            "left out because": [why.get(name, "") for name in names],
        }
    )
    st.data_editor(
        table,
        key=place,
        hide_index=True,
        width="stretch",
        disabled=["column", "holds", "missing", "left out because"],
        column_config={_ROLE: st.column_config.SelectboxColumn(options=list(ROLES), required=True)},
        on_change=_take,
        args=[place, names, changed],
    )


@guarded
def _take(place: str, names: list[str], changed: dict[str, str]) -> None:
    for row, cells in st.session_state[place]["edited_rows"].items():
        if _ROLE in cells:
            changed[names[row]] = cells[_ROLE]
