"""The page Compare, another run: the choice, both runs' numbers, their components, and the rows."""

import numpy as np
import streamlit as st

from appca.analysis.check.compare import Matching, Moves, matched, moves
from appca.analysis.explore.projection import explained_share
from appca.analysis.explore.subspaces import title
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import number, percent
from appca.plots.check.compare import cosines
from appca.runs.configuration import MODELS, RunConfig
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers, numbered
from appca.runs.run import RunInfo
from appca.runs.store import Run
from appca.storage.errors import InputError
from appca.storage.wording import counted
from appca.ui.check import compare_cards
from appca.ui.explorer import panels
from appca.ui.parts.chart import chart
from appca.ui.parts.text import (
    duration,
    ended,
    markdown,
    nats_per_row,
    table,
    table_line,
    tag,
    words,
)
from appca.ui.parts.tray import tray
from appca.ui.parts.widgets import one_of, onward
from appca.ui.session import selection
from appca.ui.session.fitting import Shown

VIEW = "view"  # query parameter: a link and a reload bring it back
VIEWS = {"run": "Another run", "methods": "Other methods"}
MOST_FLOWS = 12


def view() -> str:
    """Draw the choice of what this run is compared with: "run" or "methods"."""
    asked = st.query_params.get(VIEW)
    first = asked if asked in VIEWS else "run"
    chosen = one_of("Compare this run with", VIEWS, "compare_view", first)
    st.query_params[VIEW] = chosen
    text: str = chosen
    return text


def body(dataset: Dataset, shown: Shown, other: Run) -> None:
    """Draw the comparison with another run."""
    try:
        known = ComponentNumbers(home()).of_run(other)
        fitted = numbered(other.fitted, known)
    except InputError as error:
        st.error(markdown(str(error)))
        return
    st.html(headline(shown, other, fitted))
    if other.config.preprocessing != shown.config.preprocessing:
        st.caption(
            "The two runs see the data through different preprocessing: their log-likelihoods, "
            "shares and residuals are not on one scale."
        )
    found, moved = _compared(f"{shown.key}-{other.id}-{known.key}", dataset, shown.fitted, fitted)
    _components(dataset, shown, fitted, found)
    used = [float(one.active.sum(axis=1).mean()) for one in (shown.fitted, fitted)]
    _rows(dataset, found, moved, used)
    colour = panels.colour_of(dataset, shown.fitted, next(iter(panels.colour_choices(dataset))))
    tray(dataset, shown, colour)


def headline(shown: Shown, other: Run, fitted: FittedRun) -> str:
    """Return both runs' numbers as an HTML table."""
    name = shown.run.name if shown.run else ""
    columns = [
        _numbers(shown.config, shown.info, shown.fitted),
        _numbers(other.config, other.info, fitted),
    ]
    heads = [
        words(text) + tag("small", words(more))
        for text, more in (("", ""), (name, "this run"), (other.name, "the other run"))
    ]
    lines = (table_line(key, [column[key] for column in columns]) for key in columns[0])
    return table(heads, lines, "ca-plain ca-two")


def _numbers(config: RunConfig, info: RunInfo, fitted: FittedRun) -> dict[str, str]:
    return {
        "Model": MODELS[config.model].title,
        "Components": ", ".join(config.sizes),
        "Seed": str(config.parameters.get("random_state", "–")),
        "Log-likelihood": nats_per_row(info),
        "Explained": f"{percent(explained_share(fitted), 1)} of the variance",
        "Residual": f"{number(fitted.error.mean(dtype=float))} mean square a feature",
        "Ended": ended(info.stop_reason),
        "Time": duration(info.seconds),
    }


@st.cache_resource(show_spinner="Matching the components…", max_entries=16)
def _compared(
    key: str, _dataset: Dataset, _first: FittedRun, _second: FittedRun
) -> tuple[Matching, Moves]:
    del key
    first, second = (compare_cards.patterns(_dataset, fitted) for fitted in (_first, _second))
    found = matched(first, second)
    return found, moves(_first.active, _second.active, found)


