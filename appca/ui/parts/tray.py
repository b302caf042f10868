"""The selection tray: tools, which classes were selected, what they look like, and export."""

from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.explore.subspaces import ranked, title
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import nats, number, percent
from appca.plots.palette import Colour, colour_by, levels
from appca.storage.wording import counted
from appca.ui.data.overview import preview_table, sheet_of
from appca.ui.explorer import atlas
from appca.ui.parts.downloads import download_buttons
from appca.ui.parts.selection_tools import tools
from appca.ui.parts.text import fact_list, tag, words
from appca.ui.parts.widgets import onward
from appca.ui.session import selection
from appca.ui.session.fitting import Shown

MEMBERS, MEMBERS_A_LINE = 96, 16  # images in the tray
MOST_BARS = 30
TOP = 3  # subspaces or components named
MOST_IN_NAME = 4  # components in the name of a subspace that can still be read


def tray(dataset: Dataset, shown: Shown, colour: Colour) -> None:
    """Draw the tray: the tools, and what is selected or how to select."""
    rows = np.flatnonzero(selection.get(dataset))
    with st.container(border=True, key="tray"):
        heading(dataset, shown)
        if not len(rows):
            st.caption(
                "Select rows with the lasso above a panel, by a click on the count in a corner, or "
                "by a rule; they are marked in every panel and on every page."
            )
            return
        left, right = st.columns([2, 3], gap="medium")
        with left:
            classes = colour if colour.kind == "category" else _first_label(dataset)
            if classes is not None:
                st.html(class_bars(classes, rows))
            st.html(facts(dataset, shown.fitted, rows))
        with right:
            _members(dataset, rows)
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            download_buttons(dataset, shown, rows, stem="selection")
            icon = ":material/compare_arrows:"
            onward("groups/differences", "Why is this group different?", icon)


def heading(dataset: Dataset, shown: Shown) -> None:
    """Draw how many rows are selected, and beside it what can be done with the selection."""
    count = int(selection.get(dataset).sum())
    with st.container(horizontal=True, vertical_alignment="center", key="tray_heading"):
        st.markdown(f"**Selection** · {count:,} of {counted(dataset.n_rows, 'row')}")
        tools(dataset, shown)


def class_bars(colour: Colour, rows: np.ndarray) -> str:
    """Return how many of the selected rows each class has, as HTML bars."""
    codes = np.asarray(colour.values)[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(colour.names))
    order = np.arange(len(counts))
    if len(counts) > MOST_BARS:
        order = np.argsort(-counts, kind="stable")[:MOST_BARS]
    table = levels(colour, len(colour.values)).table
    most = max(int(counts.max(initial=1)), 1)
    bars = ""
    for name, count, shade in ((colour.names[c], counts[c], table[c]) for c in order):
        style = f"height:{90 * count / most:.0f}px;background:{shade}"
        parts = tag("div", f"{count:,}", "ca-count") + tag("div", "", "ca-bar", style=style)
        bars += tag("div", parts + tag("div", words(name), "ca-what"), title=f"{name}: {count:,}")
    return tag("div", bars, "ca-bars")


def facts(dataset: Dataset, fitted: FittedRun, rows: np.ndarray) -> str:
    """Return numbers about the selected rows beside those of all rows, as HTML."""
    lines = _where(fitted.active, rows) | {
        "Residual": _beside(fitted.error, rows, number),
        "Membership": _beside(fitted.membership, rows, partial(percent, digits=1)),
        "Density": _beside(fitted.log_likelihood_rows, rows, nats),
        "First rows": ", ".join(dataset.ids[rows[:4]].tolist()) + ("…" if len(rows) > 4 else ""),
    }
    return fact_list(lines)


def _where(active: np.ndarray, rows: np.ndarray) -> dict[str, str]:
    """Say which subspaces the selected rows are in.

    A row that uses many components shares its subspace with few others, and the name of one is a
    line of numbers: then which components they use is said instead, those first that they use more
    than other rows do.
    """
    mine = active[rows]
    if mine.sum(axis=1).max(initial=0) <= MOST_IN_NAME:
        groups = ranked(mine)[:TOP]
        return {"Most in": ", ".join(f"{title(g.components)} {len(g.rows):,}" for g in groups)}
    used, usual = mine.mean(axis=0), active.mean(axis=0)
    first = np.argsort(usual - used, kind="stable")[:TOP]
    listed = "; ".join(
        f"{k + 1} used by {percent(used[k])} (all rows {percent(usual[k])})" for k in first
    )
    return {"Components": listed, "Subspaces": f"{len(ranked(mine)):,} different ones"}


def _first_label(dataset: Dataset) -> Colour | None:
    every = (colour_by(name, values) for name, values in dataset.labels.items())
    return next((colour for colour in every if colour.kind == "category"), None)


def _beside(values: np.ndarray, rows: np.ndarray, write: Callable[[float], str]) -> str:
    mine, every = (float(np.mean(part, dtype=float)) for part in (values[rows], values))
    return f"{write(mine)} (all rows {write(every)})"


def _members(dataset: Dataset, rows: np.ndarray) -> None:
    sprites = atlas.sprites(dataset.digest)
    if sprites is None:
        preview_table(dataset, rows[:12])
        return
    chosen = rows[np.argsort(sprites.priority[rows])][:MEMBERS]
    with st.container(key="pictures"):
        sheet = sheet_of(sprites, np.sort(chosen), MEMBERS_A_LINE)
        st.image(sheet, width="stretch", alt=f"{counted(len(chosen), 'image')} of selected rows")
    st.caption(f"{len(chosen)} of them" if len(chosen) < len(rows) else "all of them")
