"""Controls of several pages: the heading, and the choice of colours."""

from functools import partial
from typing import Any

import streamlit as st

from appca.analysis.groups.row_query import feature_name
from appca.canvas.scene.colours import PANELS, TRUST, colour_choices
from appca.data.dataset import Dataset
from appca.ui.parts.text import markdown
from appca.words.wording import capital

FEATURE = "feature"  # the choice of colours that needs another choice, of the feature
TRUSTS = {TRUST: "Trust of the map", PANELS: "Trust of the panels"}
MOST_RANKED = 5_000  # rows of a data set whose ranks in panels are counted while a page is drawn
MOST_FLAT = 14  # choices that are all in sight
MOST_LISTED = 1024  # features in a list; it goes to the browser at each change of the page


def heading(title: str) -> st.delta_generator.DeltaGenerator:
    """Draw the bar on top of a page with its title, and return the place beside it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="bar"):
        st.title(title, anchor=False, width="content")
        return st.container(horizontal=True, vertical_alignment="center", gap="small")


def colouring(dataset: Dataset, *, with_trust: bool = False, flat: bool = False) -> str:
    """Draw the choice of colours and return its key; see `colours.colour_of`.

    `with_trust` offers the trust of a map that is at hand, `flat` shows all choices at once.
    """
    noun = "column" if dataset.image_shape is None else "pixel"
    offered = {TRUST: with_trust, PANELS: dataset.n_rows <= MOST_RANKED}
    trust = {key: name for key, name in TRUSTS.items() if offered[key]}
    choices = colour_choices(dataset) | trust | {FEATURE: f"{noun}…"}
    names = {key: capital(name) for key, name in choices.items()}
    key, _ = keys(dataset.digest)
    if st.session_state.get(key) not in {None, *choices}:
        del st.session_state[key]  # trust, where there is no map
    help_text = (
        "Residual: how far a row lies from its reconstruction. Membership: how sure the model "
        "is of the row's subspace. Likelihood: how probable the whole row is. "
        "Trust: which rows have false neighbours on the map, or in their panel, near there and far "
        "in the data, or missing ones, near in the data and far there. That of the map is offered "
        f"once there is a map, that of panels up to {MOST_RANKED:,} rows. "
        f"{noun.capitalize()}: the values of one {noun} of the data."
    )
    is_flat = flat and len(names) <= MOST_FLAT
    draw: Any = st.radio if is_flat else st.selectbox  # the first reads Markdown
    chosen = draw(
        "Colour by",
        list(names),
        format_func=lambda key: markdown(names[key]) if is_flat else names[key],
        key=key,
        persist_state="session",
        help=help_text,
        width=200,
    )
    return _feature(dataset, noun.capitalize()) if chosen == FEATURE else chosen


def keys(digest: str) -> tuple[str, str]:
    """Return the keys of the choices of the colouring and of its feature, for a data set."""
    return f"colour-{digest[:8]}", f"{FEATURE}-{digest[:8]}"


def colour_name(dataset: Dataset) -> str:
    """Return the name of the colouring that was chosen last."""
    choices, (colour, feature) = colour_choices(dataset), keys(dataset.digest)
    chosen = st.session_state.get(colour) or next(iter(choices))
    if chosen == FEATURE:
        return feature_name(dataset, st.session_state.get(feature, _middle(dataset)))
    return capital((choices | TRUSTS).get(chosen, ""))


def offers(dataset: Dataset) -> list[tuple[str, str]]:
    """Return what the palette can colour by, features of a table among it: keys and names."""
    choices = [(key, capital(name)) for key, name in colour_choices(dataset).items()]
    if dataset.image_shape is None and dataset.n_features <= MOST_LISTED:
        features = range(dataset.n_features)
        choices += [(f"{FEATURE}:{j}", feature_name(dataset, j)) for j in features]
    return choices


def colour_by(dataset: Dataset, chosen: str) -> None:
    """Colour by one of `offers`; anything else changes nothing."""
    if chosen in dict(offers(dataset)):
        colour, feature = keys(dataset.digest)
        kind, _, number = chosen.partition(":")
        st.session_state[colour] = FEATURE if kind == FEATURE else chosen
        if kind == FEATURE:
            st.session_state[feature] = int(number)


def view_key(active: int | None) -> str:
    """Return the key of the choice of the view of fits whose rows use so many components."""
    return f"view-{active}"


def _feature(dataset: Dataset, label: str) -> str:
    """Draw the choice of one feature, by name or, of very many, by number; return its key."""
    widget: dict[str, Any] = {"key": keys(dataset.digest)[1], "persist_state": "session"}
    total, first = dataset.n_features, _middle(dataset)
    if total > MOST_LISTED:
        text = (
            f"By its number, 1 to {total:,}, for up to {MOST_LISTED:,} are listed by name; the "
            "legend names it. Rows whose value is missing are grey."
        )
        number = st.number_input(label, 1, total, first + 1, help=text, width=150, **widget)
        return f"{FEATURE}:{number - 1}"
    text = "Type to find one. Rows whose value is missing are grey."
    names = partial(feature_name, dataset)
    j = st.selectbox(label, range(total), first, format_func=names, help=text, width=230, **widget)
    return f"{FEATURE}:{j}"


def _middle(dataset: Dataset) -> int:
    """Return the feature to begin with: the first, but of images the middle, no dark corner."""
    if dataset.image_shape is None:
        return 0
    height, width, *channels = dataset.image_shape
    return (height // 2 * width + width // 2) * (channels[0] if channels else 1)
