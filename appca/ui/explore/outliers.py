"""Rows that stand out, far within their subspace (T2) or far off it (Q): picture and table."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st

from appca.analysis.explore.outliers import (
    LEVELS,
    Distances,
    distances,
    limits_of_the_data,
    limits_of_the_model,
    ratios,
)
from appca.analysis.explore.subspaces import ranked, title
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import percent
from appca.plots.explore.panel import Cell, Panel
from appca.plots.explore.sprites import Sprites, mean_image
from appca.storage.wording import counted
from appca.ui.explore import point_choice
from appca.ui.explorer import atlas, panels
from appca.ui.explorer.component import explorer
from appca.ui.parts.widgets import one_of
from appca.ui.session import selection
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown

if TYPE_CHECKING:
    import pandas as pd

WORST = 25  # rows of the table
LEAST = 1e-3  # a ratio below is drawn there
HEIGHT = 380  # pixels
MOST_SUBSPACES = 60  # in the list, the fullest
LIMITS = {"model": "The model's", "data": "These rows' own"}
# Corner of the picture (signs of log T2 and log Q over their limits): what lies there.
CORNERS = {(1, 1): "both", (-1, 1): "Q", (1, -1): "T²", (-1, -1): "within both limits"}


class Flagged(NamedTuple):
    """The rows looked at, and how they stand to their limits."""

    rows: np.ndarray  # (m,)
    ratios: np.ndarray  # (m, 2) T2 and Q over their limits

    @property
    def beyond(self) -> np.ndarray:
        """Rows beyond either limit, the worst first."""
        worst = self.ratios.max(axis=1)
        order = np.argsort(-worst, kind="stable")
        far: np.ndarray = self.rows[order[worst[order] > 1]]
        return far


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the section."""
    st.subheader("Rows that stand out", anchor=False)
    found = _distances(shown.key, shown.fitted)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        rows, level, source = _settings(shown)
    own = source == "data"
    limits = limits_of_the_data(found, level, rows) if own else limits_of_the_model(found, level)
    flagged = Flagged(rows, ratios(found, limits)[rows])
    st.caption(_explanation(flagged, level, source))
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        _picture(dataset, shown, flagged)
    with right:
        _worst(dataset, shown, flagged)


def panel_of(flagged: Flagged, pictures: Sprites | None) -> Panel:
    """Return T2 against Q as a panel: powers of ten over the limits, which are its axes.

    Parameters
    ----------
    flagged : Flagged
    pictures : Sprites, optional
        Gives the mean image of each corner.
    """
    x, y = np.log10(np.maximum(flagged.ratios, LEAST)).T.astype(np.float32)
    cells = []
    for corner, label in CORNERS.items():
        inside = ((x > 0) == (corner[0] > 0)) & ((y > 0) == (corner[1] > 0))
        members = flagged.rows[inside]
        if len(members):
            image = None if pictures is None else mean_image(pictures, members)
            cells.append(Cell(label, len(members), members, corner, image))
    return Panel(
        title="T² and Q",
        subtitle=counted(len(flagged.rows), "row"),
        rows=flagged.rows.astype(np.int32),
        x=x,
        y=y,
        x_title="T² over its limit, powers of ten",
        y_title="Q over its limit, powers of ten",
        cells=cells,
    )


def _settings(shown: Shown) -> tuple[np.ndarray, float, str]:
    active = shown.fitted.active
    groups = kept(f"subspaces-{shown.key}", lambda: ranked(active)[:MOST_SUBSPACES])
    names = [f"{title(group.components)} · {counted(len(group.rows), 'row')}" for group in groups]
    place = st.selectbox(
        "Among",
        range(-1, len(groups)),
        format_func=lambda i: "All rows" if i < 0 else names[i],
        key=f"outliers-among-{shown.config.id}",
        width=200,
        persist_state="session",
    )
    level = one_of(
        "Limit passed by 1 row in",
        {level: f"{1 / (1 - level):.0f}" for level in LEVELS},
        "outliers-level",
        0.99,
        "If the rows were as the limits take them to be, one row in so many would be beyond a "
        "limit by chance.",
    )
    source = one_of(
        "Limits",
        LIMITS,
        "outliers-source",
        "model",
        "The model's: chi-square quantiles, right if scores and noise are Gaussian, as they "
        "seldom are in real data. These rows' own: the share of the rows themselves, whatever "
        "their distribution.",
    )
    rows = np.arange(len(active)) if place < 0 else groups[place].rows
    return rows, level, source


