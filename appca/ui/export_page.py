"""The page Export: which rows, what a file will hold, and the buttons."""

import numpy as np
import streamlit as st

from appca.analysis.as_python import Recipe, script
from appca.analysis.export import projection_table
from appca.data.dataset import Dataset
from appca.data.wording import counted
from appca.runs.config import MODELS
from appca.runs.fit import DESCRIBED_AT_ONCE
from appca.runs.home import threads
from appca.runs.store import title
from appca.ui import selection
from appca.ui.downloads import download_buttons
from appca.ui.fitting import Shown

EXAMPLE_ROWS = 8


def which_rows(dataset: Dataset) -> np.ndarray | None:
    """Draw the choice of rows; None stands for all."""
    mask = selection.get(dataset)
    n_selected = int(mask.sum())
    choices = {
        "all": f"All {counted(dataset.n_rows, 'row')}",
        "selected": f"Selected ({n_selected:,})",
    }
    wanted = st.segmented_control(
        "Rows",
        list(choices),
        default="all",
        format_func=choices.get,
        key="export_rows",
        required=True,
        persist_state="session",
    )
    if wanted == "selected" and not n_selected:
        st.info("Nothing is selected yet; draw a lasso on the page Subspaces or UMAP.")
    return np.flatnonzero(mask) if wanted == "selected" else None


def example(dataset: Dataset, shown: Shown, rows: np.ndarray | None) -> None:
    """Draw the first lines of the file."""
    first = np.arange(min(EXAMPLE_ROWS, dataset.n_rows)) if rows is None else rows[:EXAMPLE_ROWS]
    st.dataframe(projection_table(dataset, shown.arrays, first), hide_index=True, width="stretch")
    st.caption(
        "One line a row: its id and labels, its subspace, its score on each component (zero where "
        "it does not use one), how sure its subspace is, its reconstruction error (mean square a "
        "feature, after preprocessing) and its log-likelihood. The NPZ file holds the components "
        "too, in units of the data."
    )


def files(dataset: Dataset, shown: Shown, rows: np.ndarray | None) -> None:
    """Draw the buttons."""
    stem = "projection" if rows is None else "selection"
    download_buttons(dataset, shown, rows, stem, primary=True)


def as_python(dataset: Dataset, shown: Shown) -> None:
    """Draw the run as a script, to be copied by the button in its corner."""
    st.subheader("Copy as Python", anchor=False)
    st.caption(
        "This script makes the run again: the same data, settings and seed give the same numbers "
        "to the bit on the same machine with the same versions. Copy it by the button in the "
        "corner."
    )
    st.code(script(dataset, recipe(shown)), language="python", height=360)


def recipe(shown: Shown) -> Recipe:
    """Return what a run was made with."""
    config, spec = shown.config, MODELS[shown.config.model]
    return Recipe(
        run=config.id,
        title=title(config),
        estimator=spec.estimator,
        parameters=config.parameters,
        preprocessing=config.preprocessing,
        stopped_at=config.stopped_at,
        described_at_once=DESCRIBED_AT_ONCE if spec.compiled else None,
        threads=threads(),
        log_likelihood=shown.info["log_likelihood"],
    )
