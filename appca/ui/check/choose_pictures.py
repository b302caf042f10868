"""What a grid over K and L shows: the advice, the heat map with its cells, and each budget L."""

import math
from functools import partial

import numpy as np
import streamlit as st

from appca.analysis.check import choose_advice
from appca.analysis.check.choose import Cell, GridConfig
from appca.analysis.check.choose_advice import Advice, Budget, GridTable, MeanDifference
from appca.data.numbers import fixed, number, percent
from appca.plots.check import choose as plots
from appca.ui.parts.chart import chart
from appca.ui.parts.text import fact_list, table, table_line
from appca.ui.parts.widgets import one_of, onward
from appca.ui.session import state
from appca.ui.session.callbacks import guarded

CELL = "choose_cell"  # in `st.session_state`: the (K, L) that was clicked or picked
LIKELIHOOD, ERROR = "Log-likelihood", "Reconstruction error"
NATS, SQUARES = "nats per row", "squared error a feature"
SEEN_AT_ONCE = 2  # components a scatter has room for
HEADS = (
    "L",
    "K advised",
    "nats per row",
    "over PPCA with L",
    "gap closed",
    "elbow (each fold)",
    "rises up to",
)
ABOUT_BUDGETS = (
    "What a larger K buys while a row still uses L components. Left: nats per row gained over PPCA "
    "with L components. Right: the share of the gap between PPCA with L and PPCA with all K that "
    "is closed; above 100% it beats PPCA with K. Bars are standard errors over the folds. Rings "
    "are the K advised: the elbow, before which a further component buys more than on average and "
    "after which less, or the peak where the data have one inside the grid."
)


def draw(config: GridConfig, found: GridTable) -> None:
    """Draw everything that is known; the advice only of what has been measured."""
    advice = choose_advice.advise(found)
    if advice.best is None:
        st.caption("No cell has all its folds yet.")
        heat_map(config, found, live=True)
        return
    _advice(config, found, advice, advice.best)
    with st.container(key="beside"):
        left, right = st.columns([2.6, 1], gap="medium")
    with left:
        heat_map(config, found)
    with right:
        _cell(found, advice, advice.best)
    _budgets(found, advice)


@guarded
def adopt(k: int, active: int) -> None:
    """Take over K and L for all pages."""
    state.set_parameters(n_components=k, n_active=active)
    choose((k, active))
    state.notify("success", f"K = {k}, L = {active} now hold on all pages.")


def choose(cell: Cell) -> None:
    """Look at one cell."""
    st.session_state[CELL] = cell


def heat_map(config: GridConfig, found: GridTable, *, live: bool = False) -> None:
    """Draw the heat map; one that is still filling cannot be clicked."""
    measure = LIKELIHOOD
    if not live:
        measure = one_of(
            "Of rows held back",
            {LIKELIHOOD: LIKELIHOOD, ERROR: ERROR},
            "choose_measure",
            LIKELIHOOD,
            "Log-likelihood in nats: higher is better. Error: mean squared difference between a "
            "row and its reconstruction, a feature, in units after preprocessing.",
        )
    is_error = measure == ERROR
    values = (found.error if is_error else found.log_likelihood).mean(axis=-1)
    place = choose_advice.best_of(found.log_likelihood)
    unit = SQUARES if is_error else NATS
    figure = plots.heat_map(
        plots.Picture(values, found.components, found.actives, unit, _cards(found), is_error),
        None if place is None else (found.components[place[0]], found.actives[place[1]]),
        choose_advice.near(found.log_likelihood),
    )
    if live:
        chart(figure, "choose_live")
        return
    key = f"choose_map-{config.id}-{is_error}"
    chart(figure, key, on_select=lambda: _clicked(key), selection_mode="points")
    st.caption(
        "Red: the best log-likelihood. White: as good within one standard error, compared fold by "
        "fold. Click a cell to look at it."
    )


def _clicked(key: str) -> None:
    points = st.session_state[key]["selection"]["points"]
    if points:
        k, active = points[0]["customdata"][:2]
        choose((int(k), int(active)))


