"""The page Selection: what sets the selected rows apart from all others."""

import numpy as np
import streamlit as st

from appca.analysis.groups.group import GroupComparison, GroupDifference, compare, mean_images
from appca.analysis.groups.group_words import probability, sentence
from appca.analysis.groups.row_query import MEASURES, column_of, score_name
from appca.data.dataset import Dataset
from appca.data.numbers import number
from appca.plots.components.components import data_uri
from appca.plots.groups import group as differences
from appca.storage.errors import InputError
from appca.storage.wording import counted
from appca.ui.explorer import atlas
from appca.ui.parts import tray
from appca.ui.parts.chart import chart
from appca.ui.parts.text import markdown, tag, words
from appca.ui.parts.widgets import onward
from appca.ui.session import selection
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown

BARS = 12  # strongest differences drawn
KINDS = {
    "feature": "feature",
    "score": "score",
    "use": "use of a component",
    "subspace": "subspace",
    "class": "label",
    "measure": "fit",
}


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the page of a run: tools, the answer in a sentence, pictures, and the whole table."""
    with st.container(border=True, key="tray"):
        tray.heading(dataset, shown)
    mask = selection.get(dataset)
    if not mask.any():
        _how_to_select()
        return
    try:
        comparison = _compared(f"{shown.key}-{selection.token(dataset)}", dataset, shown, mask)
    except InputError as error:
        st.info(markdown(str(error)))
        return
    st.markdown(f"##### {markdown(sentence(comparison))}")
    with st.container(key="beside"):  # its columns stand below each other in a narrow window
        left, right = st.columns([3, 2], gap="large")
        with left:
            _strongest(comparison)
        with right:
            if dataset.image_shape is not None:
                _images(dataset, mask, dataset.image_shape)
            _one_number(dataset, shown, comparison, mask)
    _table(comparison)
    _notes(comparison)


def _how_to_select() -> None:
    st.markdown(
        "Nothing is selected yet. Draw a lasso in a picture of the page Subspaces or UMAP, click "
        "on the count in the corner of a panel, or choose rows here by a rule. This page then "
        "tells what sets them apart from all other rows."
    )
    onward("explore", "Subspaces", ":material/scatter_plot:")


@st.cache_resource(show_spinner="Comparing", max_entries=16)
def _compared(key: str, _dataset: Dataset, _shown: Shown, _mask: np.ndarray) -> GroupComparison:
    del key
    return compare(_dataset, _shown.fitted, _mask)


def _strongest(comparison: GroupComparison) -> None:
    st.subheader("Strongest differences", anchor=False)
    told = [one for one in comparison.differences if one.matters][:BARS]
    chart(differences.bars(told or comparison.differences[:BARS]), "group_bars")


def _images(dataset: Dataset, mask: np.ndarray, shape: tuple[int, ...]) -> None:
    st.subheader("Mean images", anchor=False)

    def mean_pictures() -> differences.Images:
        group, rest = mean_images(dataset, mask)
        return differences.images(group, rest, dataset.as_images(np.stack([group, rest])), shape)

    means = kept(f"means-{dataset.digest}-{selection.token(dataset)}", mean_pictures)
    sprites = atlas.sprites(dataset.digest)
    inked = sprites is not None and sprites.style == "ink" and st.context.theme.type != "dark"
    sides = [255 - side if inked else side for side in (means.group, means.rest)]
    titles = ("the group", "the rest", "group − rest")
    figures = [
        _figure(picture, title)
        for picture, title in zip((*sides, means.difference), titles, strict=True)
    ]
    st.html(tag("div", "".join(figures), "ca-means"))
    st.caption(
        "On the right, red marks higher values in the group and blue lower ones; full colour is a "
        f"difference of {number(means.limit)} in the units of the data."
    )


def _figure(picture: np.ndarray, title: str) -> str:
    image = f'<img src="{data_uri(picture)}" alt="mean image: {words(title)}">'
    return tag("figure", image + tag("figcaption", words(title)))


def _one_number(
    dataset: Dataset, shown: Shown, comparison: GroupComparison, mask: np.ndarray
) -> None:
    """Draw the histograms of one of the numbers, at first of that which differs most."""
    scores = {score_name(shown.fitted, k): k for k in range(shown.fitted.scores.shape[1])}
    keys = {key: one for one in comparison.differences if (key := _key_of(one, dataset, scores))}
    if not keys:
        return
    st.subheader("One number", anchor=False)
    chosen = st.selectbox(
        "Number",
        list(keys),
        format_func=lambda key: keys[key].name,
        key=f"group_number-{dataset.digest[:8]}",
        label_visibility="collapsed",
    )
    values = np.asarray(column_of(dataset, shown.fitted, chosen).values, dtype=np.float64)
    if chosen.startswith("score:"):
        st.caption("Among the rows that use the component.")
    chart(differences.histograms(keys[chosen].name, values, mask), "group_histogram")


def _key_of(one: GroupDifference, dataset: Dataset, scores: dict[str, int]) -> str | None:
    """Return the key of a number's column in `row_query`; None for shares."""
    if one.is_share:
        return None
    if one.kind == "measure":
        return next(key for key in MEASURES if key == one.name)
    if one.kind == "score":
        return f"score:{scores[one.name]}"
    if one.kind == "class":
        return f"label:{one.name}"
    return f"feature:{dataset.column_names.index(one.name)}"


def _table(comparison: GroupComparison) -> None:
    import pandas as pd

    st.subheader("Everything that was compared", anchor=False)
    shown = comparison.differences
    pairs = [differences.sides(one) for one in shown]
    table = pd.DataFrame(
        {
            "what": [one.name for one in shown],
            "kind": [KINDS[one.kind] for one in shown],
            "group": [group for group, _ in pairs],
            "rest": [rest for _, rest in pairs],
            "effect": [one.effect for one in shown],
            "strength": [one.strength for one in shown],
            "Cohen's d": pd.array([one.d for one in shown], dtype="Float64"),
            "p, corrected": [probability(one.corrected) for one in shown],
        }
    )
    st.dataframe(
        table,
        hide_index=True,
        width="stretch",
        key="group_table",
        placeholder="",  # of a share, which has no Cohen's d
        column_config={
            "effect": st.column_config.NumberColumn(
                format="%+.2f",
                help="For a number Cliff's delta: how much more often a row of the group has the "
                "larger value than a row of the rest; for a share the difference. From −1 to 1.",
            ),
            "Cohen's d": st.column_config.NumberColumn(
                format="%+.2f", help="Difference of the means in standard deviations."
            ),
        },
    )


def _notes(comparison: GroupComparison) -> None:
    whole = ", ".join(
        f"{one.name} {one.v:.2f} (p {probability(one.corrected)})"
        for one in comparison.associations
    )
    lines = [
        f"Means of numbers, shares of all else. {comparison.n_tests:,} tests (Mann-Whitney for "
        "numbers; chi-square, or Fisher's exact one for small counts, for shares), p corrected for "
        "all of them after Benjamini and Hochberg. Among many rows even a trifling difference has "
        "a tiny p, so the list is ordered by the size of the effect.",
        "A group drawn by a lasso was chosen by its scores: their p values are too small. Labels "
        "and features that were not used to draw it are evidence.",
    ]
    if whole:
        lines.append(f"Cramér's V of whole columns, 0 to 1: {whole}.")
    if comparison.sampled is not None:
        lines.append(
            f"The features were compared on {counted(comparison.sampled, 'row')} drawn at random, "
            "since there are very many values."
        )
    for line in lines:
        st.caption(markdown(line))
