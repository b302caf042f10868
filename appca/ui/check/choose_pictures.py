"""What a grid over K and L shows: the answer, the heat map with its cells, and three numbers."""

import numpy as np
import streamlit as st

from appca.analysis.check import choose_advice
from appca.analysis.check.choose import Cell, GridConfig
from appca.analysis.check.choose_advice import GridTable, Suggestion
from appca.plots.check import choose as plots
from appca.ui.parts.answers import Number, answer, numbers
from appca.ui.parts.chart import chart
from appca.ui.parts.widgets import one_of
from appca.ui.session import state
from appca.ui.session.callbacks import guarded
from appca.words.numbers import fixed, number, percent

Place = st.delta_generator.DeltaGenerator
LIKELIHOOD, ERROR = "Likelihood", "Error"
EXPLORE = "pages/explore/explore.py"
WHY = (
    "Each K and L is fitted to a part of the rows and judged by the log-likelihood of the others; "
    "preprocessing is learned from the fitted part alone. Cells are compared fold by fold. If the "
    "best cell lies inside the grid, the smallest choice within one standard error of it is "
    "suggested. Where the likelihood rises to the edge, as on most real data, L is yours to "
    "choose, and K is the elbow: before it a component gains more than on average, after it less."
)


def draw(config: GridConfig, grid: GridTable, place: Place, buttons: Place) -> None:
    """Draw everything that is known; the answer, at its place, only of what has been measured."""
    advice = choose_advice.advise(grid)
    best = choose_advice.suggest(grid, advice, state.config().n_active or 2)
    if best is not None:
        with place:
            answer(f"Try K = {best.cell[0]} and L = {best.cell[1]}", best.reason)
        with buttons:
            _adopt(*best.cell)
    with st.container(key="beside"):
        left, right = st.columns([1.7, 1], gap="medium")
    with left, st.container(border=True):
        measures = {LIKELIHOOD: LIKELIHOOD, ERROR: ERROR}
        picture = _picture(grid, one_of("Fit to unseen rows", measures, "choose_measure"))
        heat_map(config, picture, best)
    with right, st.container(border=True):
        st.markdown("**What each component adds**")
        chart(plots.by_budget(picture, best and best.cell), "choose_curves")
    if best is not None:
        st.html(numbers(_numbers(grid, best.cell)))


def _adopt(k: int, active: int) -> None:
    now = state.config()
    st.button(
        f"Adopt {k} and {active}",
        key="choose_adopt",
        type="primary",
        disabled=(now.k, now.n_active) == (k, active),
        on_click=guarded(state.set_parameters),
        kwargs={"n_components": k, "n_active": active},
    )
    with st.popover("Why?"):
        st.markdown(WHY)


def _picture(grid: GridTable, measure: str) -> plots.Picture:
    is_error = measure == ERROR
    values = (grid.error if is_error else grid.log_likelihood).mean(axis=-1)
    unit = "squared error per feature" if is_error else "nats per row"
    return plots.Picture(values, grid.components, grid.actives, unit, is_error)


def filling(grid: GridTable) -> None:
    """Draw the heat map of a grid that is being measured, or of one that would be."""
    k, active = state.config().k, state.config().n_active or 0
    now = (k, active) if k in grid.components and active in grid.actives else None
    chart(plots.heat_map(_picture(grid, LIKELIHOOD), now), "choose_live")
    st.caption(f"{'Outlined: now. ' if now else ''}Each cell gets the likelihood of unseen rows.")


def heat_map(config: GridConfig, picture: plots.Picture, best: Suggestion | None) -> None:
    """Draw the heat map; a click on a cell opens Explore with its K and L."""
    figure = plots.heat_map(picture, best and best.cell)
    key = f"choose_map-{config.id}-{picture.smaller_is_better}"
    clicked = st.plotly_chart(
        figure,
        key=key,
        on_select="rerun",
        selection_mode="points",
        config={"displayModeBar": False},
    )
    st.caption("Outlined: suggested. Click a cell to see it in Explore.")
    points = clicked["selection"]["points"]
    if points:
        k, active = points[0]["customdata"][:2]
        state.set_parameters(n_components=int(k), n_active=int(active))
        st.switch_page(EXPLORE)


def _numbers(grid: GridTable, cell: Cell) -> list[Number]:
    """Return the suggested cell's likelihood, its gain over fixed components, and its error."""
    i, j = grid.components.index(cell[0]), grid.actives.index(cell[1])
    likelihood = float(grid.log_likelihood[i, j].mean())
    told = [(fixed(likelihood), f"nats per row at {cell[0]} and {cell[1]}")]
    more = choose_advice.over_folds(choose_advice.gain(grid)[i, j])
    share = choose_advice.closed_on_average(grid)[i, j]
    if np.isfinite(more.mean):
        told.append((f"+{fixed(float(more.mean))}", f"nats over PCA with {cell[1]}"))
    if np.isfinite(share):
        told.append((percent(share), f"of what PCA with all {cell[0]} gains"))
    else:
        told.append((number(grid.error[i, j].mean()), "squared error per feature"))
    return told
