"""The components in the drawer: picture, number, name, share of variance, and the rows using it."""

import numpy as np
import streamlit as st

from appca.analysis.components.components import own_name, patterns
from appca.analysis.explore.projection import explained_share, variance_shares
from appca.analysis.fitted import FittedRun
from appca.canvas.scene.pictures import picture_list
from appca.data.dataset import Dataset
from appca.plots.components.components import data_uri, picture_shape
from appca.runs.labels import NAME_LENGTH
from appca.runs.store import Run
from appca.ui.parts.component_list import loadings
from appca.ui.parts.selection_tools import select_button
from appca.ui.parts.text import apart, tag
from appca.ui.parts.widgets import first_of_page
from appca.ui.session import names, state
from appca.ui.session.caching import by_key
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.words.numbers import percent
from appca.words.wording import counted

PAGE = 20  # components at a time


def listing(dataset: Dataset, shown: Shown) -> None:
    """Draw the list."""
    fitted = shown.fitted
    total = len(fitted.components)
    whole = percent(explained_share(fitted), 1)
    st.caption(f"{counted(total, 'component')}, {whole} of the variance")
    first = first_of_page(total, PAGE, f"drawer-components-{state.config().id}")
    cards = _cards(shown.key, dataset, fitted)
    with st.container(key="drawer_components"):
        for k in range(first, min(first + PAGE, total)):
            _component(dataset, shown, k, *cards[k])


def pictures(dataset: Dataset, fitted: FittedRun) -> list[tuple[str, str]]:
    """Return of each component its picture, empty where there is none, and its bars, as HTML."""
    shares = variance_shares(fitted)
    largest = max(float(shares.max()), np.finfo(float).tiny)
    every = patterns(fitted, picture_shape(dataset))
    drawn = picture_list(fitted, dataset, dark=False)
    rows = []
    for k, (pattern, share) in enumerate(zip(every, shares, strict=True)):
        alt = f"Component {k + 1}"
        picture = tag("img", "", src=data_uri(drawn[k]), alt=alt) if drawn else ""
        bar = tag("div", tag("div", "", style=f"width:{share / largest:.0%}"), "ca-track")
        weights = "" if picture else loadings(pattern, dataset.feature_names)
        line = tag("div", bar + tag("span", percent(share, 1)), "ca-bar-share")
        rows.append((picture, line + weights))
    return rows


_cards = by_key(32)(pictures)


def _component(dataset: Dataset, shown: Shown, k: int, picture: str, bars: str) -> None:
    number, users = k + 1, shown.fitted.active[:, k]
    with st.container(key=f"drawer-component-{k}", horizontal=True, gap="small"):
        if picture:
            ground = "ca-inverted" if st.context.theme.type == "dark" else ""
            st.html(tag("div", picture, ground), width="content")
        with st.container(gap=None):
            with st.container(horizontal=True, vertical_alignment="center", gap=None):
                st.html(tag("b", str(number)), width="content")
                _name(shown, number, k)
                st.button(
                    apart("", f"Flip the sign of component {number}"),
                    key=f"flip-{k}",
                    icon=":material/swap_horiz:",
                    type="tertiary",
                    disabled=shown.run is None,
                    help="Swap red and blue: the sign of a component is arbitrary.",
                    on_click=names.flip,
                    args=[shown.run, k],
                )
            st.html(bars)
            label = f"used by {percent(float(users.mean()))} of rows"
            look = {"type": "tertiary", "help": "Select these rows"}
            select_button(label, dataset, users, f"users-{k}", **look)


def _name(shown: Shown, number: int, k: int) -> None:
    name = own_name(shown.fitted, k)
    key = f"name-{shown.config.id}-{number}"
    if st.session_state.get(key) != name:
        st.session_state[key] = name
    st.text_input(
        f"Name of component {number}",
        key=key,
        max_chars=NAME_LENGTH,
        placeholder="Name it",
        label_visibility="collapsed",
        disabled=shown.run is None,
        on_change=_rename,
        args=[shown.run, k, key],
    )


@guarded
def _rename(run: Run | None, component: int, key: str) -> None:
    names.rename(run, component, st.session_state[key])
