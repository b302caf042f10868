"""Why a result of the paper agrees or not: each claim, all figures, the numbers, and its stamp."""

from datetime import datetime
from functools import partial

import streamlit as st

from appca.studies.store import Stored, csv_text
from appca.studies.study import Outcome, Study, headings
from appca.ui.paper import results
from appca.ui.parts import progress
from appca.ui.parts.answers import SIGNS, answer, numbers
from appca.ui.parts.chart import chart
from appca.ui.parts.downloads import save_button
from appca.ui.parts.text import markdown
from appca.ui.session.callbacks import guarded
from appca.words.numbers import about, duration

MOST_ROWS = 200  # of a table on the page


@st.dialog("Why?", width="large")
def why(study: Study, kept: Stored) -> None:
    """Open what stands behind a verdict."""
    st.subheader(study.title, anchor=False)
    judged = results.is_of_the_paper(study, kept.options)
    if judged:
        st.markdown(markdown(study.paper))
    claims_table(kept.outcome, judged=judged)
    for name, figure in results.figures(study, kept).items():
        chart(figure, f"why_{study.name}_{name}")
    tables(study, kept)
    stamp(study, kept)


def shown(study: Study, kept: Stored, *names: str) -> None:
    """Draw a result as a tab has it: figures of these names or the first, numbers, why.

    Results on the paper's data have their verdict above them.
    """
    if results.is_of_the_paper(study, kept.options):
        level, word = results.verdict_of(kept)
        answer(f"{word}: {study.title.lower()}", kept.outcome.text, level)
    else:
        answer(study.title, kept.outcome.text)
    drawn = results.figures(study, kept)
    for name in names or [next(iter(drawn))]:
        chart(drawn[name], f"{study.name}_{name}_{kept.id}")
    st.html(numbers(results.numbers_of(kept)))
    if st.button("Why?", key=f"why_{kept.id}"):
        why(study, kept)


def claims_table(outcome: Outcome, *, judged: bool) -> None:
    """Draw what was compared and measured, and `judged` by it what the paper claims."""
    if outcome.claims:
        titles = headings(outcome.claims)
        if not judged:
            titles = {"claim": "Question", "measured": titles["measured"]}
        lines = [[*titles.values()], ["---"] * len(titles)]
        for claim in outcome.claims:
            level, word = results.LEVELS[claim.holds]
            cells = [markdown(getattr(claim, name)) for name in titles if name != "holds"]
            lines.append([*cells, *([f"{SIGNS[level]} **{word}**"] if judged else [])])
        st.markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))
    if outcome.text:
        st.markdown("\n\n".join(map(markdown, outcome.text.split("\n\n"))))


def tables(study: Study, kept: Stored) -> None:
    """Draw the first table, folded, and one button for each."""
    first = next(iter(kept.outcome.tables.values()))
    with st.expander("All numbers"):
        rows = [{name: row[name] for name in study.columns or row} for row in first[:MOST_ROWS]]
        st.dataframe(rows, key=f"table_{study.name}", hide_index=True)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for name, every in kept.outcome.tables.items():
            file = f"{name}.csv" if name == study.name else f"{study.name}-{name}.csv"
            save_button(f"Save {name}.csv", partial(csv_text, every), file, key=file)


def stamp(study: Study, kept: Stored) -> None:
    """Draw what made a result and when, and the button that computes it again."""
    when = datetime.fromtimestamp(kept.created).strftime("%d %B %Y")
    took = f" in {duration(kept.seconds)}" if kept.seconds >= 1 else ""
    of = ", ".join(f"{name} {number}" for name, number in kept.versions.items())
    st.code(study.command(kept.options), language="bash")
    st.caption(markdown(f"{when}{took}. {of}."))
    if study.id(kept.options) != kept.id:
        st.caption("The experiment has changed since; compute it again.")
    size = study.size_of(kept.options)
    takes = study.takes.get(size, kept.seconds)
    spec = results.spec_of(study, kept.options)
    pressed = st.button(
        f"Recompute, {about(takes)}",
        key=f"again_{study.name}",
        on_click=guarded(progress.begin),
        args=["study", spec["key"], spec],
    )
    if pressed:  # close the dialog: the card shows how far it is
        st.rerun()
