"""The selection tray: which classes were selected, what they look like, numbers, and export."""

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
from appca.ui.text import fact_list, tag, words

MEMBERS, MEMBERS_A_LINE = 96, 16  # images in the tray
MOST_BARS = 30


def tray(dataset: Dataset, shown: Shown, sprites: Sprites | None, colour: Colour) -> None:
    """Draw the tray, or one line that says how to select."""
    mask = selection.get(dataset)
    if not mask.any():
        st.caption(
            "Select rows with the lasso above a panel, or by a click on the count in a corner; "
            "they are marked in every panel and on every page."
        )
        return
    rows = np.flatnonzero(mask)
    with st.container(border=True, key="tray"):
        _heading(dataset, rows)
        left, right = st.columns([2, 3], gap="medium")
        with left:
            classes = colour if colour.kind == "category" else _first_label(dataset)
            if classes is not None:
                st.html(class_bars(classes, rows))
            st.html(facts(dataset, shown.arrays, rows))
        with right:
            _members(dataset, sprites, rows)
        download_buttons(dataset, shown, rows, stem="selection")


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


def _heading(dataset: Dataset, rows: np.ndarray) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Selection** · {len(rows):,} of {counted(dataset.n_rows, 'row')}")
        st.button(
            "Clear", key="tray_clear", type="tertiary", on_click=selection.clear, args=[dataset]
        )
        st.button("Invert", key="tray_invert", type="tertiary", on_click=_invert, args=[dataset])


def _invert(dataset: Dataset) -> None:
    selection.put(dataset, ~selection.get(dataset))


def _members(dataset: Dataset, sprites: Sprites | None, rows: np.ndarray) -> None:
    if sprites is None:
        from appca.ui.tables import preview_table

        preview_table(dataset, rows[:12])
        return
    chosen = rows[np.argsort(sprites.priority[rows])][:MEMBERS]
    with st.container(key="pictures"):
        st.image(sheet_of(sprites, np.sort(chosen), MEMBERS_A_LINE), width="stretch")
    st.caption(f"{len(chosen)} of them" if len(chosen) < len(rows) else "all of them")
