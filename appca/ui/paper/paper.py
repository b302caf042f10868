"""The page Paper: one section a result, with its button, its numbers and its figures."""

from pathlib import Path

import streamlit as st

from appca.runs.home import home
from appca.studies import report
from appca.studies.catalogue import STUDIES
from appca.studies.store import Stored, StudyStore
from appca.studies.study import Study
from appca.ui.paper import results
from appca.ui.paper.lab_table import comparison_table
from appca.ui.paper.results import AT_ONCE, SIZES
from appca.ui.parts import progress
from appca.ui.parts.chart import chart
from appca.ui.parts.study_files import claims_table, made, save_buttons
from appca.ui.parts.text import about, markdown
from appca.ui.parts.widgets import one_of
from appca.ui.session import computation, watching
from appca.ui.session.callbacks import guarded

MOST_ROWS = 200  # of a table on the page


def body() -> None:
    """Draw the choice of size, the button that computes all that is not there, and each result."""
    st.markdown(
        "Every figure and table of the paper, computed anew on the same data: what the paper says, "
        "what comes out here, and whether that agrees."
    )
    size = one_of(
        "Size",
        SIZES,
        "paper_size",
        _newest_size(),
        help_text="Quick is for a first look. Full is as large as the paper's, where it says so.",
    )
    studies = report.in_order(STUDIES.values())
    _all_of_them(studies, size)
    for study in studies:
        with st.container(border=True):
            st.subheader(report.heading(study), anchor=study.name)
            st.markdown(f"**The paper.** {markdown(study.paper)}")
            kept = _stored(study, size)
            if kept is None:
                _wait_or_offer(study, size)
            else:
                _result(study, kept)


def _newest_size() -> str:
    """Return the size of the newest result that tells; some experiments have one size only."""
    for name, options in results.known():
        study = STUDIES.get(name)
        same = [size for size in SIZES if study and study.options(size) == options]
        if 0 < len(same) < len(SIZES):
            return same[0]
    return "default"


def _all_of_them(studies: list[Study], size: str) -> None:
    """Draw how many results there are, and the button that computes the others."""
    waiting = [study for study in studies if not _is_made(study, size)]
    done = len(studies) - len(waiting)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(f"{done} of {len(studies)} results are computed.", width="content")
        idle = [study for study in waiting if watching.running(_id(study, size)) is None]
        if idle:
            takes = sum(study.takes[size] for study in idle)
            st.button(
                f"Compute the other {len(idle)}, {about(takes)}",
                key="paper_all",
                on_click=_start,
                args=[idle, size],
            )


def _wait_or_offer(study: Study, size: str) -> None:
    if progress.follow(_id(study, size), cancel=f"paper_cancel_{study.name}"):
        return
    damage = StudyStore(home()).damage(_id(study, size))
    if damage:
        st.warning(markdown(damage))
    lacking = report.lacking(study.name)
    if lacking:
        st.caption(markdown(lacking))
    st.button(
        f"Compute, {about(study.takes[size])}",
        key=f"paper_run_{study.name}",
        type="primary",
        on_click=_start,
        args=[[study], size],
    )


@guarded
def _start(studies: list[Study], size: str) -> None:
    """Compute results in the background, and show their figures when they are there."""
    for study in studies:
        spec = results.spec_of(study, study.options(size))
        computation.start("study", spec["key"], spec)
        st.session_state[f"paper_show_{study.name}"] = True


def _result(study: Study, kept: Stored) -> None:
    claims_table(kept.outcome)
    if st.toggle("Figures and tables", key=f"paper_show_{study.name}", persist_state="session"):
        _figures(study, kept)
    settings = ", ".join(f"{name} {value}" for name, value in kept.options.items())
    st.caption(markdown(f"{made(kept)}; {settings}."))


def _figures(study: Study, kept: Stored) -> None:
    for name, figure in study.figures(kept.outcome).items():
        chart(figure, f"paper_figure_{study.name}_{name}")
    first = next(iter(kept.outcome.tables.values()))
    if study.name == "table1":
        comparison_table(first)
    else:
        rows = [{name: row[name] for name in study.columns} for row in first[:MOST_ROWS]]
        st.dataframe(rows, key=f"paper_table_{study.name}", hide_index=True, width="content")
    save_buttons(study, kept, "paper")


def _id(study: Study, size: str) -> str:
    return study.id(study.options(size))


def _is_made(study: Study, size: str) -> bool:
    return study.takes[size] < AT_ONCE or _stored(study, size) is not None


def _stored(study: Study, size: str) -> Stored | None:
    """Return the result, if there is one; one that takes no time is made now."""
    results.made_at_once(study, size)
    name, folder = _id(study, size), StudyStore(home()).folder
    file = folder / name / "config.json"
    return _read(name, str(folder.parent), file.stat().st_mtime_ns if file.is_file() else 0)


@st.cache_resource(show_spinner=False, max_entries=40)
def _read(name: str, folder: str, changed: int) -> Stored | None:
    """Read a result once for each time it is written."""
    return StudyStore(Path(folder)).get(name) if changed else None