def _components(dataset: Dataset, shown: Shown, fitted: FittedRun, found: Matching) -> None:
    st.subheader("Components", anchor=False)
    units = "" if dataset.image_shape else ", each feature in units of its standard deviation"
    st.caption(
        "Components have no order and no sign of their own. They are paired so that the pairs are "
        f"as parallel as possible in the space of the data{units}; the other run's are turned "
        "round where that helps. |cos| 1 is the same direction, 0 a right angle; below 0.5 they "
        "are taken for different components."
    )
    with st.container(key="beside"):
        left, right = st.columns([3, 2], gap="medium")
    with left:
        st.html(compare_cards.cards(dataset, shown.fitted, fitted, found))
    with right:
        first = [pair.first for pair in found.pairs] + list(found.only_first)
        second = [pair.second for pair in found.pairs] + list(found.only_second)
        chart(cosines(found.cosines, first, second), "compare_cosines")


def _rows(dataset: Dataset, found: Matching, moved: Moves, used: list[float]) -> None:
    st.subheader("Rows", anchor=False)
    count = int(moved.moved.sum())
    if not found.pairs:
        st.markdown("The runs have no component in common, so their rows cannot be compared.")
        return
    st.markdown(_in_words(dataset, found, count, used))
    with st.container(horizontal=True, gap="large"):
        st.metric("Same components", percent(1 - count / dataset.n_rows, 1), width="content")
        told = "Of the components either run gives a row, those both give it; mean over the rows."
        st.metric("Shared uses", percent(moved.overlap, 1), help=told, width="content")
        told = "Whether the same rows share a subspace: 1 is the same grouping, 0 is chance."
        st.metric("Adjusted Rand index", f"{moved.rand:.3f}", help=told, width="content")
    if count:
        _select(dataset, found, moved)


def _in_words(dataset: Dataset, found: Matching, count: int, used: list[float]) -> str:
    every = counted(dataset.n_rows, "row")
    if not count:
        return f"All {every} use the same components in both runs."
    text = f"{count:,} of {every} use other components in the other run than in this one."
    if found.only_first or found.only_second:
        text += " A component without a counterpart counts as another one."
    if abs(used[0] - used[1]) >= 0.5:
        text += (
            f" A row uses {used[0]:.3g} components in this run and {used[1]:.3g} in the other, so "
            "look at the shared uses rather than at the rows that are all the same."
        )
    return text


def _select(dataset: Dataset, found: Matching, moved: Moves) -> None:
    st.html(_flow_table(found, moved))
    if found.only_second:
        own = found.only_second[0] + 1
        st.caption(
            f"Both in the numbers of this run; {own}′ is the other run's own component {own}."
        )
    choices = {"all": (f"all that changed ({int(moved.moved.sum()):,})", moved.moved)}
    for place, flow in enumerate(moved.flows[:MOST_FLOWS]):
        mask = np.zeros(dataset.n_rows, dtype=bool)
        mask[flow.rows] = True
        name = f"{title(flow.before)} → {in_own_numbers(flow.after, found)} ({len(flow.rows):,})"
        choices[str(place)] = (name, mask)
    if not moved.moved.all():
        choices["same"] = (f"all that did not ({int((~moved.moved).sum()):,})", ~moved.moved)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        which = st.selectbox(
            "Rows", list(choices), format_func=lambda c: choices[c][0], key="moved", width=300
        )
        st.button(
            "Select these rows",
            key="moved_select",
            on_click=selection.put,
            args=[dataset, choices[which][1]],
            help="On this and every other page.",
        )
        onward("explore", "See them in their subspaces", ":material/scatter_plot:")


def in_own_numbers(components: tuple[int, ...], found: Matching) -> str:
    """Name a set of the other run's components by their counterparts; those without get a ′."""
    counterpart = {pair.second: pair.first for pair in found.pairs}
    known = sorted(counterpart[j] + 1 for j in components if j in counterpart)
    alone = [f"{j + 1}′" for j in components if j not in counterpart]
    return "{" + ",".join([*map(str, known), *alone]) + "}" if components else title(())


def _flow_table(found: Matching, moved: Moves) -> str:
    lines = [
        (title(flow.before), in_own_numbers(flow.after, found), f"{len(flow.rows):,}")
        for flow in moved.flows[:MOST_FLOWS]
    ]
    rest = moved.flows[MOST_FLOWS:]
    if rest:
        ways = counted(len(rest), "further change")
        lines.append((ways, "", f"{sum(len(flow.rows) for flow in rest):,}"))
    heads = ("this run", "the other run", "rows")
    return table(heads, (table_line(name, rest) for name, *rest in lines))
