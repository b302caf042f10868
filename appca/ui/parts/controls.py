"""The controls above the atlas: K and L, colouring, and which panels are shown."""

from functools import partial
from typing import Any

import streamlit as st

from appca.analysis.explore.subspaces import opens_in_pair_view
from appca.analysis.groups.row_query import feature_name
from appca.data.dataset import Dataset
from appca.storage.wording import capital, counted
from appca.ui.explore import sizes_help
from appca.ui.explorer import panels
from appca.ui.parts.text import HELP_K, HELP_L, markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import state
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.ui.session.state import KEYS

FEW = 5  # colourings that fit side by side as buttons
FEATURE = "feature"  # the choice of colours that needs another choice, of the feature
MOST_LISTED = 1024  # features in a list; it goes to the browser at each change of the page
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
SLIDER = 132  # pixels
MOST_ON_SLIDER = 12  # more components are set on the page Fit


def heading(title: str) -> st.delta_generator.DeltaGenerator:
    """Draw the bar on top of a page with its title, and return the place beside it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="bar"):
        st.title(title, anchor=False, width="content")
        return st.container(horizontal=True, vertical_alignment="center", gap="small")


def of_panels(shown: Shown) -> str:
    """Return what each row is made of, and which rows share a panel."""
    k, active = len(shown.fitted.components), shown.config.n_active
    if not shown.fitted.active.any():
        return "No row uses any component: beyond the average, the model takes all of it for noise."
    if active is None:
        return (
            f"Every row is the average plus any number of {counted(k, 'component')}, those that "
            f"fit it best; up to {shown.config.k} were allowed. Rows with the same choice share a "
            "panel."
        )
    if active == k:
        every = "the one component, by its" if k == 1 else f"all {k} components, each by its"
        return f"Every row is the average plus {every} own amount."
    best = "the one that fits" if active == 1 else f"the {active} that fit"
    return (
        f"Every row is the average plus {active} of {k} components, {best} it best. Rows with "
        "the same choice share a panel."
    )


def k_and_l(dataset: Dataset) -> None:
    """Draw the sliders for K and L; moving one fits at once.

    Both have the same range: a slider of another range is another slider to Streamlit, and while
    K moved, the old ones would stay on the page until the fit is done.
    """
    now = state.config()
    # A run of the command line may allow more components than the data have features.
    most = min(max(state.most_components(now, dataset), now.k), max(MOST_ON_SLIDER, now.k))
    label = "Components K" if now.name_of_k == "n_components" else "At most K"
    _slider(label, KEYS.k, now.name_of_k, now.k, most, f"Components, K. {HELP_K}")
    if "n_active" in now.parameters:
        active = now.parameters["n_active"]
        help_text = f"Components each row uses, L. {HELP_L}"
        _slider("Used by each row L", KEYS.l, "n_active", active, most, help_text)
    sizes_help.explain(now.k, now.parameters.get("n_active"), dataset.n_rows)


def _slider(label: str, key: str, parameter: str, value: int, most: int, help_text: str) -> None:
    box: dict[str, Any] = {"help": help_text, "width": SLIDER}
    if most < 2:
        st.slider(label, 1, 2, 1, key=f"{key}-fixed", disabled=True, **box)
        return
    # Only where it differs: what a run sets moves the slider back that a person moves meanwhile.
    # One of another range is another slider, and begins anew.
    of_range = f"{key}-most"
    if (st.session_state.get(key), st.session_state.get(of_range)) != (value, most):
        st.session_state[key], st.session_state[of_range] = value, most
    st.slider(label, 1, most, key=key, on_change=_changed, args=[key, parameter], **box)


@guarded
def _changed(key: str, parameter: str) -> None:
    """Take over a slider; L pushes K up before it, K pushes L down."""
    changes = {parameter: st.session_state[key]}
    if parameter == "n_active":
        changes["n_components"] = max(state.config().k, changes[parameter])
    state.set_parameters(**changes)


def colouring(dataset: Dataset) -> str:
    """Draw the choice of colours and return its key; see `panels.colour_of`."""
    one = "column" if dataset.image_shape is None else "pixel"
    choices = panels.colour_choices(dataset) | {FEATURE: f"{one}…"}
    names = {key: capital(name) for key, name in choices.items()}
    key = f"colour-{dataset.digest[:8]}"
    help_text = (
        "Residual: how far a row lies from its reconstruction. Membership: how sure the model "
        "is of the row's subspace. Density: how probable the whole row is. "
        f"{one.capitalize()}: the values of one {one} of the data."
    )
    if len(names) <= FEW:
        safe = {key: markdown(name) for key, name in names.items()}
        chosen = one_of("Colour by", safe, key=key, help_text=help_text)
    else:
        chosen = st.selectbox(
            "Colour by",
            names,
            format_func=names.__getitem__,
            key=key,
            persist_state="session",
            help=help_text,
            width=200,
        )
    return _feature(dataset, one.capitalize()) if chosen == FEATURE else chosen


def _feature(dataset: Dataset, label: str) -> str:
    """Draw the choice of one feature, by name or, of very many, by number; return its key."""
    own: dict[str, Any] = {"key": f"feature-{dataset.digest[:8]}", "persist_state": "session"}
    total, first = dataset.n_features, _middle(dataset)
    if total > MOST_LISTED:
        text = (
            f"By its number, 1 to {total:,}, for up to {MOST_LISTED:,} are listed by name; the "
            "legend names it. Rows whose value is missing are grey."
        )
        number = st.number_input(label, 1, total, first + 1, help=text, width=150, **own)
        return f"{FEATURE}:{number - 1}"
    text = "Type to find one. Rows whose value is missing are grey."
    names = partial(feature_name, dataset)
    j = st.selectbox(label, range(total), first, format_func=names, help=text, width=230, **own)
    return f"{FEATURE}:{j}"


def _middle(dataset: Dataset) -> int:
    """Return the feature to begin with: the first, but of images the middle, no dark corner."""
    if dataset.image_shape is None:
        return 0
    height, width, *channels = dataset.image_shape
    return (height // 2 * width + width // 2) * (channels[0] if channels else 1)


def which_panels(shown: Shown) -> tuple[bool, tuple[int, int], int]:
    """Draw what chooses the panels, where there is a choice; return by_pair, axes and page."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        by_pair, axes = _kind_of_panels(shown)
        page = _pager(shown, by_pair)
    return by_pair, axes, page


