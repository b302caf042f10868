"""The tab Meaning: which columns go with which components, and names after them."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from appca.analysis.check.choose import sample_of
from appca.analysis.components.association import (
    SIGNIFICANT,
    associated,
    measures_of_rows,
    proposed_names,
)
from appca.analysis.components.components import name_of, own_name
from appca.analysis.export.projections import csv_bytes
from appca.data.dataset import Dataset
from appca.plots.components.association import association_map
from appca.ui.components import sets
from appca.ui.parts import acts
from appca.ui.parts.chart import chart
from appca.ui.parts.downloads import save_button
from appca.ui.parts.text import markdown, tag, words
from appca.ui.session import names
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 2_000  # that are tested, a fair sample
MOST_FEATURES = 200  # of a table, above which only its labels are tested
MOST_LINES = 30  # of the heat map
_SEED = 0


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer in a sentence, the heat map, names to take, and all tests on demand."""
    first = st.container()
    with st.expander("Regions of an atlas" if dataset.is_recording else "Sets of features"):
        chosen = sets.choose(dataset)
        sets.draw(dataset, shown, chosen)
    with first:
        _meaning(dataset, shown, sets.regions(dataset, chosen))


def _meaning(dataset: Dataset, shown: Shown, more: dict[str, np.ndarray]) -> None:
    key = f"meaning-{shown.key}-{dataset.digest}-{sets.stored(dataset).file if more else ''}"
    tests = kept(key, lambda: _tests(dataset, shown, more))
    telling = tests[tests["q"] < SIGNIFICANT]
    if not len(telling):
        st.markdown("**No column goes with a component more than chance allows.**")
        st.caption(f"{counted(len(tests), 'test')}; q, corrected for all of them, is above 5%.")
        return
    st.markdown(sentence(telling, dataset, shown))
    _names(tests, shown)
    named = [name_of(shown.fitted, k) for k in range(len(shown.fitted.components))]
    st.caption(
        "Square: goes with using the component. Ring: goes with the score of the rows that use "
        "it. Red: rises with it. Blue: falls. Purple: classes differ. Pale: a small effect."
    )
    chart(association_map(_ordered(telling, dataset), named), "meaning_map")
    with st.expander(f"All {len(tests):,} tests"):
        tests = tests.drop(columns=["high", "low"])
        st.dataframe(tests, hide_index=True, width="stretch", key="meaning_table")
        sampled = min(dataset.n_rows, MOST_ROWS)
        st.caption(
            f"Effects from 0, chance, to 1. p by 999 permutations of {counted(sampled, 'row')}, q "
            "corrected for all tests (Benjamini and Hochberg). Measurements shape the components, "
            "so their p values only confirm that."
        )
        made = partial(csv_bytes, tests)
        save_button("Save CSV", made, f"meaning-{shown.config.id}.csv", key="meaning-csv")


def _tests(dataset: Dataset, shown: Shown, more: dict[str, np.ndarray]) -> "pd.DataFrame":
    rows = sample_of(dataset.n_rows, MOST_ROWS, _SEED)
    X = dataset.with_gaps(rows)
    measures = measures_of_rows(X)
    table = {name: values[rows] for name, values in (dataset.labels | more).items()}
    if dataset.image_shape is None and dataset.n_features <= MOST_FEATURES:
        table |= dict(zip(dataset.column_names, X.T.astype(float), strict=True)) | table
    scores, active = shown.fitted.scores[rows], shown.fitted.active[rows]
    tests = associated(scores, active, measures | table, technical=measures, random_state=_SEED)
    inside = tests["column"].isin(list(set(table) - set(dataset.labels | more)))
    tests.loc[inside, "technical"] = ""  # a sum of columns follows its largest ones
    return tests


def _ordered(tests: "pd.DataFrame", dataset: Dataset) -> "pd.DataFrame":
    """Return the tests of the first columns: labels, then technical ones, then features."""
    technical = tests["technical"] != ""
    place = np.where(technical, 1, np.where(tests["column"].isin(dataset.labels), 0, 2))
    named = tests.assign(column=tests["column"] + np.where(technical, " (technical)", ""))
    ordered = named.iloc[np.argsort(place, kind="stable")]
    lines = list(dict.fromkeys(ordered["column"]))[:MOST_LINES]
    return ordered[ordered["column"].isin(lines)]


def sentence(tests: "pd.DataFrame", dataset: Dataset, shown: Shown) -> str:
    """Say as Markdown what goes most with a component, and which measurement goes with that."""
    sound = tests[tests["technical"] == ""]
    labels = sound[sound["column"].isin(dataset.labels)]
    first = next(part.iloc[0] for part in (labels, sound, tests) if len(part))
    text = f"**{_said(first, shown)}**"
    same = (sound["component"] == first["component"]) & (sound["part"] == first["part"])
    others = sound[same & ~sound["column"].isin([*dataset.labels, first["column"]])]
    if len(others) and first["column"] in dataset.labels:
        other = others.iloc[0]
        text += f" Of the measurements, {markdown(shortened(other['column']))} goes most with it, "
        text += f"too: it {other['direction']}."
    if first["technical"]:
        text += f" It {first['technical']}, so it may stem from the measurement."
    return text


def _said(test: "pd.Series[Any]", shown: Shown) -> str:
    component = name_of(shown.fitted, test["component"] - 1)
    what = "the score on" if test["part"] == "score" else "the use of"
    ends = {"high": test["high"], "low": test["low"]}
    way = ", ".join(f"{end} for {', '.join(names)}" for end, names in ends.items() if names)
    way = way or f"it {test['direction']} with it"
    column = shortened(test["column"])
    return markdown(f"{column[:1].upper() + column[1:]} goes most with {what} {component}: {way}.")


def _names(tests: "pd.DataFrame", shown: Shown) -> None:
    """Offer a name for each component without its own, taken with one click."""
    proposed = {k: name for k, name in proposed_names(tests).items() if shown.run is not None}
    free = {k: name for k, name in proposed.items() if not own_name(shown.fitted, k - 1)}
    if not free:
        return
    st.caption("Click a name to give it to its component")
    buttons = "".join(
        acts.button(
            tag("b", str(k)) + " " + words(shortened(name)),
            "name",
            k,
            f"Name component {k} “{name}”",
            "ca-act ca-offer",
        )
        for k, name in sorted(free.items())
    )

    def take(k: str, _: str) -> None:
        if k.isdecimal() and int(k) in free:
            names.rename(shown.run, int(k) - 1, free[int(k)])

    acts.acting(tag("div", buttons, "ca-offers"), "meaning-names", {"name": take})
