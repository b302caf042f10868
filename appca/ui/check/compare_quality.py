"""The page Compare, other methods: the job that measures them, and what it found."""

import streamlit as st

from appca.data.dataset import Dataset
from appca.runs.home import home
from appca.runs.quality import MethodComparison, QualityConfig, QualityStore
from appca.storage.wording import counted
from appca.ui.check import compare_tables
from appca.ui.check.compare_choice import sizes
from appca.ui.parts.downloads import save_button
from appca.ui.parts.gaps_note import gaps_note
from appca.ui.parts.text import about, markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import computation, watching
from appca.ui.session.fitting import Shown

MANY = 10_000  # rows above which a sample is compared unless all are asked for
METHODS = 9


def settings(dataset: Dataset, shown: Shown) -> QualityConfig:
    """Draw the choice of rows where there are many, and return what is to be compared."""
    gaps_note(dataset, "All methods here, this model among them,")
    k, active = sizes(shown)
    whole = QualityConfig(shown.config.to_dict(), k, active)
    if dataset.n_rows <= MANY:
        return whole
    start = shown.config.to_dict()
    choices = {rows: QualityConfig(start, k, active, rows or None) for rows in (MANY, 0)}
    known = [
        rows
        for rows, config in choices.items()
        if watching.running(config.id) is not None or _stored(config) is not None
    ]
    names = {MANY: f"{MANY:,} drawn at random", 0: f"all {dataset.n_rows:,}"}
    first = (known or [MANY])[0]
    return choices[one_of("Rows compared", names, f"quality_rows-{whole.id}", first)]


def _stored(config: QualityConfig) -> MethodComparison | None:
    return QualityStore(home()).get(config.id)


def body(shown: Shown, config: QualityConfig) -> None:
    """Draw the comparison: running, finished, or the button that starts it."""
    told = "Methods that have been measured are kept when you cancel."
    if computation.follow_filling(config.id, "quality_cancel", told, lambda: _so_far(config)):
        return
    found = _stored(config)
    if found is None or not found.complete:
        _offer(shown, config, found)
    if found is not None:
        _tables(config, found)


def _tables(config: QualityConfig, found: MethodComparison) -> None:
    """Draw what has been measured."""
    sentence = compare_tables.in_words(config, found)
    if sentence:
        st.markdown(markdown(sentence))
    st.html(compare_tables.table(config, found))
    st.caption(compare_tables.fairness(config, found))
    if found.panels:
        st.subheader("Crowding: classes in a panel and in one picture", anchor=False)
        st.html(compare_tables.panels_table(config, found))
        st.caption(
            "How often the class of a row is the most frequent one among its "
            f"{found.facts['n_neighbors']} nearest rows: in the panel of its subspace; for the "
            "same rows as PCA places them; and there among all rows, as one picture shows them."
        )
    save_button(
        "Save the table as CSV",
        lambda: compare_tables.csv_text(found),
        f"quality-{config.id}.csv",
        "text/csv",
        key="quality",
    )


def _so_far(config: QualityConfig) -> None:
    found = _stored(config)
    if found is not None:
        st.html(compare_tables.table(config, found))


def _offer(shown: Shown, config: QualityConfig, found: MethodComparison | None) -> None:
    if found is None:
        n = config.rows or shown.info.n_rows
        st.markdown(
            f"How much of the data does this projection keep, beside others? Up to {METHODS} "
            f"methods are fitted in the background to four fifths of {n:,} rows and judged by "
            f"the fifth held out, each for at most {about(config.seconds).removeprefix('about ')}. "
            "Small tables take a minute, 10,000 images of 784 pixels several."
        )
    else:
        done = len(found.lines)
        have = "has" if done == 1 else "have"
        st.markdown(f"{counted(done, 'method')} {have} been measured before it was ended.")
    label = "Measure" if found is None else "Go on"
    spec = {"key": config.id, "config": config.to_dict()}
    computation.button(label, "quality_start", "quality", config.id, spec)
