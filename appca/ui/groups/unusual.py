"""The tab Unusual: rows far off their subspace, far out within it, or improbable altogether."""

from typing import NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.explore.outliers import Distances, distances, limits_of_the_model, ratios
from appca.analysis.explore.point import parts, row_of
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import number, percent, signed
from appca.storage.wording import shortened
from appca.ui.cards import acts
from appca.ui.cards.row_buttons import row_buttons
from appca.ui.explore import point_choice
from appca.ui.export import button
from appca.ui.parts.selection_tools import select_button
from appca.ui.parts.widgets import one_of
from appca.ui.session import selection
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown

MOST = 24  # rows shown
LEVEL = 0.99  # of rows drawn from the model lie below the limit
LOWEST = 0.01  # of the rows are called improbable
MEASURES = {
    "q": "Off its subspace",
    "t2": "Far out in its subspace",
    "likelihood": "Improbable",
}
HELP = (
    "Off its subspace: what the components leave over (Q). Far out in it: its scores are large for "
    "its components (Hotelling's T²). Improbable: the log-likelihood is low."
)


class UnusualRows(NamedTuple):
    """The rows by how unusual they are."""

    rows: np.ndarray  # (m,) beyond the limit, the worst first
    said: list[str]  # about the first `MOST`
    answer: str


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the measure, how many rows are beyond its limit, and the worst of them."""
    measure = one_of("Unusual", MEASURES, "unusual_measure", "q", HELP)
    found = kept(f"unusual-{shown.key}-{measure}", lambda: unusual(shown.fitted, measure))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(f"**{found.answer}**", width="content")
        if len(found.rows):
            label = f"Select {'it' if len(found.rows) == 1 else f'all {len(found.rows):,}'}"
            icon = ":material/lasso_select:"
            select_button(label, dataset, found.rows, "unusual_select", icon=icon)
            button.save(dataset, shown, found.rows, key="unusual")
    worst = found.rows[:MOST]
    said = found.said if dataset.image_shape else _off(dataset, shown, worst, found.said)
    html = row_buttons(dataset, worst, said, "select", selection.get(dataset))
    acts.acting(html, "unusual", {"select": lambda row, _: _select(dataset, row)})


def unusual(fitted: FittedRun, measure: str) -> UnusualRows:
    """Return the rows beyond the limit of a measure, the worst first.

    Parameters
    ----------
    fitted : FittedRun
    measure : str
        A key of `MEASURES`.
    """
    n = len(fitted.active)
    if measure == "likelihood":
        order = np.argsort(fitted.log_likelihood_rows, kind="stable")[: max(1, round(LOWEST * n))]
        said = [f"{number(value)} nats" for value in fitted.log_likelihood_rows[order[:MOST]]]
        answer = f"The {len(order):,} least probable of {n:,} rows."
        return UnusualRows(order, said, answer)
    found: Distances = distances(fitted)
    over = ratios(found, limits_of_the_model(found, LEVEL))[:, 0 if measure == "t2" else 1]
    order = np.argsort(-over, kind="stable")
    order = order[over[order] > 1]
    said = [f"{value:.1f} × limit" for value in over[order[:MOST]]]
    share = percent(len(order) / n, 1)
    answer = f"{len(order):,} of {n:,} rows ({share}) pass a limit that 1% would by chance."
    return UnusualRows(order, said, answer)


def _off(dataset: Dataset, shown: Shown, rows: np.ndarray, said: list[str]) -> list[str]:
    """Add to what is said of rows of a table the column that is rebuilt worst."""
    spread = kept(f"spread-{dataset.digest}", lambda: dataset.X.std(axis=0, dtype=np.float64))
    told = []
    for row, text in zip(rows.tolist(), said, strict=True):
        found = parts(shown.fitted, row_of(dataset, shown.fitted, row), row)
        off = found.residual / np.where(spread > 0, spread, 1.0)
        worst = int(np.abs(off).argmax())
        name = shortened(dataset.column_names[worst], 20)
        told.append(f"{text}; {name} {signed(float(off[worst]))} sd")
    return told


def _select(dataset: Dataset, text: str) -> None:
    row = min(max(int(text), 0), dataset.n_rows - 1)
    point_choice.show(dataset, row)
    selection.put(dataset, np.array([row]))
