"""The tab This data: what is on screen, what was assumed of its files, and the preprocessing."""

import numpy as np
import streamlit as st

from appca.canvas.sprites import sample
from appca.data.dataset import Dataset
from appca.data.readers.facts import facts
from appca.data.readers.intake import duplicate_rows
from appca.ui.arrivals import opening
from appca.ui.arrivals.upload_forms import form_of
from appca.ui.frame.place import place_of_fits
from appca.ui.parts.facts import data_facts
from appca.ui.parts.text import fact_list, markdown
from appca.ui.rows.pictures import sheet_of
from appca.ui.session import fitting, state
from appca.ui.session.caching import by_key
from appca.ui.settings.preprocessing import preprocessing
from appca.words.numbers import about
from appca.words.wording import counted

COLUMNS, LINES = 20, 6  # of the picture of images
TABLE_ROWS, MOST_COLUMNS = 10, 30
MOST_NAMES = 6


def page(dataset: Dataset) -> None:
    """Draw the tab."""
    opened = opening.of(dataset.digest)
    if opened is not None and not _is_as_opened(opened):
        return
    with st.container(key="beside"):
        look, before = st.columns([1.5, 1], gap="large")
    with look:
        overview(dataset)
    with before:
        st.subheader("Before the fit", anchor=False)
        preprocessing(dataset)


def _is_as_opened(opened: opening.Opened) -> bool:
    """Draw how the files are read; return whether the data on screen are what that gives."""
    names = [name for name, _ in opened.arrival.files]
    st.subheader(names[0] if len(names) == 1 else counted(len(names), "file"), anchor=False)
    options = form_of(
        opened.kind, opened.key, lambda chosen: opened.read(chosen).report, opened.options
    )
    outcome = opened.read(options)
    if outcome.dataset is None:
        st.error(markdown(outcome.sentence))
    elif outcome.dataset.digest == opened.digest:
        return True
    else:
        label = f"Explore these {counted(outcome.dataset.n_rows, 'row')}"
        pressed = st.button(label, type="primary", key="upload_use")
        st.html(fact_list(facts(outcome.report, outcome.dataset)))
        if pressed:
            opened.options = options
            opening.use(opened, outcome.dataset)
    return False


def overview(dataset: Dataset) -> None:
    """Draw the facts and a picture of the rows."""
    st.text(dataset.name)
    st.html(facts_of(dataset))
    pictures(dataset)


def facts_of(dataset: Dataset) -> str:
    """Return what a person should know before fitting, as HTML."""
    constant, repeated = _checked(dataset.digest, dataset.X)
    lines = {
        "Constant features": _named(constant, dataset),
        "Repeated rows": f"{repeated:,}" if repeated else "none",
        "Fit": f"{about(fitting.seconds())}",
    }
    where = place_of_fits(state.config(), dataset)
    return fact_list(data_facts(dataset) | lines | ({"Where": where} if where else {}))


def pictures(dataset: Dataset) -> None:
    """Draw a sample of the images, or the first rows as a table."""
    if dataset.image_shape is None:
        preview_table(dataset, np.arange(min(TABLE_ROWS, dataset.n_rows)))
        return
    rows = sample(dataset.n_rows, COLUMNS * LINES)
    with st.container(key="pictures"):
        alt = f"{counted(len(rows), 'image')} of the data set"
        st.image(sheet_of(dataset, rows, COLUMNS), width="stretch", alt=alt)
    st.caption(f"{counted(len(rows), 'row')} drawn at random, in the order of the data")


def preview_table(dataset: Dataset, rows: np.ndarray) -> None:
    """Draw a few rows: id, labels and the first features; missing cells are left empty."""
    import pandas as pd

    columns = {"id": dataset.ids[rows]}
    columns |= {name: values[rows] for name, values in dataset.labels.items()}
    X = dataset.with_gaps(rows)
    for j, name in enumerate(dataset.column_names[:MOST_COLUMNS]):
        columns[name if name not in columns else f"{name} (feature)"] = X[:, j]
    st.dataframe(pd.DataFrame(columns), hide_index=True, width="stretch")
    if dataset.n_features > MOST_COLUMNS:
        st.caption(f"The first {MOST_COLUMNS} of {dataset.n_features:,} features.")


@by_key(16)
def _checked(X: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the numbers of the columns that have one value only, and how many rows repeat."""
    return np.flatnonzero((X[:1] == X).all(axis=0)), duplicate_rows(X)


def _named(constant: np.ndarray, dataset: Dataset) -> str:
    if not len(constant):
        return "none"
    if dataset.feature_names is None:
        return f"{len(constant):,}"
    names = ", ".join(dataset.feature_names[j] for j in constant[:MOST_NAMES])
    return f"{len(constant):,}: {names}{'…' if len(constant) > MOST_NAMES else ''}"
