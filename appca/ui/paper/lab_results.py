"""The page Synthetic lab, lower half: run an experiment of the paper and read its result."""

from collections.abc import Iterator
from typing import Any

import streamlit as st

from appca.runs.home import home
from appca.studies.catalogue import STUDIES
from appca.studies.store import Stored, StudyStore
from appca.studies.study import Study
from appca.ui.paper.lab_table import comparison_table
from appca.ui.parts import progress
from appca.ui.parts.chart import chart
from appca.ui.parts.study_files import claims_table, made, save_buttons
from appca.ui.parts.text import about, duration, markdown
from appca.ui.session import services, watching

SIZES = {"quick": "Quick", "default": "Default", "full": "Full"}
AT_ONCE = 1.0  # seconds that the page itself may take
NAMES = {"table1": "Table 1", "popularity": "Popularity", "z-priors": "Designs of Z"}


def which() -> tuple[Study, str]:
    """Draw the choice of experiment and size; return it."""
    if "lab_study" not in st.session_state:
        st.session_state["lab_study"] = _first()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = st.segmented_control(
            "Experiment",
            list(NAMES),
            format_func=NAMES.__getitem__,
            key="lab_study",
            required=True,
            persist_state="session",
        )
        study = STUDIES[str(name)]
        if study.takes["full"] < AT_ONCE:
            return study, "default"
        key = f"lab_size_{name}"
        if key not in st.session_state:
            st.session_state[key] = next((size for one, size in _known() if one == name), "default")
        size = st.segmented_control(
            "Size",
            list(SIZES),
            format_func=lambda size: f"{SIZES[size]}, {duration(study.takes[size])}",
            key=key,
            required=True,
            persist_state="session",
        )
    return study, str(size)


def _first() -> str:
    """Begin with the experiment that runs now, else with the newest result, else with table 1."""
    return next((name for name, _ in _known() if name != "z-priors"), "table1")


def _known() -> Iterator[tuple[str, str]]:
    """Yield experiment and size of what runs now and of what is stored, newest first."""
    running = [job.spec for job in services.jobs().active() if job.kind == "study"]
    found = [(spec["study"], spec["options"]) for spec in running]
    found += [(kept.study, kept.options) for kept in StudyStore(home()).list()]
    for name, options in found:
        size = _size_of(name, options)
        if size is not None:
            yield name, size


def _size_of(name: str, options: dict[str, Any]) -> str | None:
    """Return the size with exactly these options."""
    sizes = STUDIES[name].sizes if name in NAMES else {}
    return next((size for size in sizes if STUDIES[name].options(size) == options), None)


def stored(study: Study, size: str) -> Stored | None:
    """Return the result, if there is one; one that takes no time is made now."""
    options, store = study.options(size), StudyStore(home())
    found = store.get(study.id(options))
    if found is None and study.takes[size] < AT_ONCE:
        outcome = study.run(options, lambda _stage, _share: None, 1)
        found = store.get(store.save(study, options, outcome, 0.0))
    return found


def wait_or_offer(study: Study, size: str) -> None:
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
    if st.button("Run", type="primary", key="lab_run"):
        _start(study, options)
        st.rerun()


def _plan(study: Study, options: dict[str, Any]) -> str:
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


def _start(study: Study, options: dict[str, Any]) -> None:
    key = study.id(options)
    watching.allow(key)
    spec = {"study": study.name, "options": options, "key": key}
    watching.add(services.jobs().submit("study", spec, key=key), watching.Watched("study", key))


def result(study: Study, kept: Stored) -> None:
    """Draw table, figures, the claims, and the buttons that save the tables."""
    if study.name == "table1":
        comparison_table(kept.outcome.tables["table1"])
    for name, figure in study.figures(kept.outcome).items():
        chart(figure, key=f"lab_figure_{name}", config={"displayModeBar": False})
    st.markdown(f"**The paper.** {markdown(study.paper)}")
    claims_table(kept.outcome)
    save_buttons(study, kept, "lab")
    st.caption(f"{made(kept)}.")
