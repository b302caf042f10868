"""The tab Whitening: what a classifier learns from scores, on the paper's digits and own data."""

from typing import Any

import streamlit as st

from appca.data.dataset import Dataset
from appca.studies.experiments.whitening import STUDY as WHITENING
from appca.studies.study import Options
from appca.ui.paper import results
from appca.ui.paper.why import shown
from appca.ui.parts import progress
from appca.ui.parts.class_choice import every
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of
from appca.words.numbers import about
from appca.words.wording import capital, counted

SIZES = (2, 3, 5, 7, 10, 15, 20, 30, 50)
USUAL = (3, 5, 10)
LARGE, FEW_EPOCHS, MANY_EPOCHS = 5000, 40, 100  # rows; small data need more passes
FOLDS = {3: "3", 5: "5", 10: "10"}
# Seconds on two idle cores, measured: in all; and a row, epoch, fold and K, without and by feature.
_START, _STEP, _STEP_A_FEATURE = 4.0, 1.7e-5, 2.5e-8


def body(dataset: Dataset) -> None:
    """Draw the paper's result, and the same on the data in use."""
    kept = results.newest(WHITENING)
    if kept is not None:
        shown(WHITENING, kept)
    st.subheader(f"On {markdown(dataset.name)}", anchor=False)
    options = _choices(dataset)
    if options is None:
        return
    result = results.stored(WHITENING, options)
    if result is None:
        _wait_or_offer(dataset, options)
    else:
        shown(WHITENING, result)


def _choices(dataset: Dataset) -> Options | None:
    """Draw the settings; return the options of the experiment, or None if it cannot be made."""
    there, digest = [classes.title for classes in every(dataset)], dataset.digest
    if not there:
        st.info("This needs data with a column that names the class of each row.")
        return None
    earlier = (options for options in results.options_of(WHITENING) if options["data"] == digest)
    usual: Options = {"label": there[0], "components": USUAL, "folds": 5}
    last = next(earlier, usual)
    sizes = [size for size in SIZES if size <= _most(dataset)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        label = st.selectbox(
            "Classes",
            there,
            index=there.index(last["label"]) if last["label"] in there else 0,
            format_func=capital,
            key=f"whitening_label_{digest[:8]}",
            persist_state="session",
            width=180,
        )
        n_folds = one_of(
            "Folds",
            FOLDS,
            f"whitening_folds_{digest[:8]}",
            last["folds"],
            "Each row is tested once, by a classifier trained on the other folds.",
        )
        components: Any = st.pills(
            "Components K",
            sizes,
            default=[size for size in last["components"] if size in sizes] or sizes,
            selection_mode="multi",
            key=f"whitening_k_{digest[:8]}",
            persist_state="session",
        )
    if not components:
        st.caption("Choose at least one K.")
        return None
    return WHITENING.options(
        "default",
        data=digest,
        label=label,
        components=sorted(components),
        folds=n_folds,
        folds_done=n_folds,
        epochs=FEW_EPOCHS if dataset.n_rows >= LARGE else MANY_EPOCHS,
    )


def _most(dataset: Dataset) -> int:
    """Return the largest K for which there are training rows and features."""
    n_rows: int = min(dataset.n_rows, WHITENING.options("default")["n_rows"])
    return min(n_rows * (min(FOLDS) - 1) // min(FOLDS) - 1, dataset.n_features)


def _wait_or_offer(dataset: Dataset, options: Options) -> None:
    """Draw the progress, or the button with its time."""
    key = WHITENING.id(options)
    if progress.follow(key, cancel="whitening_cancel"):
        return
    n_rows = min(dataset.n_rows, options["n_rows"])
    steps = n_rows * options["epochs"] * options["folds"] * len(options["components"])
    takes = _START + steps * (_STEP + _STEP_A_FEATURE * dataset.n_features)
    st.caption(f"{counted(n_rows, 'row')}, {counted(options['folds'], 'fold')}.")
    spec = results.spec_of(WHITENING, options)
    label = f"Compare, {about(takes)}"
    progress.button(label, "whitening_run", "study", key, spec, primary=False)