def _kind_of_panels(shown: Shown) -> tuple[bool, tuple[int, int]]:
    active = shown.fitted.active
    choices = panels.axis_choices(active)
    if len(choices) < 2:
        return False, (0, 1)
    tail = f"{shown.config.k}-{shown.config.n_active}"
    kinds, first = {False: "Subspaces", True: "Pairs"}, opens_in_pair_view(active)
    by_pair = one_of(
        "Panels", kinds, default=first, key=f"panels-{tail}", label_visibility="collapsed"
    )
    if by_pair:
        st.caption("Each panel: the rows that use both components, whatever else they use.")
        return True, (0, 1)
    axes = st.selectbox(
        "Axes",
        choices,
        format_func=lambda pair: f"Axes: {_ordinal(pair[0])} and {_ordinal(pair[1])}",
        key=f"axes-{tail}",
        persist_state="session",
        label_visibility="collapsed",
        width=215,
    )
    return False, axes


def _pager(shown: Shown, by_pair: bool) -> int:
    """Draw the page numbers of a long atlas; return the page, counted from 0."""
    total = panels.count(shown.fitted.active, by_pair)
    pages = -(-total // panels.PAGE)
    if pages < 2:
        return 0
    kind = "pair" if by_pair else "subspace"
    place = st.empty()  # of the words, which need the page
    page = st.pagination(
        pages,
        key=f"page-{shown.config.id}-{kind}",
        persist_state="session",
        width=120 + 48 * min(pages, 7),
    )
    first = (page - 1) * panels.PAGE
    last = min(first + panels.PAGE, total)
    place.caption(f"{first + 1}–{last} of {counted(total, kind)}, fullest first", width="content")
    return page - 1


def point_size() -> int:
    """Draw the choice of the points' size."""
    sizes = [2, 3, 4, 5, 6, 8]
    own: dict[str, Any] = {"key": "point_size", "persist_state": "session"}
    return st.select_slider("Point size", sizes, value=3, width=70, **own)


def _ordinal(place: int) -> str:
    return ORDINALS[place] if place < len(ORDINALS) else f"{place + 1}th"
