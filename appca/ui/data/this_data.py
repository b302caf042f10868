"""The tab This data: what is on screen, what was assumed of its files, and the preprocessing."""

import numpy as np
import streamlit as st

from appca.canvas.sprites import sample
from appca.data.dataset import Dataset
from appca.data.readers.intake import duplicate_rows
from appca.runs.fit import estimate_seconds
from appca.ui.arrivals import opening
from appca.ui.arrivals.chips import AUTO, changed
from appca.ui.arrivals.image_shape import shape_of
from appca.ui.arrivals.opening import Opened, Reading
from appca.ui.data import class_names
from appca.ui.data.preview import chip_row, table
from appca.ui.data.shapes import shapes
from appca.ui.parts.facts import data_facts
from appca.ui.parts.text import fact_list, markdown, tag, words
from appca.ui.rows.pictures import sheet_of
from appca.ui.session import fitting, services, state
from appca.ui.session.caching import by_key
from appca.ui.session.callbacks import guarded
from appca.ui.settings.preprocessing import preprocessing
from appca.words.numbers import about
from appca.words.wording import capital, counted

COLUMNS, LINES = 20, 6  # of the picture of images
MOST_NAMES = 6
LEAST = 4  # features of a line


def page(dataset: Dataset) -> None:
    """Draw the tab."""
    opened = opening.of(dataset.digest)
    if opened is not None and not _is_as_opened(opened):
        return
    if opened is None and dataset.image_shape is None:
        table(Reading(dataset, "", {}), None, dataset.digest[:12])
    with st.container(key="beside"):
        look, before = st.columns([1.5, 1], gap="large")
    with look:
        overview(dataset)
    with before:
        st.subheader("Before the fit", anchor=False)
        preprocessing(dataset)


def _is_as_opened(opened: Opened) -> bool:
    """Draw how the files are read; return whether the data on screen are what that gives."""
    reading = opened.read(opened.draft)
    names = [name for name, _ in opened.arrival.files]
    name = names[0] if len(names) == 1 else counted(len(names), "file")
    rows, columns = (reading.report.get(side, 0) for side in ("rows", "columns"))
    sides = f"{counted(rows, 'row')}, {counted(columns, 'column')}" if rows else ""
    st.html(tag("h3", words(name) + " " + tag("span", words(sides), "ca-quiet"), "ca-file"))
    chip_row(opened, reading)
    _more_options(opened, reading)
    fits = shapes(opened, reading)
    if reading.dataset is None:
        st.error(markdown(reading.sentence))
    if reading.head or (reading.dataset is not None and reading.dataset.image_shape is None):
        table(reading, opened, opened.key)
    if reading.dataset is None or not fits:
        _cancel(opened)
        return False
    if reading.dataset.digest == opened.digest:
        return True
    if reading.dataset.image_shape is not None and shape_of(opened.kind, opened.draft) is None:
        pictures(reading.dataset)
    _finish(opened, reading.dataset)
    return False


def _more_options(opened: Opened, reading: Reading) -> None:
    """Draw options that no chip can hold: labels of annotated data, and names of images."""
    if reading.report.get("obs"):
        _labels(opened, reading.report["obs"])
    if opened.kind == "images":
        _pattern(opened)


def _labels(opened: Opened, columns: list[str]) -> None:
    def change() -> None:
        labels = st.session_state[key]
        opened.draft = changed(opened.draft, "labels", AUTO if labels == columns else labels)

    now = opened.draft.get("labels", columns)
    key = f"labels-{opened.key}-{now}"  # another one shows what an undo brings back
    st.multiselect(
        "Labels, from obs",
        columns,
        default=now,
        key=key,
        on_change=guarded(change),
        help="The picture begins with the colours of the first. To move a label to the end, "
        "remove it and add it again.",
    )


def _pattern(opened: Opened) -> None:
    def change() -> None:
        opened.draft = changed(opened.draft, "pattern", st.session_state[key].strip() or AUTO)

    now = opened.draft.get("pattern", "")
    key = f"pattern-{opened.key}-{now}"
    st.text_input(
        "Pattern of the names",
        now,
        key=key,
        placeholder="{class}__{n}.png",
        disabled=opened.draft.get("classes") in ("folder", "none"),
        on_change=guarded(change),
        help="Each name in braces becomes a label; {n} stands for digits, * for anything. "
        "With a / the folders count, too: {class}/*",
    )


def _finish(opened: Opened, data: Dataset) -> None:
    """Draw what the files are to become, and the way there."""
    with st.container(horizontal=True, vertical_alignment="center", key="preview_foot"):
        st.text(_summary(data), width="stretch")
        _cancel(opened)
        if st.button("Explore", type="primary", key="upload_use", icon=":material/arrow_forward:"):
            opened.options = opened.draft
            opening.use(opened, data)


def _cancel(opened: Opened) -> None:
    @guarded
    def back() -> None:
        opened.draft = opened.options

    if opened.digest is not None and opened.draft != opened.options:
        st.button("Cancel", key="upload_cancel", on_click=back)


def _summary(data: Dataset) -> str:
    """Say what the files are to become."""
    what = f"{data.n_features:,} features"
    if data.image_shape is not None:
        what = "images of " + " × ".join(map(str, data.image_shape[:2])) + " pixels"
    colour = f", coloured by {next(iter(data.labels))}" if data.labels else ""
    takes = estimate_seconds(data.n_rows, data.n_features, state.first_config(data))
    return f"{counted(data.n_rows, 'row')}, {what}{colour}. {capital(about(takes))}."


def overview(dataset: Dataset) -> None:
    """Draw the facts and a picture of the rows."""
    st.subheader(markdown(dataset.name), anchor=False)
    st.html(facts_of(dataset))
    _order(dataset)
    class_names.editor(dataset)
    pictures(dataset)


def _order(dataset: Dataset) -> None:
    """Draw whether the features follow each other: components and rows are lines then."""
    if dataset.image_shape is not None or dataset.is_recording or dataset.n_features < LEAST:
        return

    def change() -> None:
        services.note(dataset.digest, ordered=bool(st.session_state[key]))

    key = f"ordered-{dataset.digest[:12]}"
    st.session_state[key] = dataset.is_ordered
    label = "Features are in order, such as times or wavelengths"
    st.toggle(label, key=key, on_change=guarded(change), help="Components and rows become lines.")


def facts_of(dataset: Dataset) -> str:
    """Return what a person should know before fitting, as HTML."""
    constant, repeated = _checked(dataset.digest, dataset.X)
    lines = {
        "Constant features": _named(constant, dataset),
        "Repeated rows": f"{repeated:,}" if repeated else "none",
        "Fit": f"{about(fitting.seconds())}",
    }
    return fact_list(data_facts(dataset) | lines)


def pictures(dataset: Dataset) -> None:
    """Draw a sample of the images."""
    if dataset.image_shape is None:
        return
    rows = sample(dataset.n_rows, COLUMNS * LINES)
    with st.container(key="pictures"):
        alt = f"{counted(len(rows), 'image')} of the data set"
        st.image(sheet_of(dataset, rows, COLUMNS), width="stretch", alt=alt)
    st.caption(f"{counted(len(rows), 'row')} drawn at random, in the order of the data")


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
