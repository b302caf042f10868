"""Titles of components, and their largest weights as bars."""

import numpy as np

from appca.analysis.components.components import name_of
from appca.analysis.fitted import FittedModel
from appca.data.dataset import Dataset
from appca.data.numbers import signed
from appca.plots.components.components import NEGATIVE, POSITIVE, ranked_loadings
from appca.ui.parts.text import tag, words


def title_of(model: FittedModel, k: int) -> str:
    """Return the name of component k, counted from 0, as it stands alone: "Component 3"."""
    name = name_of(model, k)
    return name[:1].upper() + name[1:]


def loadings(dataset: Dataset, pattern: np.ndarray) -> str:
    """Return the largest weights of a component (D,) of a table as HTML bars."""
    lines = []
    for item in ranked_loadings(pattern, dataset.feature_names):
        colour = f"rgb{POSITIVE if item.value > 0 else NEGATIVE}"
        bar = tag("div", "", style=f"width:{item.share:.0%};background:{colour}")
        text = tag("span", words(item.name), title=f"{item.name}: {signed(item.value)}")
        lines.append(tag("div", text + tag("div", bar, "ca-track"), "ca-loading"))
    return "".join(lines)
