"""The selection in the drawer: how many rows, which classes, what sets them apart, what to do."""

from itertools import chain

import numpy as np
import streamlit as st

from appca.analysis.groups.group import compare
from appca.analysis.groups.group_words import sentence
from appca.canvas.scene.colours import colour_of
from appca.canvas.sprites import sample
from appca.data.dataset import Dataset
from appca.plots.palette import Colour, label_colour, levels
from appca.ui.parts.downloads import rows_popover
from appca.ui.parts.rule import as_rule
from appca.ui.parts.selection_tools import tools
from appca.ui.parts.text import markdown, tag, words
from appca.ui.parts.widgets import onward
from appca.ui.rows.pictures import sheet_of
from appca.ui.session import selection
from appca.ui.session.caching import by_key, kept
from appca.ui.session.fitting import Shown
from appca.words.errors import InputError
from appca.words.numbers import percent

IMAGES, A_LINE = 28, 7
MOST_BARS = 12
_colour = by_key(16)(colour_of)


def body(dataset: Dataset, shown: Shown, colouring: str) -> None:
    """Draw what is selected, or how to select."""
    mask = selection.get(dataset)
    rows = np.flatnonzero(mask)
    if not len(rows):
        st.markdown("**Nothing selected**")
        st.caption("Draw around points with the lasso, click a count, or choose rows by a rule.")
        tools(dataset, shown)
        return
    of_all = f"of {dataset.n_rows:,} rows, {percent(mask.mean())}"
    st.markdown(f"### {len(rows):,} :small[:gray[{of_all}]]")
    _pictures(dataset, rows)
    chosen = _colour(f"{shown.key}-{colouring}", dataset, shown.fitted, colouring)
    labels = (label_colour(dataset, name) for name in dataset.labels)
    categories = (colour for colour in chain([chosen], labels) if colour.kind == "category")
    classes = next(categories, None)
    if classes is not None:
        st.caption(f"By {markdown(classes.name)}")
        st.html(class_bars(classes, mask))
    _apart(dataset, shown, mask)
    as_rule(dataset, shown, mask)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        rows_popover(dataset, shown, rows, key="rows")
        onward("groups/differences", "Compare with the rest", ":material/compare_arrows:")
    tools(dataset, shown)


def class_bars(classes: Colour, mask: np.ndarray) -> str:
    """Return how many of the selected rows each class has, and which share of it, as HTML bars."""
    codes = np.asarray(classes.values)
    every = np.bincount(codes[codes >= 0], minlength=len(classes.names))
    counts = np.bincount(codes[(codes >= 0) & mask], minlength=len(classes.names))
    order = np.argsort(-counts, kind="stable")
    there = order[counts[order] > 0]
    table = levels(classes).table
    lines = ""
    for code in there[:MOST_BARS]:
        width = f"width:{counts[code] / counts.max():.0%};background:{table[code]}"
        bar = tag("div", tag("div", "", style=width), "ca-track")
        said = f"{counts[code]:,} · {percent(counts[code] / every[code])}"
        lines += tag("b", words(classes.names[code])) + bar + tag("span", said)
    more = len(there) - MOST_BARS
    tail = tag("p", f"and {more} more", "ca-quiet") if more > 0 else ""
    return tag("div", lines, "ca-mix", title="count · share of the class") + tail


def _pictures(dataset: Dataset, rows: np.ndarray) -> None:
    if dataset.image_shape is None:
        return
    chosen = rows[sample(len(rows), IMAGES)]
    with st.container(key="pictures"):
        alt = f"{len(chosen)} of the selected images"
        st.image(sheet_of(dataset, chosen, A_LINE), width="stretch", alt=alt)


def _apart(dataset: Dataset, shown: Shown, mask: np.ndarray) -> None:
    try:
        name = f"apart-{shown.key}-{selection.token(dataset)}"
        comparison = kept(name, lambda: compare(dataset, shown.fitted, mask))
    except InputError as error:
        st.caption(markdown(str(error)))
        return
    st.caption("What sets it apart")
    st.markdown(markdown(sentence(comparison)))
