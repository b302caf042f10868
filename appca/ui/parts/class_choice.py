"""Which column of labels says the class of a row, on pages that compare classes."""

from typing import NamedTuple

import numpy as np
import streamlit as st

from appca.data.dataset import Dataset
from appca.plots.palette import class_colour, label_colour
from appca.ui.session.caching import by_key
from appca.words.wording import capital

MOST_CLASSES = 60


class Classes(NamedTuple):
    """The classes of all rows."""

    title: str
    names: tuple[str, ...]
    codes: np.ndarray  # (N,) negative where a row has none

    @property
    def colours(self) -> list[str]:
        """The colour of each class, as on every page."""
        return [class_colour(code, len(self.names)) for code in range(len(self.names))]


def every(dataset: Dataset) -> list[Classes]:
    """Return the classes of all columns of labels that have 2 to `MOST_CLASSES`."""
    candidates = (
        _classes(f"{dataset.digest}-{name}-{dataset.class_order(name)}", dataset, name)
        for name in dataset.labels
    )
    return [classes for classes in candidates if classes is not None]


def choose(dataset: Dataset, page: str) -> Classes | None:
    """Draw the choice where there is one, and return the classes; None where there are none."""
    choices = {classes.title: classes for classes in every(dataset)}
    if not choices:
        return None
    chosen = st.selectbox(
        "Classes",
        choices,
        format_func=capital,
        key=f"classes-{page}-{dataset.digest[:8]}",
        persist_state="session",
        width=180,
        help=f"Columns of labels with 2 to {MOST_CLASSES} classes.",
    )
    return choices[chosen]


@by_key(64)
def _classes(dataset: Dataset, name: str) -> Classes | None:
    colour = label_colour(dataset, name)
    if colour.kind != "category" or not 2 <= len(colour.names) <= MOST_CLASSES:
        return None
    return Classes(name, colour.names, np.asarray(colour.values))
