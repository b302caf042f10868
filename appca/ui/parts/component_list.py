"""The components of a run at the side: what each looks like, explains, and how many rows use it."""

import numpy as np
import streamlit as st

from appca.analysis.components.components import name_of
from appca.analysis.explore.projection import variance_shares
from appca.analysis.fitted import FittedModel, FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import percent, signed
from appca.plots.components.components import component_image, data_uri, ranked_loadings
from appca.ui.data import vae
from appca.ui.parts.text import tag, words
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown

MOST_AT_ONCE = 5  # a longer list scrolls, so that the PCA below it stays on the screen
LIST_HEIGHT = 424  # pixels, of five


def component_list(dataset: Dataset, shown: Shown) -> None:
    """Draw the list."""
    tall = len(shown.fitted.components) > MOST_AT_ONCE
    with st.container(height=LIST_HEIGHT if tall else "content", border=False):
        st.html(_cached_cards(shown.key, dataset, shown.fitted))
    vae.note(shown)


def cards(dataset: Dataset, fitted: FittedRun) -> str:
    """Return the list as HTML; of images each component is one, else a list of named features."""
    patterns = in_data_space(fitted) if dataset.image_shape else in_units_of_the_fit(fitted)
    shares = variance_shares(fitted)
    occupancy = fitted.active.mean(axis=0)
    largest = max(float(shares.max()), np.finfo(float).tiny)
    every = (
        _card(dataset, pattern, title_of(fitted, k), share, share / largest, used)
        for k, (pattern, share, used) in enumerate(zip(patterns, shares, occupancy, strict=True))
    )
    return tag("div", "".join(every), "ca-cards")


_cached_cards = by_key(64)(cards)


def in_data_space(model: FittedModel) -> np.ndarray:
    """Return the components (K, D) in the units of the data, whatever came before the fit."""
    return model.preprocessing.directions(model.components.T).T


def in_units_of_the_fit(model: FittedModel) -> np.ndarray:
    """Return the components (K, D) as weights of the features after they were scaled.

    Features of a table have different units: in those, the feature with the largest numbers would
    stand first in every component.
    """
    before = model.preprocessing
    unscaled = before._replace(divide=1.0, scale=np.ones_like(before.scale))
    return unscaled.directions(model.components.T).T


def title_of(model: FittedModel, k: int) -> str:
    """Return the name of component k, counted from 0, as it stands alone: "Component 3"."""
    name = name_of(model, k)
    return name[:1].upper() + name[1:]


def _card(
    dataset: Dataset, pattern: np.ndarray, title: str, share: float, relative: float, used: float
) -> str:
    name = tag("div", words(title), "ca-name")
    numbers = tag(
        "div",
        tag("span", f"{percent(share, 1)} of variance")
        + " "
        + tag("span", f"used by {percent(used)} of rows"),
        "ca-quiet ca-numbers",
    )
    if dataset.image_shape is None:
        return tag("div", tag("div", name + loadings(dataset, pattern) + numbers), "ca-card")
    bar = tag("div", tag("div", "", style=f"width:{relative:.0%}"), "ca-track")
    picture = data_uri(component_image(pattern, dataset.image_shape))
    image = tag("img", "", src=picture, alt=title)
    return tag("div", image + tag("div", name + bar + numbers), "ca-card")


def loadings(dataset: Dataset, pattern: np.ndarray) -> str:
    """Return the largest weights of a component (D,) of a table as HTML bars."""
    lines = []
    for item in ranked_loadings(pattern, dataset.feature_names):
        colour = "#b2182b" if item.value > 0 else "#2166ac"
        bar = tag("div", "", style=f"width:{item.share:.0%};background:{colour}")
        text = tag("span", words(item.name), title=f"{item.name}: {signed(item.value)}")
        lines.append(tag("div", text + tag("div", bar, "ca-track"), "ca-loading"))
    return "".join(lines)
