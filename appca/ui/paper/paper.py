"""The tab Results of Paper: every result at once, from what ships or was computed here."""

import streamlit as st

from appca.studies import report
from appca.studies.catalogue import STUDIES
from appca.studies.store import Stored
from appca.studies.study import Study
from appca.ui.paper import results
from appca.ui.paper.why import why
from appca.ui.parts import progress
from appca.ui.parts.answers import Level, chip, numbers
from appca.ui.parts.chart import chart
from appca.ui.parts.downloads import save_button
from appca.ui.parts.text import apart, tag, words
from appca.ui.session.callbacks import guarded
from appca.words.numbers import about

SHIPPED_SIZE = "default"  # of a result that is not there yet
PICTURE = {"displayModeBar": False, "staticPlot": True}


def body() -> None:
    """Draw the verdicts as a small table, and a card for each result."""
    studies = list(STUDIES.values())
    newest = {study.name: results.newest(study) for study in studies}
    there = {name: kept for name, kept in newest.items() if kept is not None}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(_verdicts(studies, there))
        save_button("Report", lambda: _report(there), "paper.html", key="report")
    with st.container(key="paper_cards"):
        for study in studies:
            with st.container(border=True, key=f"card_{study.name}"):
                kept = there.get(study.name)
                if kept is None:
                    _missing(study)
                else:
                    _card(study, kept)


def short(study: Study) -> str:
    """Return a result's title without its place in the paper."""
    title = study.title.removeprefix("Table 1: ")
    return title[0].upper() + title[1:]


def _verdicts(studies: list[Study], there: dict[str, Stored]) -> str:
    by_verdict: dict[tuple[Level, str], list[str]] = {
        verdict: [] for verdict in results.LEVELS.values()
    }
    for study in studies:
        if study.name in there:
            by_verdict[results.verdict_of(there[study.name])].append(short(study))
    lines = (
        chip(level, f"{name} {len(titles)}") + tag("span", words(" · ".join(titles)))
        for (level, name), titles in by_verdict.items()
        if titles
    )
    return tag("div", "".join(lines), "ca-verdicts")


def _card(study: Study, kept: Stored) -> None:
    """Draw figure, title, verdict and numbers; or, while it is computed again, how far that is."""
    chart(results.card(study, kept), f"paper_{study.name}", config=PICTURE)
    title = tag("div", words(short(study)), "ca-paper-title", id=study.name)
    said = chip(*results.verdict_of(kept)) + numbers(results.numbers_of(kept))
    st.html(title + tag("div", said, "ca-paper-card"))
    if progress.follow(study.id(kept.options), cancel=f"paper_cancel_{study.name}"):
        return
    label = apart("Why?", short(study))
    if st.button(label, key=f"paper_why_{study.name}", type="tertiary", icon=":material/help:"):
        why(study, kept)


def _missing(study: Study) -> None:
    options = study.options(SHIPPED_SIZE)
    st.html(tag("div", words(short(study)), "ca-paper-title", id=study.name))
    if progress.follow(study.id(options), cancel=f"paper_cancel_{study.name}"):
        return
    takes = about(study.takes[SHIPPED_SIZE])
    st.caption(f"Not computed yet · {takes}")
    st.button(
        apart("Compute", short(study)),
        key=f"paper_run_{study.name}",
        on_click=guarded(progress.begin),
        args=["study", study.id(options), results.spec_of(study, options)],
    )


def _report(there: dict[str, Stored]) -> str:
    return report.page(
        [
            report.ReportEntry(STUDIES[name], kept.options, kept.outcome, "")
            for name, kept in there.items()
        ]
    )
