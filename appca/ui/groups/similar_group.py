"""One group of similar rows as HTML: what it is, and its members as images or as lines."""

import numpy as np
import streamlit as st

from appca.analysis.explore.subspaces import title
from appca.analysis.groups.similar import Mixture, SimilarRows
from appca.data.dataset import Dataset
from appca.data.numbers import minus, percent
from appca.plots.components.components import data_uri
from appca.plots.explore.sprites import Sprites, tiles_of
from appca.plots.groups.image_rows import image_row
from appca.plots.palette import MISSING
from appca.storage.wording import counted, shortened
from appca.ui.parts.class_choice import Classes
from appca.ui.parts.component_list import in_units_of_the_fit
from appca.ui.parts.text import table as html_table
from appca.ui.parts.text import table_line, tag, words
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown

IMAGES, LINES = 14, 5  # members shown of a group: images, or lines of a table
FEATURES = 6  # columns shown of a table
CHIPS = 12  # classes named
LETTERS = 18  # of a text in a cell
NEARLY = 0.9999  # of a subspace's spread has a group that is all of it


def heading(
    group: SimilarRows, mixed: Mixture | None, classes: Classes | None, place: int, kind: str
) -> str:
    """Return what a group is: its place in the order, subspace, size, spread and classes.

    Parameters
    ----------
    group, mixed, classes
        The group, and its classes where there are any.
    place : int
        Counted from 0.
    kind : {"subspace", "pair"}
        What the group's components are.
    """
    name = tag("span", words(f"{place + 1}."), "ca-quiet") + " "
    name += tag("b", words(f"{kind.capitalize()} {title(group.components)}"))
    size = counted(len(group.rows), "row")
    tight = f"{size} within {percent(group.spread)} of the {kind}'s spread"
    if group.spread > NEARLY:
        tight = f"all its {size}"
    name += tag("span", words(f" · {tight}"), "ca-quiet")
    return tag("div", name + (_chips(mixed, classes) if mixed and classes else ""))


def _chips(mixed: Mixture, classes: Classes) -> str:
    order = [c for c in np.argsort(-mixed.counts, kind="stable") if mixed.counts[c]]
    chips = [
        tag(
            "span",
            tag("i", "", style=f"background:{classes.colours[c]}")
            + words(f"{shortened(classes.names[c], LETTERS)} ({mixed.counts[c]:,})"),
            title=classes.names[c],
        )
        for c in order[:CHIPS]
    ]
    if len(order) > CHIPS:
        chips.append(tag("span", words(f"and {len(order) - CHIPS} more")))
    return tag("div", "".join(chips), "ca-chips")


def images(sprites: Sprites, group: SimilarRows, classes: Classes | None) -> str:
    """Return the members nearest the centre as a row of images, strips in the class colours."""
    rows = group.rows[:IMAGES]
    colours = None
    if classes is not None:
        table_of = [*classes.colours, MISSING]
        colours = [table_of[code if code >= 0 else -1] for code in classes.codes[rows]]
    tiles = tiles_of(sprites, rows)
    if sprites.style == "ink" and st.context.theme.type != "dark":
        tiles = 255 - tiles  # ink is dark on a light page
    source = data_uri(image_row(tiles, colours))
    text = f"the {len(rows)} rows nearest the centre"
    return f'<img class="ca-row" src="{source}" alt="{text}" title="{text}">'


def table(dataset: Dataset, shown: Shown, group: SimilarRows) -> str:
    """Return the members nearest the centre as lines: id, labels, features that weigh most."""
    every = kept(f"weights-{shown.key}", lambda: in_units_of_the_fit(shown.fitted))
    weights = np.abs(every)[list(group.components)]
    names = dataset.column_names
    strongest = np.argsort(-weights.max(axis=0), kind="stable")
    features = strongest[:FEATURES].tolist()
    labels = list(dataset.labels)[:3]
    heads = [shortened(name, LETTERS) for name in ["row", *labels, *(names[j] for j in features)]]
    lines = (_line(dataset, row, labels, features) for row in group.rows[:LINES].tolist())
    return html_table(map(words, heads), lines)


def _line(dataset: Dataset, row: int, labels: list[str], features: list[int]) -> str:
    texts = [str(dataset.labels[name][row]) for name in labels]
    texts += [minus(f"{float(dataset.X[row, j]):.4g}") for j in features]
    return table_line(shortened(dataset.ids[row], LETTERS), [shortened(t, LETTERS) for t in texts])
