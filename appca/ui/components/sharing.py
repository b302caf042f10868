"""The tab Sharing: which classes use which components, and which classes share most."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from appca.analysis.check.choose import sample_of
from appca.analysis.components import sharing
from appca.analysis.components.components import name_of
from appca.analysis.components.sharing import Sharing
from appca.analysis.components.variance import ALL, variance_by
from appca.data.dataset import Dataset
from appca.plots.components.sharing import popularity_bars, popularity_map
from appca.ui.components import sets
from appca.ui.parts import class_choice
from appca.ui.parts.chart import chart
from appca.ui.parts.class_choice import Classes
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import selection
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.numbers import percent
from appca.words.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 20_000  # whose variance is split, a fair sample
NEAR = 2 / 3  # L of K from which two rows share most of their components whatever the data
ALIKE = 0.1  # numbers that differ by less than so much of the largest say little
LEAST_USED = 0.1  # of the rows of both classes, from which on they are said to share a component


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer in a sentence and the share of each class that uses each component."""
    fitted = shown.fitted
    with st.container(horizontal=True, vertical_alignment="bottom"):
        classes = class_choice.choose(dataset, "sharing")
        choices = {"rows": "Rows that use it", "variance": "Variance it explains"}
        what = one_of("Share of", choices, "sharing_of")
        some = what == "variance" and bool(selection.get(dataset).any())
        inside = some and one_of("Rows", {False: "All", True: "Selected"}, "sharing_rows")
    if what == "variance":
        _variance(dataset, shown, classes, selection.get(dataset) if inside else None)
        return
    active = fitted.active
    named = [name_of(fitted, k) for k in range(active.shape[1])]
    if classes is None:
        used = sharing.popularity(active)
        most = int(used.argmax())
        st.markdown(
            f"**{markdown(named[most].capitalize())} is used most: by {percent(used[most])} of "
            "rows.** With a column of classes this shows what they share."
        )
        chart(popularity_bars(used, named), "sharing_bars")
        return
    shares = sharing.popularity_by_class(active, classes.codes, len(classes.names))
    shared = sharing.sharing(active, classes.codes, len(classes.names))
    st.markdown(sentence(shown, shared, shares, named, classes))
    chart(popularity_map(shares, classes.names, named), "sharing_map")
    st.caption("Colour: the share of each class that uses the component.")


def _variance(
    dataset: Dataset, shown: Shown, classes: Classes | None, mask: np.ndarray | None
) -> None:
    """Draw the share of variance by component, class and set of features; each line is 100%."""
    fitted = shown.fitted
    every = np.arange(dataset.n_rows) if mask is None else np.flatnonzero(mask)
    rows = every[sample_of(len(every), MOST_ROWS, 0)]
    blocks = None if fitted.preprocessing.reduces else sets.blocks(dataset)
    names = np.array([*(classes.names if classes else ()), "all rows"])
    codes = classes.codes[rows] if classes else np.full(len(rows), -1)
    classed = codes >= 0 if classes else codes < 0

    def split() -> "pd.DataFrame":
        model, X = sets.rows_of_fit(dataset, shown, rows[classed])
        return variance_by(model, X, classes=names[codes[classed]], blocks=blocks)

    key = f"variance-{shown.key}-{classes and classes.title}-{selection.token(dataset)}"
    parts = kept(f"{key}-{mask is None}-{sets.stored(dataset).file}", split)
    if not len(parts):
        st.caption("None of the selected rows has a class.")
        return
    shares = parts.pivot_table(index=["class", "block"], columns="component", values="share")
    lines = [name if block == ALL else f"{name}, {block}" for name, block in shares.index]
    values = shares.to_numpy()
    named = [name_of(fitted, k) for k in range(values.shape[1] - 1)]
    line, most = np.unravel_index(values[:, 1:].argmax(), values[:, 1:].shape)
    text = f"{named[most].capitalize()} explains {percent(values[line, 1 + most])} of the variance"
    st.markdown(f"**{markdown(f'{text} of {shortened(lines[line])}, the largest share.')}**")
    of = ("explains", "variance", "none")
    chart(popularity_map(np.roll(values, -1, 1), lines, [*named, "no component"], of), "variance")
    st.caption(
        f"{counted(len(rows), 'row')}. Each line adds up to 100%; the last column is what no "
        "component explains. Variance is the squared distance from the model's mean. A share is "
        "below 0 where a component moves rows away from the data."
    )


def sentence(
    shown: Shown, shares_of_pairs: Sharing, shares: np.ndarray, named: list[str], classes: Classes
) -> str:
    """Say as Markdown which classes share most, and what of; or why nothing can be made of it."""
    caution = _caution(shown, shares_of_pairs)
    pairs = sharing.closest_pairs(shares_of_pairs)
    if caution or not pairs:
        return caution or "There is one class with rows, so nothing to compare."
    first = pairs[0]
    name, other = (markdown(shortened(classes.names[c])) for c in (first.first, first.second))
    both = np.minimum(shares[first.first], shares[first.second])
    common = [k for k in np.argsort(-both, kind="stable")[:2] if both[k] >= LEAST_USED]
    of = " and ".join(markdown(shortened(named[k])) for k in common)
    more = first.shared / shares_of_pairs.overall - 1 if shares_of_pairs.overall else 0.0
    than = f", {percent(more)} more than two rows do on average" if more >= 0.005 else ""
    return f"**{name} and {other} share most: {first.shared:.2f} components a row{than}.**" + (
        f" Both use {of}." if of else ""
    )


def _caution(shown: Shown, shares: Sharing) -> str:
    """Return what keeps the comparison from saying anything; empty where nothing does."""
    k, active = len(shown.fitted.components), shown.config.n_active
    if active is not None and active >= k:
        return (
            "Every row uses all components, so all classes share all of them. Choose a smaller L."
        )
    if active is not None and active >= NEAR * k:
        least = counted(sharing.least_shared(k, active), "component")
        return f"Any two rows share at least {least}, whatever the data. A smaller L tells more."
    largest = float(np.nanmax(shares.shared, initial=0.0))
    if largest - float(np.nanmin(shares.shared, initial=largest)) < ALIKE * largest:
        return "All classes share about equally much: what a row uses says little about its class."
    return ""
