"""The tab Synthetic lab: choose a design, see its Z at once, open it as data."""

from typing import Any

import numpy as np
import streamlit as st

from appca.data.sources.designs import DESIGNS, Synthetic
from appca.plots.studies import indicators
from appca.studies.experiments.lab import LIMITS, dataset_of, described, drawn
from appca.studies.experiments.table1 import active_for
from appca.studies.study import Options
from appca.ui.parts.answers import answer, numbers
from appca.ui.parts.chart import chart
from appca.ui.parts.text import markdown
from appca.ui.parts.widgets import one_of, onward
from appca.ui.session import services, state
from appca.ui.session.caching import kept
from appca.ui.session.callbacks import guarded
from appca.words.errors import InputError
from appca.words.wording import counted

MOST_SHOWN = 200  # rows of Z in the picture
EXPLAINED = {
    "sparse": "Most rows use a few factors, and many factors are rare.",
    "dense": "Most rows use every factor.",
    "subspace": "Rows of a class share all of their factors, rows of two classes none.",
    "balanced": "Every row uses exactly L of the K factors, all choices alike.",
    "single": "All rows use the same L factors.",
}


def body() -> None:
    """Draw the choice of a design, and what comes out or why nothing can."""
    design, chosen = _choices()
    try:
        truth = kept(f"lab-{design}-{chosen}", lambda: drawn(design, chosen))
    except InputError as error:
        st.error(markdown(str(error)))
        return
    _picture(design, truth)
    _opening(design, chosen)


def _choices() -> tuple[str, Options]:
    """Draw the choice of design and sizes; return it."""
    names = {design: design.capitalize() for design in DESIGNS}
    design = one_of("Design of Z", names, "lab_design", "balanced")
    answer(EXPLAINED[design])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen: Options = {
            "n_rows": _number("Rows N", "n_rows", 1000),
            "n_features": _number("Features D", "n_features", 50),
            "n_components": _number("Factors K", "n_components", 10),
            "n_active": _number("Used per row L", "n_active", 5),
            "noise_sd": _number("Noise, sd", "noise_sd", 0.1, step=0.05, format="%.3f"),
            "seed": _number("Draw", "seed", 0),
        }
    return design, chosen


def _number(label: str, name: str, value: float, **widget: Any) -> float:
    widget |= {"key": f"lab_{name}", "persist_state": "session", "width": 115}
    chosen: float = st.number_input(label, *LIMITS[name], value, **widget)
    return chosen


def _picture(design: str, truth: Synthetic) -> None:
    """Draw the indicator matrix and three numbers about it."""
    n_rows, K = truth.Z.shape
    title = f"Z, the first {min(MOST_SHOWN, n_rows)} of {counted(n_rows, 'row')}"
    chart(indicators({title: truth.Z[:MOST_SHOWN]}), "lab_z")
    facts = described(design, truth.Z)
    signal = np.square((truth.X * truth.Z) @ truth.W.T).mean()
    numbers_shown = [
        (f"{facts['per_row']:.1f} of {K}", f"factors per row, sd {facts['per_row_sd']:.1f}"),
        (f"{facts['different_sets']:,}", "different choices of factors"),
        (f"{signal / truth.noise_sd**2:,.0f} ×", "signal over noise, variances"),
    ]
    st.html(numbers(numbers_shown))


def _opening(design: str, chosen: Options) -> None:
    """Draw the button that makes this the data set on screen, and the way on from there."""
    now, wanted = state.current_dataset().provenance, {"design": design, **chosen}
    is_open = now.get("source") == "synthetic" and now.get("options") == wanted
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Explore these data",
            key="lab_open",
            type="secondary" if is_open else "primary",
            disabled=is_open,
            on_click=_open,
            args=[design, chosen],
        )
        if is_open:
            onward("explore", "Explore it")


@guarded
def _open(design: str, chosen: Options) -> None:
    """Store the data and look at them, with aFA of the same K and the mean number of factors."""
    state.open_dataset(services.datasets().put(dataset_of(design, chosen)))
    n_active = active_for(drawn(design, chosen).Z)
    state.set_model("aFA")
    state.set_parameters(n_components=chosen["n_components"], n_active=n_active)