def _advice(config: GridConfig, found: GridTable, advice: Advice, cell: Cell) -> None:
    i, j = _place(found, cell)
    spread = choose_advice.over_folds(found.log_likelihood[i, j])
    best = f"K = {cell[0]}, L = {cell[1]} with {_spread(spread)} nats per row"
    with st.container(border=True, key="choose_advice"):
        if advice.cell is not None:
            k, active = advice.cell
            st.markdown(
                f"**Take K = {k}, L = {active}.** It has the smallest L, and with it the smallest "
                "K, of all choices that explain held-out rows as well as the best one, within one "
                f"standard error over {config.n_folds} folds. The best one is {best}. It lies "
                "inside the grid: neither more components nor more of them a row help."
            )
            _adopt(k, active, "choose_adopt_advice", primary=True)
            return
        st.markdown(
            "**Choose L first, then K.** The likelihood still rises at the edge of the grid; the "
            f"best cell is {best}. That is usual on real data, where the bare maximum picks an L "
            "near K, and every row uses nearly everything, as in PPCA. Decide how many components "
            "a row may use (two can be seen in a scatter); for each such budget a K is advised."
        )
        budget = _present(advice)
        if budget is not None:
            st.markdown(_reason(budget))
            _adopt_button(budget.n_components, budget.n_active, "choose_adopt_advice", primary=True)


def _present(advice: Advice) -> Budget | None:
    """Return the budget in use, else two, else the first."""
    by_l = {budget.n_active: budget for budget in advice.budgets}
    for wanted in (state.config().n_active, SEEN_AT_ONCE):
        if wanted in by_l:
            return by_l[wanted]
    return next(iter(by_l.values()), None)


def _reason(budget: Budget) -> str:
    k, active = budget.n_components, budget.n_active
    why = "the elbow: before it a further component buys more than on average, after it less"
    if k == budget.peak:
        why = "no larger K is better by more than a standard error"
        if budget.is_rising:
            why = "the largest K there is; a wider grid would tell more"
    text = (
        f"**With L = {active}: K = {k}**, {why}. It gains {_spread(budget.gain)} nats per row "
        f"over PPCA with {active}"
    )
    if math.isfinite(budget.closed):
        text += f" and closes {percent(budget.closed)} of the gap to PPCA with {k}"
    if k != budget.peak:
        more = "at least " if budget.is_rising else ""
        text += f"; the likelihood rises up to {more}K = {budget.peak}"
    alone = ", ".join(map(str, budget.elbow_by_fold))
    return f"{text}. The elbow of each fold alone is at K = {alone}."


