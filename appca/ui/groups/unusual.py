"""The tab Unusual: rows far off their subspace, or far out within it."""

import numpy as np
import streamlit as st

from appca.analysis.data.new_data import NewRowsVerdict, verdict
from appca.analysis.explore.outliers import distances
from appca.data.dataset import Dataset
from appca.ui.parts.downloads import rows_popover
from appca.ui.parts.selection_tools import select_button
from appca.ui.rows import row_table
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.numbers import percent

LEVEL = 0.99  # of rows drawn from the model lie below either limit
HELP = (
    "Distance from the subspace: what the components leave over (Q). Distance within it: how large "
    "the scores are for their components (Hotelling's T²)."
)
WHAT_TO_DO = (
    "Look at the first rows. One far from its subspace is often an error, or of a kind that the "
    "fit has not learned. One far out within it is extreme, not wrong."
)
LASSO = ":material/lasso_select:"


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw how many rows are beyond a limit, and the rows as a table, the worst first."""
    said = kept(f"unusual-{shown.key}", lambda: verdict(distances(shown.fitted), None, LEVEL))
    order, fits = said.order, said.fits
    beyond = order[~fits[order]]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(f"**{answer(said)}**", width="content", help=HELP)
        if len(beyond):
            label = f"Select {'it' if len(beyond) == 1 else f'all {len(beyond):,}'}"
            select_button(label, dataset, beyond, "unusual_select", icon=LASSO)
            rows_popover(dataset, shown, beyond, key="unusual")
    st.caption(WHAT_TO_DO)
    row = row_table.draw(dataset, shown.fitted, said, order, shown.key)
    select_button("Select this row", dataset, np.array([row]), "unusual_row", icon=LASSO)


def answer(verdicts: NewRowsVerdict) -> str:
    """Say how many rows pass a limit, and which."""
    n, beyond = len(verdicts.fits), int((~verdicts.fits).sum())
    t2, q = (verdicts.ratios > 1).sum(axis=0)
    return (
        f"{beyond:,} of {n:,} rows ({percent(beyond / n, 1)}) are unusual: {q:,} far from their "
        f"subspace, {t2:,} far out within it. By chance, 1% of rows would be beyond each limit."
    )
