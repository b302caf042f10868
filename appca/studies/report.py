"""Where the paper has a result, what it needs, and one page that holds several of them."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from appca.data.sources.folder import data_folder
from appca.plots.export.figure_files import fragment
from appca.plots.export.report_page import fold, framed, paragraph, table
from appca.studies.claims import headings
from appca.studies.parts.own_copy import NEEDED, is_here
from appca.studies.study import Options, Outcome, Row, Study


class PaperPlace(NamedTuple):
    """Where the paper shows a result, and what data it needs."""

    where: str
    data: str | None = None  # name of a source in `NEEDED`


PLACES = {
    "planes": PaperPlace("Figure 1"),
    "table1": PaperPlace("Table 1"),
    "z-priors": PaperPlace("Figure 3"),
    "popularity": PaperPlace("Figure 4"),
    "sharing": PaperPlace("Figure 5", "mnist"),
    "digits": PaperPlace("Figure 6", "mnist"),
    "strokes": PaperPlace("Figure 7", "mnist"),
    "coil20": PaperPlace("Figure 8", "coil20"),
    "umap": PaperPlace("Figure 9", "coil20"),
    "similar": PaperPlace("Figure 10", "coil20"),
    "whitening": PaperPlace("Figure 11", "mnist"),
    "fmri": PaperPlace("Figures 12 and 13", "fmri"),
    "speed": PaperPlace("Section 4"),
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
    where = PLACES[study.name].where
    return study.title if study.title.startswith(where) else f"{where}: {study.title}"


def lacking(name: str) -> str:
    """Say which file an experiment needs that is not in the data folder; nothing if none."""
    source = PLACES[name].data
    if source is None or is_here(source):
        return ""
    needed, folder = NEEDED[source], data_folder()
    return (
        f"This needs {needed.title}: {' or '.join(needed.files)} is not in {folder} yet; "
        f"{needed.fetched}."
    )


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
