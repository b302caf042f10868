"""The tab Named: selections kept under a name."""

import time
from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.export.projections import csv_bytes, projection_table
from appca.analysis.groups.selections import NAME_LENGTH, SavedSelection, token_of
from appca.data.dataset import Dataset
from appca.storage.wording import counted
from appca.ui.parts import class_choice
from appca.ui.parts.downloads import save_button, stem_of
from appca.ui.parts.text import markdown
from appca.ui.session import selection, state
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown

NEW = "named_new"


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the field for a new name, and a line for each selection that has one."""
    saved = selection.named(dataset)
    for sentence in selection.damaged(dataset):
        st.warning(markdown(sentence))
    some = int(selection.get(dataset).sum())
    answer = counted(len(saved), "named selection") if saved else "Nothing named yet"
    st.markdown(f"**{answer}**")
    if some:
        st.text_input(
            f"Name the {counted(some, 'selected row')}",
            key=NEW,
            max_chars=NAME_LENGTH,
            placeholder="a name",
            width=320,
            on_change=_keep,
            args=[dataset],
        )
    else:
        _first_class(dataset)
    for one in saved:
        _line(dataset, shown, one)


def _first_class(dataset: Dataset) -> None:
    """Offer rows to begin with where nothing is selected."""
    st.caption("Select rows in Explore, or begin with a class; then give them a name.")
    for classes in class_choice.every(dataset)[:1]:
        code = min(1, len(classes.names) - 1)
        st.button(
            f"Select {markdown(classes.title)} {markdown(classes.names[code])}",
            key="named_first",
            icon=":material/lasso_select:",
            on_click=selection.put,
            args=[dataset, classes.codes == code],
        )


def _line(dataset: Dataset, shown: Shown, one: SavedSelection) -> None:
    rows, token = np.flatnonzero(one.mask), token_of(one.mask)
    with st.container(border=True, horizontal=True, vertical_alignment="center", gap="small"):
        when = time.strftime("%Y-%m-%d", time.localtime(one.created))
        st.markdown(f"**{markdown(one.name)}** · {counted(len(rows), 'row')} · {when}")
        st.button(
            "Open",
            key=f"named_open-{token}-{one.name}",
            on_click=selection.put,
            args=[dataset, one.mask],
            disabled=np.array_equal(selection.get(dataset), one.mask),
        )
        with st.popover("Rename", key=f"named_rename-{one.name}"):
            key = f"named_other-{one.name}"
            st.text_input(
                "New name",
                one.name,
                key=key,
                max_chars=NAME_LENGTH,
                on_change=_rename,
                args=[dataset, one.name, key],
            )
        make = partial(_csv, dataset, shown, rows)
        save_button("CSV", make, f"{stem_of(one.name)}.csv", "text/csv", key=f"named-{one.name}")
        with st.popover("Delete", key=f"named_delete-{one.name}"):
            st.button(
                f"Delete “{markdown(one.name)}” for good",
                key=f"named_really-{one.name}",
                on_click=guarded(selection.forget),
                args=[dataset, one.name],
            )


def _csv(dataset: Dataset, shown: Shown, rows: np.ndarray) -> bytes:
    return csv_bytes(projection_table(dataset, shown.fitted, rows))


@guarded
def _keep(dataset: Dataset) -> None:
    """Keep the selection; where that is refused, what was typed stays."""
    older = {one.name: one.mask for one in selection.named(dataset)}
    name = selection.save(dataset, st.session_state[NEW])
    st.session_state[NEW] = ""
    if name in older:
        count = counted(int(older[name].sum()), "row")
        state.notify("info", f"“{name}” replaced the older selection of that name, with {count}.")


@guarded
def _rename(dataset: Dataset, old: str, key: str) -> None:
    selection.rename(dataset, old, st.session_state[key])