def _adopt(k: int, active: int, key: str, *, primary: bool = False) -> None:
    """Draw the button that takes K and L over, and the way on once they are."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if _adopt_button(k, active, key, primary=primary):
            onward("explore", "See its subspaces")


def _adopt_button(k: int, active: int, key: str, *, primary: bool = False) -> bool:
    """Draw the button alone; return whether this K and L are in use already."""
    now = state.config()
    in_use = (now.k, now.n_active) == (k, active)
    st.button(
        f"K = {k}, L = {active} is in use" if in_use else f"Adopt K = {k}, L = {active}",
        key=key,
        type="primary" if primary else "secondary",
        disabled=in_use,
        on_click=adopt,
        args=[k, active],
    )
    return in_use


def _cell(found: GridTable, advice: Advice, best: Cell) -> None:
    """Draw the cell that was chosen, and the way to choose one without a mouse."""
    there = [
        (k, active)
        for i, k in enumerate(found.components)
        for j, active in enumerate(found.actives)
        if np.isfinite(found.log_likelihood[i, j]).all()
    ]
    budget = _present(advice)
    advised = (budget.n_components, budget.n_active) if budget else best
    clicked: Cell = st.session_state.get(CELL, best)
    cell = clicked if CELL in st.session_state and clicked in there else advice.cell or advised
    st.session_state["choose_cell_of"] = cell
    st.selectbox(
        "Cell",
        there,
        format_func=lambda one: f"K = {one[0]}, L = {one[1]}",
        key="choose_cell_of",
        on_change=lambda: choose(st.session_state["choose_cell_of"]),
    )
    st.html(_facts(found, cell))
    _adopt(cell[0], cell[1], "choose_adopt_cell")


def _facts(found: GridTable, cell: Cell) -> str:
    i, j = _place(found, cell)
    own = choose_advice.over_folds(found.log_likelihood[i, j])
    best = found.log_likelihood[choose_advice.best_of(found.log_likelihood)]
    behind = choose_advice.over_folds(best - found.log_likelihood[i, j])
    more = choose_advice.over_folds(choose_advice.gain(found)[i, j])
    share = choose_advice.closed_on_average(found)[i, j]
    lines = {
        "Log-likelihood": f"{_spread(own)} nats per row",
        "Behind the best": f"{_spread(behind)} nats per row" if behind.mean else "this is the best",
        f"Over PPCA with {cell[1]}": f"{_spread(more)} nats",
        f"Gap to PPCA with {cell[0]}": f"{percent(share)} closed" if np.isfinite(share) else "none",
        "Squared error": f"{number(found.error[i, j].mean())} a feature",
        "Each fold": ", ".join(fixed(float(v)) for v in found.log_likelihood[i, j]),
    }
    return fact_list(lines)


def _budgets(found: GridTable, advice: Advice) -> None:
    st.subheader("What K buys at each L", anchor=False)
    st.caption(ABOUT_BUDGETS)
    chosen = {budget.n_active: budget.n_components for budget in advice.budgets}
    gains = choose_advice.over_folds(choose_advice.gain(found))
    with st.container(key="beside_budgets"):
        left, right = st.columns(2, gap="medium")
    by_budget = partial(
        plots.by_budget, components=found.components, actives=found.actives, chosen=chosen
    )
    with left:
        name = "gain over PPCA with L, nats per row"
        chart(by_budget(gains.mean, gains.standard_error, name=name), "choose_gain")
    with right:
        shares = choose_advice.closed_on_average(found)
        chart(by_budget(shares, None, name="gap closed", percent=True), "choose_closed")
    st.html(table(HEADS, map(_line, advice.budgets), ""))
    with st.container(horizontal=True):
        for budget in advice.budgets:
            _adopt_button(budget.n_components, budget.n_active, f"choose_adopt_{budget.n_active}")


def _line(budget: Budget) -> str:
    spread = budget.closed_by_fold[np.isfinite(budget.closed_by_fold)]
    closed = "no gap"
    if math.isfinite(budget.closed):
        closed = percent(budget.closed)
        if len(spread):
            closed += f" ({percent(spread.min())} to {percent(spread.max())})"
    cells = (
        budget.n_components,
        fixed(budget.log_likelihood),
        _spread(budget.gain),
        closed,
        f"K = {budget.elbow} ({', '.join(map(str, budget.elbow_by_fold))})",
        f"K = {budget.peak}{' or more' if budget.is_rising else ''}",
    )
    return table_line(budget.n_active, cells)


def _cards(found: GridTable) -> np.ndarray:
    """Return the further lines of every cell's card."""
    own = choose_advice.over_folds(found.log_likelihood)
    shares = choose_advice.closed_on_average(found)
    cards = np.full(own.mean.shape, "", dtype=object)
    for i, j in np.argwhere(np.isfinite(own.mean)):
        lines = [
            "",
            f"log-likelihood {fixed(float(own.mean[i, j]))} ± {own.standard_error[i, j]:.2g}",
            f"squared error {number(found.error[i, j].mean())}",
        ]
        if np.isfinite(shares[i, j]):
            lines.append(f"closes {percent(shares[i, j])} of the gap to PPCA with all K")
        cards[i, j] = "<br>".join(lines)
    return cards


def _place(found: GridTable, cell: Cell) -> tuple[int, int]:
    return found.components.index(cell[0]), found.actives.index(cell[1])


def _spread(of: MeanDifference) -> str:
    return f"{fixed(float(of.mean))} ± {of.standard_error:.2g}"
