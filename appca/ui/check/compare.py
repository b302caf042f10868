"""The tab Compare: two fits of the same rows as two pictures, with one selection."""

import numpy as np
import streamlit as st

from appca.analysis.check.compare import Matching, Moves, matched, moves
from appca.analysis.components.components import in_data_space
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import percent
from appca.storage.errors import InputError
from appca.storage.wording import counted
from appca.ui.check import compare_choice
from appca.ui.explorer import canvas
from appca.ui.explorer.scenes import scene_of
from appca.ui.parts import controls
from appca.ui.parts.answers import answer, numbers
from appca.ui.parts.selection_tools import select_button
from appca.ui.parts.text import markdown
from appca.ui.session.caching import by_key
from appca.ui.session.fitting import Shown, of_run

HEIGHT = 460  # pixels of a picture


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer, both pictures, three numbers, and what else can be compared."""
    place = st.container()
    other = compare_choice.choose(shown)
    if other is None:
        with place:
            answer("What would you like to compare with?")
        return
    try:
        second = of_run(other)
    except InputError as error:
        st.error(markdown(str(error)))
        return
    found, moved = _compared(f"{shown.key} {second.key}", dataset, shown.fitted, second.fitted)
    with place:
        _answer(shown, second, found, moved)
    own = ", ".join(shown.config.sizes) if shown.run is None else compare_choice.named(shown.run)
    _pictures(dataset, [(f"This fit: {own}", shown), (compare_choice.named(other), second)])
    same = 1 - float(moved.moved.mean())
    told = [
        (percent(same), "of rows use the same components"),
        (percent(moved.overlap), "of a row's components shared"),
        (f"{moved.rand:.2f}", "adjusted Rand index, 1 is the same"),
    ]
    st.html(numbers(told))
    if moved.moved.any():
        label = f"Select the {counted(int(moved.moved.sum()), 'row')} that differ"
        select_button(label, dataset, moved.moved, "moved_select")


def _answer(shown: Shown, other: Shown, found: Matching, moved: Moves) -> None:
    most = max(len(shown.fitted.components), len(other.fitted.components))
    title = f"{len(found.pairs)} of {counted(most, 'component')} are the same"
    text = f"{percent(1 - float(moved.moved.mean()))} of rows use the same ones in both fits."
    if not found.pairs:
        text = "The two fits have no component in common."
    elif other.config.preprocessing != shown.config.preprocessing:
        text += " The fits saw the data through different preprocessing."
    answer(title, text)


def _pictures(dataset: Dataset, both: list[tuple[str, Shown]]) -> None:
    """Draw both fits; a lasso in one selects the same rows in the other."""
    choice = controls.colouring(dataset)
    with st.container(key="beside"):
        columns = st.columns(2, gap="medium")
    for number, (column, (name, one)) in enumerate(zip(columns, both, strict=True)):
        with column:
            st.markdown(f"**{markdown(name)}**")
            scene = scene_of(dataset, one, choice)
            layout = next(iter(canvas.views(scene)))
            canvas.draw(dataset, scene, layout, choice, key=f"compare_{number}", height=HEIGHT)


def patterns(dataset: Dataset, fitted: FittedRun) -> np.ndarray:
    """Return a fit's components (K, D) in a space that does not depend on its preprocessing.

    Images in the units of the data; of a table each feature in units of its standard deviation,
    else the feature with the largest numbers would decide alone.
    """
    found = in_data_space(fitted)
    if dataset.image_shape is not None:
        return found
    spread = dataset.X.std(axis=0, dtype=np.float64)
    return found / np.where(spread > 0, spread, 1.0)


@by_key(16)
def _compared(dataset: Dataset, first: FittedRun, second: FittedRun) -> tuple[Matching, Moves]:
    found = matched(patterns(dataset, first), patterns(dataset, second))
    return found, moves(first.active, second.active, found)
