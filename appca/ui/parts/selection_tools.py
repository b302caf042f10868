"""What can be done with the selection: undo, invert, choose by a rule, keep it under a name."""

from typing import Any

import numpy as np
import streamlit as st

from appca.analysis.groups.row_query import (
    MOST_FEATURES,
    OF_CLASSES,
    OF_NUMBERS,
    RowValues,
    column_of,
    matching,
    names_of,
)
from appca.analysis.groups.selections import COMBINATIONS, NAME_LENGTH
from appca.data.dataset import Dataset
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import onward
from appca.ui.session import selection, state
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.words.errors import InputError
from appca.words.wording import counted

RULE, NAMED = "rule", "named"  # prefixes of widget keys
MEMBERSHIP = 0.5  # below it a row is drawn hollow
HIGHEST = 5.0  # per cent


def tools(dataset: Dataset, shown: Shown) -> None:
    """Draw the tools in one line; the same ones in the same order whatever is selected."""
    nothing = np.zeros(dataset.n_rows, dtype=bool)
    is_empty = not selection.get(dataset).any()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        select_button("Clear", dataset, nothing, "tray_clear", type="tertiary", disabled=is_empty)
        st.button(
            "Invert",
            key="tray_invert",
            type="tertiary",
            on_click=guarded(selection.invert),
            args=[dataset],
        )
        with st.popover("By a rule", type="tertiary", key="tray_rule"):
            _by_rule(dataset, shown)
        saved = selection.named(dataset)
        count = f" ({len(saved)})" if saved else ""
        with st.popover(f"Named{count}", type="tertiary", key="tray_named"):
            for sentence in selection.store().damaged(dataset.digest, dataset.n_rows):
                st.warning(markdown(sentence))
            naming(dataset)
            _saved(dataset, {selected.name: selected.mask for selected in saved})


def select_button(label: str, dataset: Dataset, rows: np.ndarray, key: str, **look: Any) -> None:
    """Draw a button that selects rows; see `selection.put`."""
    st.button(label, key=key, on_click=guarded(selection.put), args=[dataset, rows], **look)


def _by_rule(dataset: Dataset, shown: Shown) -> None:
    """Draw a rule on one column, and the four ways to bring its rows into the selection."""
    wanted = ""
    if dataset.image_shape is None and dataset.n_features > MOST_FEATURES:
        wanted = st.text_input(
            "Find features by name", key=f"{RULE}-find", placeholder="part of the name"
        ).strip()
    names = names_of(dataset, shown.fitted, wanted)
    box = f"{RULE}-column-{dataset.digest[:8]}"
    key = st.selectbox("Rows whose", names, format_func=names.__getitem__, key=box)
    column = column_of(dataset, shown.fitted, key)
    try:
        matches = _number_rule(column, key) if column.names is None else _class_rule(column, key)
    except InputError as error:
        st.error(markdown(str(error)))
        return
    st.caption(f"{counted(int(matches.sum()), 'row')} of {dataset.n_rows:,}")
    ways(dataset, matches, RULE)


def _class_rule(column: RowValues, key: str) -> np.ndarray:
    relation = _relation(OF_CLASSES, key)
    chosen = st.multiselect(
        "Classes", column.names or (), key=f"{RULE}-classes-{key}", label_visibility="collapsed"
    )
    return matching(column, relation, chosen)


def _number_rule(column: RowValues, key: str) -> np.ndarray:
    first = "below" if key == "membership" else "highest"
    relation = _relation(OF_NUMBERS, key, first)
    if relation in ("highest", "lowest"):
        usual = HIGHEST
    elif key == "membership":
        usual = MEMBERSHIP
    else:
        there = column.values[np.isfinite(column.values)]
        usual = float(np.median(there)) if len(there) else 0.0
    value = st.number_input(
        "Value",
        value=usual,
        format="%.4g",
        key=f"{RULE}-value-{key}-{relation}",
        label_visibility="collapsed",
    )
    return matching(column, relation, value)


def _relation(relations: dict[str, str], key: str, first: str | None = None) -> str:
    return st.selectbox(
        "Relation",
        relations,
        index=list(relations).index(first) if first else 0,
        format_func=relations.__getitem__,
        key=f"{RULE}-relation-{key}",
        label_visibility="collapsed",
    )


def naming(dataset: Dataset) -> None:
    """Draw the field that keeps the selection under a name."""
    some = bool(selection.get(dataset).any())
    with st.form("name_selection", border=False):
        st.text_input(
            "Keep the selection as",
            key=f"{NAMED}-new",
            max_chars=NAME_LENGTH,
            disabled=not some,
            placeholder="a name" if some else "select rows first",
        )
        st.form_submit_button(
            "Keep", key=f"{NAMED}-keep", disabled=not some, on_click=_keep, args=[dataset]
        )


@guarded
def _keep(dataset: Dataset) -> None:
    """Keep the selection; where that is refused, what was typed stays."""
    older = {old.name: old.mask for old in selection.named(dataset)}
    kept = selection.save(dataset, st.session_state[f"{NAMED}-new"])
    st.session_state[f"{NAMED}-new"] = ""
    st.session_state[f"{NAMED}-which-{dataset.digest[:8]}"] = kept
    if kept in older:
        masks = (selection.get(dataset), older[kept])
        now, before = (counted(int(mask.sum()), "row") for mask in masks)
        text = (
            f"“{kept}” is kept with {now}; it replaced the older one of that name, with {before}."
        )
        state.notify("info", text)


def _saved(dataset: Dataset, masks: dict[str, np.ndarray]) -> None:
    """Draw the choice of a named selection, and what can be done with it."""
    if not masks:
        st.caption("What is kept here survives reloads and restarts.")
        return
    key = f"{NAMED}-which-{dataset.digest[:8]}"
    if st.session_state.get(key) not in masks:
        st.session_state[key] = next(iter(masks))
    name = st.selectbox(
        "Named selection",
        masks,
        format_func=lambda name: f"{name} · {masks[name].sum():,}",
        key=key,
    )
    ways(dataset, masks[name], NAMED)
    onward("groups/named", "Rename, save or delete")


def ways(dataset: Dataset, rows: np.ndarray, prefix: str) -> None:
    """Draw the four ways to bring rows into the selection."""
    with st.container(horizontal=True, gap="small"):
        for how, (title, hint) in COMBINATIONS.items():
            st.button(
                title,
                key=f"{prefix}-{how}",
                help=hint,
                on_click=guarded(selection.combine),
                args=[dataset, rows, how],
            )
