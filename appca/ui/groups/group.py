"""The tab Differences: what sets some rows apart from all others, in words, bars and pictures."""

import numpy as np
import streamlit as st

from appca.analysis.explore.subspaces import ranked, title
from appca.analysis.groups.group import GroupComparison, compare, mean_images
from appca.analysis.groups.group_words import probability, sentence
from appca.data.dataset import Dataset
from appca.plots.components.components import component_image, pixels_of
from appca.plots.groups import group as differences
from appca.ui.parts import class_choice
from appca.ui.parts.chart import chart
from appca.ui.parts.selection_tools import select_button, tools
from appca.ui.parts.text import markdown, tag
from appca.ui.rows.pictures import figure, is_dark, on_page
from appca.ui.session import selection
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.errors import InputError
from appca.words.numbers import number
from appca.words.wording import capital, counted, shortened

BARS = 10  # strongest differences drawn
PANELS = 20  # fullest ones that are offered
SELECTION = "selection"
KINDS = {
    "feature": "column",
    "score": "score",
    "use": "use of a component",
    "subspace": "subspace",
    "class": "label",
    "measure": "fit",
}


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw which rows are looked at, the answer, its picture, and all numbers on demand."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        whose, mask, key = _rows(dataset, shown)
        tools(dataset, shown)
    selected = int(selection.get(dataset).sum())
    st.caption(f"{selected:,} of {counted(dataset.n_rows, 'row')} selected")
    try:
        name = f"apart-{shown.key}-{dataset.digest[:8]}-{key}"
        comparison = kept(name, lambda: compare(dataset, shown.fitted, mask))
    except InputError as error:
        st.info(markdown(str(error)))
        return
    chosen_by = key.partition(" = ")[0]  # says no more than what the rows were chosen by
    told = [d for d in comparison.differences if d.name.partition(" = ")[0] != chosen_by]
    comparison = comparison._replace(differences=told)
    st.markdown(f"**{markdown(sentence(comparison, whose))}**")
    with st.container(key="beside"):  # its columns stand below each other in a narrow window
        left, right = st.columns([3, 2], gap="large")
        with left:
            strongest = [d for d in comparison.differences if d.matters][:BARS]
            chart(differences.bars(strongest or comparison.differences[:BARS]), "group_bars")
        with right:
            if dataset.image_shape is not None:
                _images(dataset, mask, key, dataset.image_shape)
    with st.expander(f"All {len(comparison.differences):,} comparisons"):
        _table(comparison)
        some = f" Columns: a sample of {comparison.sampled:,} rows." if comparison.sampled else ""
        st.caption(
            "Mann-Whitney tests for numbers, chi-square or Fisher's exact test for shares, "
            "corrected together (Benjamini and Hochberg). Rows chosen by their scores differ in "
            f"them by choice.{some}"
        )


def _rows(dataset: Dataset, shown: Shown) -> tuple[str, np.ndarray, str]:
    """Draw the choice of rows; return what they are called, which they are, and a key of them."""
    selected = selection.get(dataset)
    offered = kept(f"offered-{shown.key}", lambda: _offered(dataset, shown))
    labels = {SELECTION: ("Selection", int(selected.sum()))} if selected.any() else {}
    labels |= {key: (label, len(rows)) for key, (label, rows) in offered.items()}
    chosen = st.selectbox(
        "What sets apart",
        list(labels),
        format_func=lambda key: f"{labels[key][0]} · {labels[key][1]:,}",
        key=f"group_rows-{shown.config.id}-{selection.token(dataset)}",
        width=230,
    )
    if chosen == SELECTION:
        name = f"The {counted(int(selected.sum()), 'selected row')}"
        return name, selected, str(selection.token(dataset))
    label, rows = offered[chosen]
    mask = np.isin(np.arange(dataset.n_rows), rows)
    select_button("Select these rows", dataset, mask, "group_select")
    return f"The {counted(len(rows), 'row')} of {label}", mask, chosen


def _offered(dataset: Dataset, shown: Shown) -> dict[str, tuple[str, np.ndarray]]:
    """Return the fullest panels and the classes: key to label and rows."""
    fitted = shown.fitted
    choices = {
        f"panel {subspace.components}": (title(subspace.components), subspace.rows)
        for subspace in ranked(fitted.active)[:PANELS]
    }
    for classes in class_choice.every(dataset):
        for c, name in enumerate(classes.names):
            label = f"{capital(shortened(classes.title, 20))} {shortened(name, 24)}"
            choices[f"{classes.title} = {name}"] = (label, np.flatnonzero(classes.codes == c))
    return choices


def _images(dataset: Dataset, mask: np.ndarray, key: str, shape: tuple[int, ...]) -> None:
    group, rest = kept(f"means-{dataset.digest}-{key}", lambda: mean_images(dataset, mask))
    limit = float(np.abs(pixels_of(group - rest, shape)).max())
    difference = component_image(group - rest, shape, limit, dark=is_dark())
    sides = on_page(dataset, dataset.as_images(np.stack([group, rest])))
    drawn = {"these rows": sides[0], "the rest": sides[1], "difference": difference}
    figures = [
        figure(picture, name, f"mean image: {name}") for name, picture in drawn.items()
    ]
    st.html(tag("div", "".join(figures), "ca-means"))
    st.caption(f"Mean images. Full red is {number(limit)} more, full blue as much less.")


def _table(comparison: GroupComparison) -> None:
    import pandas as pd

    pairs = [differences.sides(d) for d in comparison.differences]
    table = pd.DataFrame(
        {
            "what": [d.name for d in comparison.differences],
            "kind": [KINDS[d.kind] for d in comparison.differences],
            "these": [these for these, _ in pairs],
            "rest": [rest for _, rest in pairs],
            "effect": [d.effect for d in comparison.differences],
            "strength": [d.strength for d in comparison.differences],
            "p, corrected": [probability(d.corrected) for d in comparison.differences],
        }
    )
    effect = st.column_config.NumberColumn(
        format="%+.2f",
        help="Of a number, Cliff's delta: how much more often a row of these has the larger value. "
        "Of a share, the difference. From −1 to 1.",
    )
    columns = {"effect": effect}
    st.dataframe(table, hide_index=True, width="stretch", key="group_table", column_config=columns)
