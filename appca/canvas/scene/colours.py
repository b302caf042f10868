"""What rows can be coloured by: their labels, what a fit says of them, or a feature."""

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.analysis.groups.row_query import MEASURES, column_of
from appca.data.dataset import Dataset
from appca.plots.palette import Colour, label_colour
from appca.words.wording import capital

TRUST, PANELS = "trust", "panels"  # of the map, and of the panels
SOME, MANY = 0.05, 0.2  # of the most that ranks of neighbours could be off by
_FALSE, _MISSING = ("", "some false", "many false"), ("", "some missing", "many missing")
TRUST_NAMES = tuple(
    ", ".join(filter(None, (false, missing))) or "neighbours kept"
    for false in _FALSE
    for missing in _MISSING
)
TRUST_COLOURS = (  # two ways: false neighbours towards pink, missing ones towards teal
    *("#b9b9b9", "#8fcfcf", "#3fb3b3"),
    *("#d79ccb", "#989fce", "#4a8fb0"),
    *("#b8529f", "#80559c", "#323f8c"),
)


def colour_choices(dataset: Dataset) -> dict[str, str]:
    """Return what points can be coloured by beside features: key to the name on screen.

    The class comes first. Features, of which there may be very many, are not listed: their keys
    are those of `row_query.column_of`.
    """
    labels = {f"label:{name}": name for name in dataset.labels}
    return labels | {key: capital(key) for key in MEASURES}


def colour_of(dataset: Dataset, fitted: FittedRun, choice: str) -> Colour:
    """Return the colouring of all rows for one of `colour_choices`, or for "feature:" and a number.

    A feature is always a number to the eye, for it is one to the model, and NaN where missing.
    """
    kind, _, name = choice.partition(":")
    if kind == "label":
        return label_colour(dataset, name)
    column = column_of(dataset, fitted, choice)
    title = capital(choice) if choice in MEASURES else column.name
    return Colour("number", title, np.asarray(column.values, dtype=np.float64))


def trust_colour(trust: np.ndarray, of: str = "Trust of the map") -> Colour:
    """Colour rows by false and missing neighbours (N, 2 or more), see `trust`; NaN is no class."""
    false, missing = (np.searchsorted((SOME, MANY), trust[:, part], "right") for part in (0, 1))
    codes = np.where(np.isnan(trust[:, 0]), -1, 3 * false + missing)
    return Colour("category", of, codes, TRUST_NAMES, TRUST_COLOURS)
