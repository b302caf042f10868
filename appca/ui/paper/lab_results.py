"""The page Synthetic lab, lower half: run an experiment of the paper and read its result."""

from collections.abc import Iterator

import streamlit as st

from appca.studies.catalogue import STUDIES
from appca.studies.store import Stored
from appca.studies.study import Options, Study
from appca.ui.paper import results
from appca.ui.paper.lab_table import comparison_table
from appca.ui.paper.results import AT_ONCE, SIZES
from appca.ui.parts import progress
from appca.ui.parts.chart import chart
from appca.ui.parts.study_files import claims_table, made, save_buttons
from appca.ui.parts.text import about, duration, markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import computation

NAMES = {"table1": "Table 1", "popularity": "Popularity", "z-priors": "Designs of Z"}


def body() -> None:
    """Draw the choice of experiment and size, and the result or what makes it."""
    study, size = _which()
    results.made_at_once(study, size)
    kept = results.stored(study, study.options(size))
    if kept is None:
        _wait_or_offer(study, size)
    else:
        _result(study, kept)


def _which() -> tuple[Study, str]:
    """Draw the choice of experiment and size: at first what runs now, else the newest result."""
    if "lab_study" not in st.session_state:
        running = (name for name, _ in _known() if name != "z-priors")
        st.session_state["lab_study"] = next(running, "table1")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = one_of("Experiment", NAMES, "lab_study")
        study = STUDIES[name]
        if study.takes["full"] < AT_ONCE:
            return study, "default"
        key = f"lab_size_{name}"
        if key not in st.session_state:
            st.session_state[key] = next((size for one, size in _known() if one == name), "default")
        sizes = {size: f"{SIZES[size]}, {duration(study.takes[size])}" for size in SIZES}
        return study, one_of("Size", sizes, key)


def _known() -> Iterator[tuple[str, str]]:
    """Yield experiment and size of what runs now and of what is stored, newest first."""
    for name, options in results.known():
        size = _size_of(name, options)
        if size is not None:
            yield name, size


def _size_of(name: str, options: Options) -> str | None:
    """Return the size with exactly these options."""
    sizes = STUDIES[name].sizes if name in NAMES else {}
    return next((size for size in sizes if STUDIES[name].options(size) == options), None)


def _wait_or_offer(study: Study, size: str) -> None:
    """Draw the running job, or what will be made, how long it takes, and the button."""
    options = study.options(size)
    st.markdown(markdown(study.paper))
    if progress.follow(study.id(options)):
        return
    st.markdown(
        markdown(
            f"This computes it anew: {_plan(study, options)}. It takes "
            f"{about(study.takes[size])} on two idle cores, goes on in the background when the "
            "page is left, and can be cancelled at any time."
        )
    )
    spec = results.spec_of(study, options)
    computation.button("Run", "lab_run", "study", spec["key"], spec)


def _plan(study: Study, options: Options) -> str:
    """Say in words what the options ask for."""
    if study.name == "table1":
        return (
            f"nine methods on {len(options['designs'])} designs with K = "
            f"{' and '.join(map(str, options['components']))}, {options['seeds']} data sets each, "
            f"{options['n_rows']:,} rows by {options['n_features']} features"
        )
    return (
        f"a sparse and a dense data set of {options['n_rows']:,} rows with "
        f"{options['n_components']} factors, isFA and aFA fitted to each"
    )


def _result(study: Study, kept: Stored) -> None:
    """Draw table, figures, the claims, and the buttons that save the tables."""
    if study.name == "table1":
        comparison_table(kept.outcome.tables["table1"])
    for name, figure in study.figures(kept.outcome).items():
        chart(figure, f"lab_figure_{name}")
    st.markdown(f"**The paper.** {markdown(study.paper)}")
    claims_table(kept.outcome)
    save_buttons(study, kept, "lab")
    st.caption(f"{made(kept)}.")
