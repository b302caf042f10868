"""The tab Named: selections kept under a name."""

import time

import numpy as np
import streamlit as st

from appca.analysis.groups.selections import NAME_LENGTH, SavedSelection
from appca.data.dataset import Dataset
from appca.ui.parts import class_choice
from appca.ui.parts.downloads import rows_popover
from appca.ui.parts.rule import kept_elsewhere
from appca.ui.parts.selection_tools import naming, select_button, ways
from appca.ui.parts.text import markdown
from appca.ui.session import selection
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.words.wording import counted

MOST_CLASSES = 20  # offered to begin with


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the field for a new name, and a line for each selection that has one."""
    saved = selection.named(dataset)
    for sentence in selection.store().damaged(dataset.digest, dataset.n_rows):
        st.warning(markdown(sentence))
    answer = counted(len(saved), "named selection") if saved else "Nothing named yet"
    st.markdown(f"**{answer}**")
    if selection.get(dataset).any():
        naming(dataset)
    else:
        _first_class(dataset)
    for saved_selection in saved:
        _line(dataset, shown, saved_selection)
    kept_elsewhere(dataset, shown)


def _first_class(dataset: Dataset) -> None:
    """Offer rows to begin with where nothing is selected."""
    st.caption("Select rows in Explore, or begin with a class, then give them a name.")
    for classes in class_choice.every(dataset)[:1]:
        with st.container(horizontal=True, gap="small"):
            for code, name in enumerate(classes.names[:MOST_CLASSES]):
                rows = classes.codes == code
                label = f"{markdown(classes.title)} {markdown(name)} :gray[{rows.sum():,}]"
                icon = ":material/lasso_select:"
                select_button(label, dataset, rows, f"named_class-{code}", icon=icon)


def _line(dataset: Dataset, shown: Shown, saved_selection: SavedSelection) -> None:
    rows = np.flatnonzero(saved_selection.mask)
    with st.container(border=True, horizontal=True, vertical_alignment="center", gap="small"):
        when = time.strftime("%Y-%m-%d", time.localtime(saved_selection.created))
        st.markdown(f"**{markdown(saved_selection.name)}** · {counted(len(rows), 'row')} · {when}")
        ways(dataset, saved_selection.mask, f"named-{saved_selection.name}")
        with st.popover("Rename", key=f"named_rename-{saved_selection.name}"):
            key = f"named_other-{saved_selection.name}"
            st.text_input(
                "New name",
                saved_selection.name,
                key=key,
                max_chars=NAME_LENGTH,
                on_change=_rename,
                args=[dataset, saved_selection.name, key],
            )
        rows_popover(dataset, shown, rows, key=f"named-{saved_selection.name}")
        with st.popover("Delete", key=f"named_delete-{saved_selection.name}"):
            st.button(
                f"Delete “{markdown(saved_selection.name)}” for good",
                key=f"named_really-{saved_selection.name}",
                on_click=guarded(selection.store().delete),
                args=[dataset.digest, saved_selection.name],
            )


@guarded
def _rename(dataset: Dataset, old: str, key: str) -> None:
    new = st.session_state[key]
    selection.store().rename(dataset.digest, old, new, dataset.n_rows)
