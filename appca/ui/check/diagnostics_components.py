"""Components over the draws of a sampled run: aligned mean and spread, and what they leave open."""

from dataclasses import replace

import numpy as np
import streamlit as st

from appca.analysis.components.alignment import ROUGHLY, AlignedDraws, identification, summarise
from appca.analysis.components.components import name_of, patterns
from appca.analysis.fitted import FittedRun
from appca.plots.components.components import component_image, data_uri
from appca.ui.parts.component_list import loadings
from appca.ui.parts.text import tag, words
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.numbers import percent

MANY_CARDS = 12  # more scroll in a box
CARDS_HEIGHT = 440  # pixels
SIGNS = {"identified": "✓", "roughly identified": "≈", "not identified": "✕", "in few draws": "✕"}


def components(
    shown: Shown, image_shape: tuple[int, ...] | None, names: tuple[str, ...] | None
) -> None:
    """Draw every component's aligned mean, spread, and whether the draws agree about it."""
    st.subheader("Components over the draws", anchor=False)
    st.caption(
        "Mean and standard deviation over the draws, matched in order and sign. |cos| says how "
        "parallel the draws are to the component: 1 is the same direction, 0 a right angle."
    )
    html = kept(f"draws-{shown.key}", lambda: cards(shown.fitted, image_shape, names))
    tall = len(shown.fitted.components) > MANY_CARDS
    with st.container(height=CARDS_HEIGHT if tall else "content", border=False):
        st.html(html)


def cards(
    fitted: FittedRun,
    image_shape: tuple[int, ...] | None,
    names: tuple[str, ...] | None,
) -> str:
    """Return the components as HTML: images, or the largest loadings of a table."""
    found = summarise(
        fitted.posterior["components"],
        fitted.components,
        lambda W: patterns(replace(fitted, components=W), image_shape),
    )
    every = "".join(
        _card(found, k, name_of(fitted, k), image_shape, names) for k in range(len(found.mean))
    )
    grid = "grid-template-columns:repeat(auto-fill,minmax(260px,1fr))"
    return tag("div", every, "ca-cards", style=grid)


def _card(
    found: AlignedDraws,
    k: int,
    called: str,
    image_shape: tuple[int, ...] | None,
    names: tuple[str, ...] | None,
) -> str:
    name = tag("div", words(called[:1].upper() + called[1:]), "ca-name")
    lines = "".join(tag("div", words(line)) for line in agreement(found, k))
    text = tag("div", lines, "ca-quiet")
    if image_shape is None:
        bars = loadings(found.mean[k], names, found.sd[k])
        return tag("div", tag("div", name + bars + text), "ca-card")
    pictures = _picture(found.mean[k], image_shape, "mean", called)
    pictures += _picture(found.sd[k], image_shape, "sd", called)
    return tag("div", pictures + tag("div", name + text), "ca-card")


def agreement(found: AlignedDraws, k: int) -> list[str]:
    """Say in words how well the draws agree about a component."""
    level = identification(found.cosine[k], found.present[k])
    largest = max(float(np.abs(found.mean[k]).max()), np.finfo(float).tiny)
    lines = [
        f"{SIGNS[level]} {level}",
        f"|cos| {found.cosine[k]:.3f}",
        f"sd up to {percent(found.sd[k].max() / largest)} of the largest weight",
    ]
    if found.present[k] < 1:
        lines.append(f"in {percent(found.present[k])} of the draws")
    of_chains = found.by_chain[:, k]
    apart = np.flatnonzero(of_chains < ROUGHLY) + 1
    if 0 < len(apart) < len(of_chains):
        which = ", ".join(map(str, apart))
        who = f"chain {which} has" if len(apart) == 1 else f"chains {which} have"
        lines.append(f"{who} another in its place")
    return lines


def _picture(values: np.ndarray, image_shape: tuple[int, ...], what: str, called: str) -> str:
    source = data_uri(component_image(values, image_shape))
    image = tag("img", "", src=source, alt=f"{what} of {called}")
    below = tag("div", what, "ca-quiet", style="text-align:center")
    return tag("div", image + below, style="flex:none")
