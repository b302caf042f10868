"""The page Whitening: which data, classes and numbers of components, and what came out."""

from typing import Any

import numpy as np
import streamlit as st

from appca.data.dataset import Dataset
from appca.storage.wording import capital, counted
from appca.studies.experiments.whitening import STUDY
from appca.studies.store import Stored
from appca.studies.study import Options
from appca.ui.paper import results
from appca.ui.parts import progress
from appca.ui.parts.chart import chart
from appca.ui.parts.class_choice import columns, none_yet
from appca.ui.parts.study_files import claims_table, made, save_buttons
from appca.ui.parts.text import about, markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import computation

SIZES = (2, 3, 5, 7, 10, 15, 20, 30, 50)
USUAL = (3, 5, 10)
LARGE, FEW_EPOCHS, MANY_EPOCHS = 5000, 40, 100  # rows; small data need more passes
FOLDS = {3: "3", 5: "5", 10: "10"}
# Seconds on two idle cores, measured: in all; and a row, epoch, fold and K, without and by feature.
_START, _STEP, _STEP_A_FEATURE = 4.0, 1.7e-5, 2.5e-8
TABLE = {
    "title": "inputs of the classifier",
    "K": "K",
    "L": "L",
    "accuracy": "accuracy",
    "accuracy_sd": "its sd",
    "gain_at_k": "above PCA of K",
    "gain_at_k_error": "± of it",
    "gain_at_l": "above PCA of L",
    "gain_at_l_error": "± of that",
}


def body(dataset: Dataset) -> None:
    """Draw the settings, and the result or what makes it."""
    st.markdown(
        "How much a classifier learns from the projection alone. A perceptron with one hidden "
        "layer is trained on most rows and tested on the others, several times: on the raw values, "
        "on the scores of PCA, and on those of adaptive PCA, each coordinate divided by its root "
        "mean square (whitened)."
    )
    options = _choices(dataset)
    if options is None:
        return
    kept = results.stored(STUDY, options)
    if kept is None:
        _wait_or_offer(dataset, options)
    else:
        _result(kept)


def _choices(dataset: Dataset) -> Options | None:
    """Draw the settings; return the options of the experiment, or None if it cannot be made."""
    there, digest = columns(dataset), dataset.digest
    if not there:
        st.info(f"{none_yet(dataset)}.")
        return None
    known = (options for _, options in results.known(STUDY.name) if options["data"] == digest)
    usual: Options = {"label": there[0], "components": USUAL, "folds": 5}
    last = next(known, usual)
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
            "Every row is tested once: by a classifier that has learnt from the other folds.",
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
    return STUDY.options(
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
    n_rows: int = min(dataset.n_rows, STUDY.options("default")["n_rows"])
    return min(n_rows * (min(FOLDS) - 1) // min(FOLDS) - 1, dataset.n_features)


def _wait_or_offer(dataset: Dataset, options: Options) -> None:
    """Draw the running job, or how long it takes and the button."""
    key = STUDY.id(options)
    if progress.follow(key, cancel="whitening_cancel"):
        return
    n_rows = min(dataset.n_rows, options["n_rows"])
    steps = n_rows * options["epochs"] * options["folds"] * len(options["components"])
    takes = _START + steps * (_STEP + _STEP_A_FEATURE * dataset.n_features)
    only = f"the first {n_rows:,} rows" if n_rows < dataset.n_rows else counted(n_rows, "row")
    st.markdown(
        markdown(
            f"“{dataset.name}”: {only}, {counted(options['folds'], 'fold')}. It takes "
            f"{about(takes)} and goes on in the background."
        )
    )
    spec = results.spec_of(STUDY, options)
    computation.button("Compare", "whitening_run", "whitening", key, spec)


def _result(kept: Stored) -> None:
    """Draw the curves, what they say, and the numbers."""
    (figure,) = STUDY.figures(kept.outcome).values()
    chart(figure, "whitening_curves")
    st.caption("Mean over the folds; bars: standard deviation over the folds.")
    claims_table(kept.outcome)
    with st.expander("All numbers"):
        _numbers(kept)
    save_buttons(STUDY, kept, "whitening")
    st.caption(f"{made(kept)}. The paper's own digits are on the page Paper.")


def _numbers(kept: Stored) -> None:
    import pandas as pd

    table = pd.DataFrame(kept.outcome.tables["whitening"])[list(TABLE)].rename(columns=TABLE)
    shares = [TABLE[name] for name in TABLE if name.startswith(("accuracy", "gain"))]
    table[shares] = 100 * table[shares].astype(np.float64)
    percent = st.column_config.NumberColumn(format="%.1f %%")
    st.dataframe(table, hide_index=True, column_config=dict.fromkeys(shares, percent))
