"""What stands with the result of every experiment: its claims, its tables as files, its date."""

from datetime import datetime
from functools import partial

import streamlit as st

from appca.studies.claims import headings
from appca.studies.store import Stored, csv_text
from appca.studies.study import Outcome, Study
from appca.ui.parts.downloads import save_button
from appca.ui.parts.text import duration, markdown

MARKS = {"yes": "✓", "partly": "◐", "no": "✗", "not tested": "–"}


def claims_table(outcome: Outcome) -> None:
    """Draw what the paper claims and what came out here; older results have a text instead."""
    if outcome.claims:
        titles = headings(outcome.claims)
        lines = [[*titles.values()], ["---"] * len(titles)]
        for row in outcome.claim_rows:
            verdict = f"{MARKS[row['holds']]} **{row['holds']}**"
            lines.append([*(markdown(row[name]) for name in titles if name != "holds"), verdict])
        st.markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))
    if outcome.text:
        st.markdown("\n\n".join(map(markdown, outcome.text.split("\n\n"))))


def save_buttons(study: Study, kept: Stored, page: str) -> None:
    """Draw one button for each table; `page` is part of their keys."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for name, rows in kept.outcome.tables.items():
            file = f"{name}.csv" if name == study.name else f"{study.name}-{name}.csv"
            made = partial(csv_text, rows)
            save_button(f"Save {name}.csv", made, file, "text/csv", key=f"{page}-{file}")


def made(kept: Stored) -> str:
    """Say when a result was computed, how long that took, and under which name it is kept."""
    when = datetime.fromtimestamp(kept.created).strftime("%d %B %Y, %H:%M")
    took = f" in {duration(kept.seconds)}" if kept.seconds >= 1 else ""
    return f"Computed {when}{took}; kept as {kept.id}"
