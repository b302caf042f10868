"""Matched components of two runs as cards: each pair side by side, then those without another."""

import numpy as np

from appca.analysis.check.compare import Matching
from appca.analysis.components.alignment import identification
from appca.analysis.components.components import name_of
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.components.components import component_image, data_uri
from appca.ui.parts.component_list import in_data_space, loadings
from appca.ui.parts.text import tag, words

IN_WORDS = {
    "identified": "the same",
    "roughly identified": "much the same",
    "not identified": "related",
}


def patterns(dataset: Dataset, fitted: FittedRun) -> np.ndarray:
    """Return a run's components (K, D) in a space that does not depend on its preprocessing.

    Images in the units of the data; of a table each feature in units of its standard deviation,
    else the feature with the largest numbers would decide alone.
    """
    found = in_data_space(fitted)
    if dataset.image_shape is not None:
        return found
    spread = dataset.X.std(axis=0, dtype=np.float64)
    return found / np.where(spread > 0, spread, 1.0)


def cards(
    dataset: Dataset,
    first: FittedRun,
    second: FittedRun,
    found: Matching,
) -> str:
    """Return all components of both runs as HTML."""
    mine, theirs = patterns(dataset, first), patterns(dataset, second)
    every = []
    for pair in found.pairs:
        turned = ", turned round" if pair.sign < 0 else ""
        level = IN_WORDS[identification(pair.cosine)]
        left = _one(dataset, mine[pair.first], name_of(first, pair.first), "this run")
        right = _one(
            dataset,
            pair.sign * theirs[pair.second],
            name_of(second, pair.second),
            f"the other run{turned}",
        )
        number = tag("div", f"|cos| {pair.cosine:.3f}", "ca-name")
        every.append(_card(left + right, number + tag("div", level, "ca-quiet")))
    for alone, whose, run, drawn in (
        (found.only_first, "this run", first, mine),
        (found.only_second, "the other run", second, theirs),
    ):
        for k in alone:
            picture = _one(dataset, drawn[k], name_of(run, k), whose)
            every.append(_card(picture, tag("div", f"only in {whose}", "ca-quiet")))
    return tag("div", "".join(every), "ca-pairs")


def _card(pictures: str, text: str) -> str:
    return tag("div", pictures + tag("div", text, "ca-agreement"), "ca-pair")


def _one(dataset: Dataset, pattern: np.ndarray, name: str, whose: str) -> str:
    caption = tag("figcaption", words(name) + tag("small", words(whose)))
    if dataset.image_shape is None:
        return tag("figure", caption + loadings(dataset, pattern))
    source = data_uri(component_image(pattern, dataset.image_shape))
    return tag("figure", tag("img", "", src=source, alt=f"{name} of {whose}") + caption)
