"""Components over the draws of a sampled run: aligned mean and spread, and what they leave open."""

from dataclasses import replace

import numpy as np
import streamlit as st

from appca.analysis.check.choose_stability import resampled
from appca.analysis.components.alignment import ROUGHLY, AlignedDraws, identification, summarise
from appca.analysis.components.components import name_of, patterns
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.components.components import data_uri, picture_of, picture_shape
from appca.runs.fit import estimate_seconds
from appca.ui.check import choose
from appca.ui.parts.component_list import SURE, loadings
from appca.ui.parts.text import tag, words
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.numbers import percent
from appca.words.wording import capital

MANY_CARDS = 12  # more scroll in a box
CARDS_HEIGHT = 440  # pixels
REPEATS, MOST_SECONDS = 20, 2.0  # resamples, and of one fit while a page is drawn
SIGNS = {"identified": "✓", "roughly identified": "≈", "not identified": "✕", "in few draws": "✕"}


def components(dataset: Dataset, shown: Shown, over: str = "draws") -> None:
    """Draw every component's aligned mean, spread, and whether the draws agree about it."""
    st.subheader(f"Components over the {over}", anchor=False)
    st.caption(
        f"Mean and standard deviation over the {over}, matched in order and sign. A weight within "
        "two standard deviations of 0 has no sure sign, so name no component after it: its bar is "
        "hollow, its pixel blank. |cos| "
        f"says how parallel the {over} are to the component: 1 is the same direction, 0 a right "
        "angle."
    )
    html = kept(f"{over}-{shown.key}", lambda: cards(shown.fitted, dataset))
    tall = len(shown.fitted.components) > MANY_CARDS
    with st.container(height=CARDS_HEIGHT if tall else "content", border=False):
        st.html(html)


def spread(dataset: Dataset, shown: Shown) -> None:
    """Draw mean and spread of components over draws; of EM, offer those of resampled rows."""
    if shown.fitted.posterior:
        components(dataset, shown)
    elif estimate_seconds(dataset.n_rows, dataset.n_features, shown.config) > MOST_SECONDS:
        st.caption("Fits to resampled rows take too long here; sample the model instead.")
    elif st.toggle(f"Fit to {REPEATS} resamples of the rows", key="diagnostics_resample"):
        model, parameters = shown.config.model, choose.by_em(shown.config)
        draws = kept(
            f"resampled-{shown.key}",
            lambda: resampled(dataset, shown.fitted, model, parameters, REPEATS),
        )
        again = replace(shown.fitted, posterior={"components": draws})
        components(dataset, shown._replace(fitted=again), "resamples")


def cards(fitted: FittedRun, dataset: Dataset) -> str:
    """Return the components as HTML: pictures, or the largest loadings of a table."""
    aligned = summarise(
        fitted.posterior["components"],
        fitted.components,
        lambda W: patterns(replace(fitted, components=W), picture_shape(dataset)),
    )
    total = range(len(aligned.mean))
    every = "".join(_card(aligned, k, name_of(fitted, k), dataset) for k in total)
    grid = "grid-template-columns:repeat(auto-fill,minmax(260px,1fr))"
    return tag("div", every, "ca-cards", style=grid)


def _card(aligned: AlignedDraws, k: int, called: str, dataset: Dataset) -> str:
    name = tag("div", words(capital(called)), "ca-name")
    lines = "".join(tag("div", words(line)) for line in agreement(aligned, k))
    text = tag("div", lines, "ca-quiet")
    sure = np.abs(aligned.mean[k]) >= SURE * aligned.sd[k]
    drawn = [picture_of(v, dataset) for v in (np.where(sure, aligned.mean[k], 0), aligned.sd[k])]
    pictures = "".join(
        _picture(values, what, called)
        for values, what in zip(drawn, ("mean", "sd"), strict=True)
        if values is not None
    )
    bars = "" if pictures else loadings(aligned.mean[k], dataset.feature_names, aligned.sd[k])
    return tag("div", pictures + tag("div", name + bars + text), "ca-card")


def agreement(aligned: AlignedDraws, k: int) -> list[str]:
    """Say in words how well the draws agree about a component."""
    level = identification(aligned.cosine[k], aligned.present[k])
    largest = max(float(np.abs(aligned.mean[k]).max()), np.finfo(float).tiny)
    lines = [
        f"{SIGNS[level]} {level}",
        f"|cos| {aligned.cosine[k]:.3f}",
        f"sd up to {percent(aligned.sd[k].max() / largest)} of the largest weight",
    ]
    if aligned.present[k] < 1:
        lines.append(f"in {percent(aligned.present[k])} of the draws")
    of_chains = aligned.by_chain[:, k]
    apart = np.flatnonzero(of_chains < ROUGHLY) + 1
    if 0 < len(apart) < len(of_chains):
        which = ", ".join(map(str, apart))
        who = f"chain {which} has" if len(apart) == 1 else f"chains {which} have"
        lines.append(f"{who} another in its place")
    return lines


def _picture(drawn: np.ndarray, what: str, called: str) -> str:
    image = tag("img", "", src=data_uri(drawn), alt=f"{what} of {called}")
    below = tag("div", what, "ca-quiet", style="text-align:center")
    return tag("div", image + below, style="flex:none")