def _explanation(flagged: Flagged, level: float, source: str) -> str:
    beyond_t2, beyond_q = (flagged.ratios > 1).mean(axis=0)
    expected = percent(1 - level, 1)
    measured = f"Beyond the limit: T² {percent(beyond_t2, 1)} of the rows, Q {percent(beyond_q, 1)}"
    if source == "model":
        tail = f"; {expected} each if the data were as the model says."
    else:
        tail = ", as asked for."
    return (
        "T² (Hotelling's): how far out a row lies within its subspace, by its scores. Q: how far "
        f"off the subspace it lies. The lines are the limits. {measured}{tail}"
    )


def _picture(dataset: Dataset, shown: Shown, flagged: Flagged) -> None:
    first = next(iter(panels.colour_choices(dataset)))
    pictures = atlas.sprites(dataset.digest)
    result = explorer(
        "outliers",
        [panel_of(flagged, pictures)],
        n_rows=dataset.n_rows,
        revision=f"outliers-{shown.config.id}-{len(flagged.rows)}",
        colour=atlas.colour_now(dataset, shown, first),
        sprites=pictures,
        selection=atlas.mask_or_none(dataset),
        hover=atlas.hover(shown, dataset),
        columns=1,
        height=HEIGHT,
    )
    atlas.take_over(dataset, result.selection, result.changed)
    if result.changed:
        st.rerun()  # what stands above was drawn with the old selection


def _worst(dataset: Dataset, shown: Shown, flagged: Flagged) -> None:
    beyond = flagged.beyond
    if not len(beyond):
        st.caption("No row is beyond a limit.")
        return
    top = beyond[:WORST]
    key = f"outliers-table-{shown.config.id}-{len(flagged.rows)}-{len(beyond)}"
    st.dataframe(
        table_of(dataset, shown.fitted, flagged, top),
        hide_index=True,
        width="stretch",
        height=HEIGHT,
        key=key,
        selection_mode="single-row",
        on_select=lambda: _look(dataset, top, key),
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            f"Select {'it' if len(beyond) == 1 else f'all {len(beyond):,}'}",
            key="outliers_select",
            icon=":material/lasso_select:",
            on_click=selection.put,
            args=[dataset, np.isin(np.arange(dataset.n_rows), beyond)],
        )
        some = f"The {len(top)} farthest of {len(beyond):,}"
        which = counted(len(top), "row") if len(top) == len(beyond) else some
        st.caption(f"{which} beyond a limit; a tick at the left shows the row above.")


def table_of(
    dataset: Dataset, fitted: FittedRun, flagged: Flagged, rows: np.ndarray
) -> "pd.DataFrame":
    """Return rows with their statistics as a table."""
    import pandas as pd

    order = np.argsort(flagged.rows)
    own = flagged.ratios[order[np.searchsorted(flagged.rows, rows, sorter=order)]]
    columns = dataset.leading_columns(rows)
    used = (np.flatnonzero(active) for active in fitted.active[rows])
    columns["subspace"] = np.array([title(tuple(components)) for components in used])
    columns["T² / limit"], columns["Q / limit"] = own.round(2).T
    return pd.DataFrame(columns)


def _look(dataset: Dataset, rows: np.ndarray, key: str) -> None:
    ticked = st.session_state[key]["selection"]["rows"]
    if ticked and ticked[0] < len(rows):
        point_choice.show(dataset, rows[ticked[0]])


@st.cache_resource(show_spinner="Measuring how far out the rows lie…", max_entries=16)
def _distances(key: str, _fitted: FittedRun) -> Distances:
    del key
    return distances(_fitted)
