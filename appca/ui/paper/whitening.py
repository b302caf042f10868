"""The page Whitening: which data, classes and numbers of components, and what came out."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import streamlit as st

from appca.data.dataset import Dataset
from appca.runs.home import home
from appca.storage.wording import capital, counted
from appca.studies.experiments.whitening import STUDY
from appca.studies.store import Stored, StudyStore
from appca.ui.parts import progress
from appca.ui.parts.chart import chart
from appca.ui.parts.class_choice import columns, none_yet
from appca.ui.parts.study_files import claims_table, made, save_buttons
from appca.ui.parts.text import about, markdown
from appca.ui.session import services, watching

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


def explained() -> None:
    """Say what the page does."""
    st.markdown(
        "How much a classifier learns from the projection alone. A perceptron with one hidden "
        "layer is trained on most rows and tested on the others, several times: on the raw values, "
        "on the scores of PCA, and on those of adaptive PCA, each coordinate divided by its root "
        "mean square (whitened)."
    )


def choices(dataset: Dataset) -> dict[str, Any] | None:
    """Draw the settings; return the options of the experiment, or None if it cannot be made."""
    there = columns(dataset)
    if not there:
        st.info(f"{none_yet(dataset)}.")
        return None
    usual = {"label": there[0], "components": USUAL, "folds": 5}
    last: dict[str, Any] = next(_known(dataset.digest), usual)
    sizes = [size for size in SIZES if size <= _most(dataset)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        label = st.selectbox(
            "Classes",
            there,
            index=there.index(last["label"]) if last["label"] in there else 0,
            format_func=capital,
            key=f"whitening_label_{dataset.digest[:8]}",
            persist_state="session",
            width=180,
        )
        n_folds = st.segmented_control(
            "Folds",
            list(FOLDS),
            default=last["folds"],
            format_func=FOLDS.__getitem__,
            key=f"whitening_folds_{dataset.digest[:8]}",
            required=True,
            persist_state="session",
            help="Every row is tested once: by a classifier that has learnt from the other folds.",
        )
        components: Any = st.pills(
            "Components K",
            sizes,
            default=[size for size in last["components"] if size in sizes] or sizes,
            selection_mode="multi",
            key=f"whitening_k_{dataset.digest[:8]}",
            persist_state="session",
        )
    if not components:
        st.caption("Choose at least one K.")
        return None
    return STUDY.options(
        "default",
        data=dataset.digest,
        label=label,
        components=sorted(components),
        folds=n_folds,
        folds_done=n_folds,
        epochs=FEW_EPOCHS if dataset.n_rows >= LARGE else MANY_EPOCHS,
    )


def _known(digest: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of what runs now and of what is stored for these data, newest first."""
    running = [job.spec["options"] for job in services.jobs().active() if job.kind == "whitening"]
    stored = [kept.options for kept in StudyStore(home()).list(STUDY.name)]
    yield from (options for options in (*running, *stored) if options["data"] == digest)


def _most(dataset: Dataset) -> int:
    """Return the largest K for which there are training rows and features."""
    n_rows = min(dataset.n_rows, STUDY.options("default")["n_rows"])
    value: int = min(n_rows * (min(FOLDS) - 1) // min(FOLDS) - 1, dataset.n_features)
    return value


def stored(options: dict[str, Any]) -> Stored | None:
    """Return the result, if there is one."""
    return StudyStore(home()).get(STUDY.id(options))


def wait_or_offer(dataset: Dataset, options: dict[str, Any]) -> None:
    """Draw the running job, or how long it takes and the button."""
    key = STUDY.id(options)
    _adopt(key)
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
    if st.button("Compare", type="primary", key="whitening_run"):
        _start(options)
        st.rerun()


def _adopt(key: str) -> None:
    """Wait for the job that makes this; after a reload the session knows no more of it."""
    for job in services.jobs().active():
        same = job.kind == "whitening" and job.spec.get("key") == key
        if same and watching.running(key) is None:
            watching.add(job.id, watching.Watched(job.kind, key))


def _start(options: dict[str, Any]) -> None:
    key = STUDY.id(options)
    watching.allow(key)
    job = services.jobs().submit("whitening", {"options": options, "key": key}, key=key)
    watching.add(job, watching.Watched("whitening", key))


def result(kept: Stored) -> None:
    """Draw the curves, what they say, and the numbers."""
    (figure,) = STUDY.figures(kept.outcome).values()
    chart(figure, key="whitening_curves", config={"displayModeBar": False})
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
    st.dataframe(
        table,
        hide_index=True,
        column_config={name: st.column_config.NumberColumn(format="%.1f %%") for name in shares},
    )
