"""The tab Compare: two fits of the same rows as two pictures, with one selection."""

import numpy as np
import streamlit as st

from appca.analysis.check.compare import ComponentPair, Moves, matched, moves
from appca.analysis.components.components import in_data_space
from appca.analysis.fitted import FittedRun
from appca.canvas.scene.pictures import picture_list
from appca.data.dataset import Dataset
from appca.plots.components.components import data_uri
from appca.ui.canvas import canvas
from appca.ui.canvas.scenes import PageScene, scene_of
from appca.ui.check import compare_choice, loss
from appca.ui.parts import controls
from appca.ui.parts.answers import numbers
from appca.ui.parts.selection_tools import select_button
from appca.ui.parts.text import markdown, tag
from appca.ui.rows.pictures import is_dark
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown, of_run
from appca.words.errors import InputError
from appca.words.numbers import fixed, percent
from appca.words.wording import counted

HEIGHT = 460  # pixels of a picture
MOST_MATCHES = 12  # components whose pictures are shown side by side


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw what is lost or gained, then another fit beside this one."""
    loss.draw(dataset, shown)
    other = compare_choice.choose(shown)
    if other is None:
        st.caption("What would you like to compare with?")
        return
    try:
        second = of_run(other)
    except InputError as error:
        st.error(markdown(str(error)))
        return
    pairs, moved = _compared(f"{shown.key} {second.key}", dataset, shown.fitted, second.fitted)
    title = ", ".join(shown.config.sizes) if shown.run is None else compare_choice.named(shown.run)
    _pictures(dataset, [(f"This fit: {title}", shown), (compare_choice.named(other), second)])
    most = max(len(shown.fitted.components), len(second.fitted.components))
    told = [(f"{len(pairs)} of {most}", "components are the same")]
    have_supports = not (shown.fitted.active.all() or second.fitted.active.all())
    if have_supports:
        told.append((percent(moved.overlap), "of a row's components shared"))
        told.append((fixed(moved.rand), "adjusted Rand index, 1 is the same"))
    st.html(numbers(told) + _matches(dataset, shown.fitted, second.fitted, pairs))
    if second.config.preprocessing != shown.config.preprocessing:
        st.caption("The two fits saw the data through different preprocessing.")
    if have_supports and moved.moved.any():
        label = f"Select the {counted(int(moved.moved.sum()), 'row')} that differ"
        select_button(label, dataset, moved.moved, "moved_select")


def _pictures(dataset: Dataset, both: list[tuple[str, Shown]]) -> None:
    """Draw both fits; a lasso in one selects the same rows in the other."""
    choice = controls.colouring(dataset)
    with st.container(key="beside"):
        columns = st.columns(2, gap="medium")
    scenes = [scene_of(dataset, side, choice) for _, side in both]
    layouts = _alike(scenes)
    drawn = zip(columns, both, scenes, layouts, strict=True)
    for number, (column, (name, _), scene, layout) in enumerate(drawn):
        with column:
            st.markdown(f"**{markdown(name)}**")
            canvas.draw(dataset, scene, layout, choice, key=f"compare_{number}", height=HEIGHT)


def _matches(
    dataset: Dataset, first: FittedRun, second: FittedRun, pairs: list[ComponentPair]
) -> str:
    """Return the pictures of components that are the same, with the cosine between them."""
    drawn = [picture_list(fitted, dataset, dark=is_dark()) for fitted in (first, second)]
    if not all(drawn):
        return ""
    figures = ""
    for pair in pairs[:MOST_MATCHES]:
        names = f"{pair.first + 1} and {pair.second + 1}"
        images = "".join(
            tag("img", "", src=data_uri(side), alt=f"component {names}")
            for side in (drawn[0][pair.first], drawn[1][pair.second])
        )
        figures += tag("figure", images + tag("figcaption", f"{names}: {percent(pair.cosine)}"))
    return tag("div", figures, "ca-built ca-matches")


def _alike(scenes: list[PageScene]) -> list[str]:
    """Choose the view of each picture: pairs in both if one begins with them, else its first."""
    firsts = [scene.meta["first"] for scene in scenes]
    pairs = "pairs" in firsts and all("pairs" in scene.meta["layouts"] for scene in scenes)
    return ["pairs"] * len(scenes) if pairs else firsts


def patterns(dataset: Dataset, fitted: FittedRun) -> np.ndarray:
    """Return a fit's components (K, D) in a space that does not depend on its preprocessing.

    Images in the units of the data; of a table each feature in units of its standard deviation,
    else the feature with the largest numbers would decide alone.
    """
    images = in_data_space(fitted)
    if dataset.image_shape is not None:
        return images
    spread = dataset.X.std(axis=0, dtype=np.float64)
    return images / np.where(spread > 0, spread, 1.0)


@by_key(16)
def _compared(
    dataset: Dataset, first: FittedRun, second: FittedRun
) -> tuple[list[ComponentPair], Moves]:
    pairs = matched(patterns(dataset, first), patterns(dataset, second))
    return pairs, moves(first.active, second.active, pairs)
