"""K and L in the bar: a slider with a number for each, and in words what they mean."""

from collections.abc import Mapping
from math import comb

import streamlit as st

from appca.data.dataset import Dataset
from appca.runs.configuration import MOST_COMPONENTS, RunConfig
from appca.ui.parts.widgets import scripted
from appca.ui.session import state
from appca.ui.session.callbacks import guarded
from appca.ui.session.state import KEYS
from appca.words.wording import counted

MOST_ON_SLIDER = 12  # more can be typed
MOVING = "sizes_moving"
_follow = scripted(__file__)


def k_and_l(dataset: Dataset) -> None:
    """Draw K and L; a change is fitted at once."""
    now = state.config()
    # A run of the command line may allow more components than the data have features.
    most = max(state.most_components(now, dataset), now.k)
    active = now.chosen_size
    hint = meaning(dataset, now.k, active)
    with st.container(
        key="bar_sizes", horizontal=True, vertical_alignment="center", gap="small", width="content"
    ):
        _size("K", "k", now.name_of_k, now.k, most, hint)
        if active is not None:
            _size("L", "l", "n_active", active, most, hint)
        elif "n_active" in now.parameters:
            st.markdown("L learned", width="content")
        _follow(key=MOVING, data=now.sizes, on_moving_change=lambda: None)


def moved_to() -> RunConfig | None:
    """Return the configuration over which a slider moves; None at rest, and where it is taken."""
    told = st.session_state.get(MOVING)
    moving = told.get("moving") if isinstance(told, Mapping) else None
    if not isinstance(moving, Mapping):
        return None
    value = moving.get("value")
    if type(value) is not int or not 1 <= value <= MOST_COMPONENTS:
        return None
    wanted = state.with_parameters(**_changes(moving.get("size") == "l", value))
    return None if wanted == state.config() else wanted


def meaning(dataset: Dataset, k: int, active: int | None) -> str:
    """Say what K and L are, with the present numbers."""
    row = "image" if dataset.image_shape else "row"
    if active is None:
        return f"Each {row} uses any of at most K = {k} components, as many as fit it."
    if active >= k:
        return f"Each {row} uses all K = {k} components, as in PCA."
    alike = "the same one" if active == 1 else f"the same {active}"
    panels = comb(k, active)
    rough = f"{panels:,}" if panels < 10**6 else "more than a million"
    text = (
        f"K = {k} components in all; each {row} uses the L = {active} that fit it best. "
        f"{row.capitalize()}s with {alike} share one of {rough} panels."
    )
    return text if panels <= dataset.n_rows else f"{text} Most stay empty: try a smaller L."


def _size(label: str, name: str, parameter: str, value: int, most: int, hint: str) -> None:
    fixed = most < 2
    slider, top = _widget(name, value)
    typed, _ = _widget(f"{name}_typed", value)
    st.slider(
        label,
        1,
        max(min(top, most), 2),
        value,
        key=slider,
        on_change=_changed,
        args=[name, slider, parameter],
        width=132 if label == "K" else 110,
        disabled=fixed,
        help=hint if label == "K" else None,
    )
    st.number_input(
        f"{label}, up to {counted(most, 'component')}",
        1,
        most,
        value,
        key=typed,
        on_change=_changed,
        args=[f"{name}_typed", typed, parameter],
        label_visibility="collapsed",
        width=48,
        disabled=fixed,
    )


def _widget(name: str, value: int) -> tuple[str, int]:
    """Return the key of the widget that shows a size, and how far it goes as a slider.

    Where the last one shows another size, this is a new widget. If the server set the old one, a
    request that the browser sent before it had that would look like a change by hand back to the
    old size.
    """
    drawn: dict[str, tuple[str, int]] = st.session_state.setdefault(KEYS.sizes, {})
    key, top = drawn.get(name, (f"{name}-0", MOST_ON_SLIDER))
    if st.session_state.get(key, value) != value:
        key, top = f"{name}-{int(key.rpartition('-')[2]) + 1}", MOST_ON_SLIDER
    drawn[name] = key, max(top, value)
    return drawn[name]


@guarded
def _changed(name: str, key: str, parameter: str) -> None:
    """Take over a size; a widget that is gone tells only what it showed."""
    if st.session_state[KEYS.sizes][name][0] == key:
        state.set_parameters(**_changes(parameter == "n_active", st.session_state[key]))


def _changes(is_l: bool, value: int) -> dict[str, int]:
    """Return what a new size changes; L pushes K up before it, K pushes L down."""
    now = state.config()
    if is_l and "n_active" in now.parameters:
        return {"n_active": value, "n_components": max(now.k, value)}
    return {now.name_of_k: value}
