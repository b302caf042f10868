"""The tab Sharing: which classes use which components, and which classes share most."""

import numpy as np
import streamlit as st

from appca.analysis.components import sharing
from appca.analysis.components.components import name_of
from appca.analysis.components.sharing import Sharing
from appca.data.dataset import Dataset
from appca.plots.components.sharing import popularity_bars, popularity_map
from appca.ui.parts import class_choice
from appca.ui.parts.chart import chart
from appca.ui.parts.class_choice import Classes
from appca.ui.parts.text import markdown
from appca.ui.session.fitting import Shown
from appca.words.numbers import percent
from appca.words.wording import counted, shortened

NEAR = 2 / 3  # L of K from which two rows share most of their components whatever the data
ALIKE = 0.1  # numbers that differ by less than so much of the largest say little
LEAST_USED = 0.1  # of the rows of both classes, from which on they are said to share a component


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer in a sentence and the share of each class that uses each component."""
    fitted = shown.fitted
    classes = class_choice.choose(dataset, "sharing")
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
