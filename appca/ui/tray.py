"""The selection tray: tools, which classes were selected, what they look like, and export."""

import numpy as np
import streamlit as st

from appca.analysis.subspaces import ranked, title
from appca.data.dataset import Dataset
from appca.data.wording import counted
from appca.plots.palette import Colour, colour_by, levels
from appca.plots.sprites import Sprites
from appca.ui import selection
from appca.ui.data_overview import sheet_of
from appca.ui.downloads import download_buttons
from appca.ui.fitting import Shown
from appca.ui.selection_tools import tools
from appca.ui.text import fact_list, tag, words

MEMBERS, MEMBERS_A_LINE = 96, 16  # images in the tray
MOST_BARS = 30


def tray(dataset: Dataset, shown: Shown, sprites: Sprites | None, colour: Colour) -> None:
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
            st.html(facts(dataset, shown.arrays, rows))
        with right:
            _members(dataset, sprites, rows)
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            download_buttons(dataset, shown, rows, stem="selection")
            st.page_link(
                "pages/explore/group.py",
                label="Why is this group different?",
                icon=":material/compare_arrows:",
                width="content",
            )


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
    order = range(len(counts))
    if len(counts) > MOST_BARS:
        order = np.argsort(-counts, kind="stable")[:MOST_BARS]
    table = levels(colour, len(colour.values)).table
    most = max(int(counts.max(initial=1)), 1)
    bars = [
        tag(
            "div",
            tag("div", f"{counts[c]:,}", "ca-count")
            + tag(
                "div",
                "",
                "ca-bar",
                style=f"height:{90 * counts[c] / most:.0f}px;background:{table[c]}",
            )
            + tag("div", words(colour.names[c]), "ca-what"),
            title=f"{colour.names[c]}: {counts[c]:,}",
        )
        for c in order
    ]
    return tag("div", "".join(bars), "ca-bars")


def facts(dataset: Dataset, arrays: dict[str, np.ndarray], rows: np.ndarray) -> str:
    """Return numbers about the selected rows beside those of all rows, as HTML."""
    groups = ranked(arrays["active"][rows])[:3]
    where = ", ".join(f"{title(group.components)} {len(group.rows):,}" for group in groups)
    lines = {
        "Most in": where,
        "Residual": _beside(arrays["error"], rows),
        "Membership": _beside(arrays["membership"], rows),
        "Density": _beside(arrays["log_likelihood_rows"], rows),
        "First rows": ", ".join(dataset.ids[rows[:4]].tolist()) + ("…" if len(rows) > 4 else ""),
    }
    return fact_list(lines)


def _first_label(dataset: Dataset) -> Colour | None:
    for name, values in dataset.labels.items():
        found = colour_by(name, values)
        if found.kind == "category":
            return found
    return None


def _beside(values: np.ndarray, rows: np.ndarray) -> str:
    return f"{np.mean(values[rows], dtype=float):.3g} (all rows {np.mean(values, dtype=float):.3g})"


def _members(dataset: Dataset, sprites: Sprites | None, rows: np.ndarray) -> None:
    if sprites is None:
        from appca.ui.tables import preview_table

        preview_table(dataset, rows[:12])
        return
    chosen = rows[np.argsort(sprites.priority[rows])][:MEMBERS]
    with st.container(key="pictures"):
        st.image(sheet_of(sprites, np.sort(chosen), MEMBERS_A_LINE), width="stretch")
    st.caption(f"{len(chosen)} of them" if len(chosen) < len(rows) else "all of them")
