"""What was found in uploaded files, as a list of facts, and what a fit of them would take."""

from dataclasses import replace

import streamlit as st

from appca.data.dataset import Dataset
from appca.data.readers import facts as found
from appca.data.readers.facts import MOST_NAMES
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds
from appca.ui.data.role_editor import Report
from appca.ui.parts.text import about, fact_list, size
from appca.ui.session import state

MOST_FILES = 500  # listed by name
COPIES = 2  # of the matrix that a fit holds at its peak; 1.7 were measured


def draw(report: Report, dataset: Dataset | None) -> None:
    """Draw the facts and, on demand, the names of all files that were left out."""
    st.html(facts(report, dataset))
    skipped = report.get("skipped", ())
    if len(skipped) > MOST_NAMES:
        with st.expander("Files left out"):
            st.text("\n".join(map(str, skipped[:MOST_FILES])))
            if len(skipped) > MOST_FILES:
                st.caption(f"The first {MOST_FILES:,} of {len(skipped):,}.")


def facts(report: Report, dataset: Dataset | None = None) -> str:
    """Return what was found as HTML: until files were refused, or with the data set they became."""
    lines = found.facts(report, dataset)
    return fact_list(lines | (_cost(dataset) if dataset is not None else {}))


def memory(n_rows: int, n_features: int, itemsize: int) -> int:
    """Estimate the bytes of memory that a fit needs; bytes are worked on as float32."""
    return COPIES * n_rows * n_features * max(4, itemsize)


def _cost(dataset: Dataset) -> dict[str, str]:
    """Say what a fit would take: as the data open, and with the K and L on screen."""
    needed = memory(dataset.n_rows, dataset.n_features, dataset.X.itemsize)
    held = f"{dataset.X.dtype}, {size(dataset.X.nbytes)}"
    lines = {"Values": f"{held}; a fit needs about {size(needed)} of memory"}
    opening = state.first_config(dataset)
    lines["First fit"] = _takes(dataset, opening)
    if state.is_ready():
        now = state.config()
        wished = {"n_components": now.k, "n_active": now.n_active or now.k}
        same = replace(opening, parameters=opening.parameters | wished)
        same = state.fitting_limits(same, dataset)
        if same.parameters != opening.parameters:
            lines["With the present K and L"] = _takes(dataset, same)
    return lines


def _takes(dataset: Dataset, config: RunConfig) -> str:
    seconds = estimate_seconds(dataset.n_rows, dataset.n_features, config)
    return f"{about(seconds)} for {', '.join(config.sizes)}"
