"""Where the paper has a result, and one page that holds several of them."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from appca.plots.export.figure_files import fragment
from appca.plots.export.report_page import fold, framed, paragraph, table
from appca.studies.claims import headings
from appca.studies.study import Options, Outcome, Row, Study

# where the paper shows each result
PLACES = {
    "planes": "Figure 1",
    "table1": "Table 1",
    "z-priors": "Figure 3",
    "popularity": "Figure 4",
    "sharing": "Figure 5",
    "digits": "Figure 6",
    "strokes": "Figure 7",
    "coil20": "Figure 8",
    "umap": "Figure 9",
    "similar": "Figure 10",
    "whitening": "Figure 11",
    "fmri": "Figures 12 and 13",
    "speed": "Section 4",
}
MOST_ROWS = 60  # of a table on the page; the CSV has all


class ReportEntry(NamedTuple):
    """One experiment of a report: its outcome, or why there is none."""

    study: Study
    options: Options
    outcome: Outcome | None
    note: str  # when it was computed, or the sentence that says what was missing


def heading(study: Study) -> str:
    """Name an experiment by its place in the paper."""
    where = PLACES[study.name]
    return study.title if study.title.startswith(where) else f"{where}: {study.title}"


def page(results: Sequence[ReportEntry]) -> str:
    """Return the HTML of a page with all results, which needs no network."""
    index = "".join(
        f'<li><a href="#{escape(r.study.name)}">{escape(heading(r.study))}</a></li>'
        for r in results
    )
    body = "".join(map(_section, results))
    from plotly.offline import get_plotlyjs

    title = "Reproduced results of the paper"
    return framed(title, f"<ol>{index}</ol>{body}", get_plotlyjs())


def _section(result: ReportEntry) -> str:
    study, outcome = result.study, result.outcome
    parts = [
        f'<section id="{escape(study.name)}"><h2>{escape(heading(study))}</h2>',
        f"<p><b>The paper.</b> {escape(study.paper)}</p>",
    ]
    if outcome is not None:
        titles, claims = headings(outcome.claims), outcome.claim_rows
        if claims:
            parts.append(table([*titles.values()], [[row[f] for f in titles] for row in claims]))
        parts += [paragraph(text) for text in outcome.text.split("\n\n")]
        figures = study.figures(outcome).values()
        parts += map(fragment, figures)
        parts += [_table(name, rows) for name, rows in outcome.tables.items()]
    settings = "; ".join(f"{name} {value}" for name, value in result.options.items())
    made = f"{study.command(result.options)}: {settings}. {result.note}"
    parts.append(f"<p><small>{escape(made)}</small></p>")
    return "".join(parts) + "</section>"


def _table(name: str, rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    shown = f", the first {MOST_ROWS} of {len(rows)} rows" if len(rows) > MOST_ROWS else ""
    lines = [list(row.values()) for row in rows[:MOST_ROWS]]
    return fold(f"Table {name}{shown}", table(list(rows[0]), lines))
