"""Results of experiments for people: on the command line, as files, as a page and in Markdown."""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import NamedTuple

from appca.plots.files import fold, fragment, framed, markdown_table, paragraph, table
from appca.storage import files
from appca.studies.catalogue import STUDIES, heading, is_current, shipped, study_of
from appca.studies.store import TIMED, Stored, StudyStore, csv_text
from appca.studies.study import Options, Outcome, Report, Row, Study, headings
from appca.words import OTHER, InputError, duration, refused, refusing

MOST_PROCESSES = 2
REPORT = "report.html"
MOST_ROWS = 60  # of a table on the page; the CSV has all
HEAD = """# Reproducing the paper

Every table and figure of A. Farooq, Y. P. Raykov, P. Raykov and M. A. Little, *Controlling for
sparsity in sparse factor analysis models: adaptive latent feature sharing for piecewise linear
dimensionality reduction* ([arXiv 2006.12369](https://arxiv.org/abs/2006.12369)), each an
experiment of this package: what the paper claims, what is measured here, and whether the claim
holds.

`{command}`
writes this page from the results that come with the package, and a test fails when the two differ:
no number here is written by hand. `python -m appca paper NAME --ship` computes a result again, and
without NAME all of them; the app's page Paper shows the figures. Sizes are “quick” for a first
look, “default”, and “full” with more data sets and draws. Comparisons of time (`speed`) also depend
on the machine and on what else it was doing. “Took” is the time of the stored result on two cores;
`--quick` takes a fraction of it.
"""


class ReportEntry(NamedTuple):
    """One experiment of a report: its outcome, or why there is none."""

    study: Study
    options: Options
    outcome: Outcome | None
    note: str  # date of the computation, or the reason why there is none


def paper(
    names: Sequence[str],
    size: str,
    changes: Options,
    store: StudyStore,
    out: Path | None,
    say: Callable[[str], None],
    report: Report,
) -> None:
    """Compute experiments one after the other, all of them if none is named.

    `changes` are options that differ from those of the size. `store` keeps the results, for the app
    to show; the folder `out` receives CSV, HTML and pictures. `say` gets the lines of the printed
    answer, `report` (stage, share done).

    Raises InputError for an unknown name or option, before anything is computed.
    """
    named = [study_of(name) for name in names or STUDIES]
    planned = [
        (study, study.options(size, **changes)) for study in STUDIES.values() if study in named
    ]
    if out is not None and out.exists() and not out.is_dir():
        msg = f"The place of the output must be a folder; “{out}” is a file."
        raise InputError(msg)
    results = [_computed(study, options, store, out, say, report) for study, options in planned]
    if out is not None:
        with refusing(f"{out / REPORT} could not be written", OTHER):
            out.mkdir(parents=True, exist_ok=True)
            (out / REPORT).write_text(page(results), encoding="utf-8")
        say(f"wrote {REPORT} in {out}")
    refusals = [result for result in results if result.outcome is None]
    if refusals:
        missing = "; ".join(f"{result.study.name}: {result.note}" for result in refusals)
        msg = f"{len(refusals)} of {len(results)} results are missing. {missing}"
        raise InputError(refusals[0].note if len(results) == 1 else msg)


def _computed(
    study: Study,
    options: Options,
    store: StudyStore,
    out: Path | None,
    say: Callable[[str], None],
    report: Report,
) -> ReportEntry:
    """Compute, store, print and write one experiment; missing data become a sentence."""
    say(heading(study))
    say(_listed(options))
    began = time.perf_counter()
    try:
        outcome = study.run(options, report, min(MOST_PROCESSES, os.cpu_count() or 1))
    except InputError as error:
        return ReportEntry(study, options, None, str(error))
    seconds = time.perf_counter() - began
    name = store.save(study, options, outcome, seconds)
    numbers = aligned(next(iter(outcome.tables.values())), study.columns)
    for line in (*numbers, "", *_claim_lines(outcome), outcome.text):
        say(line)
    say(f"{seconds:.0f} s; stored as {name}")
    if out is not None:
        files = write(study, outcome, out)
        say(f"wrote {', '.join(path.name for path in files)} in {out}")
    return ReportEntry(study, options, outcome, f"Computed in {seconds:.0f} s, stored as {name}.")


def write(study: Study, outcome: Outcome, folder: Path) -> list[Path]:
    """Write CSV tables, the claims as text, and standalone HTML figures; return the files.

    Raises InputError when the folder cannot be made or written to.
    """

    def stem(name: str) -> str:
        return study.name if name == study.name else f"{study.name}-{name}"

    parts = [study.title, study.paper, "\n".join(_claim_lines(outcome)), outcome.text]
    files = {f"{stem(name)}.csv": csv_text(rows) for name, rows in outcome.tables.items()}
    files[f"{study.name}.txt"] = "\n\n".join(filter(None, parts)) + "\n"
    for name, figure in study.figures(outcome).items():
        files[f"{stem(name)}.html"] = fragment(figure, study.title)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            newline = "" if name.endswith(".csv") else None
            (folder / name).write_text(text, encoding="utf-8", newline=newline)
    except OSError as error:
        what = f"{error.filename or folder} could not be written"
        raise refused(what, error, OTHER) from error
    return [folder / name for name in files]


def _claim_lines(outcome: Outcome) -> list[str]:
    columns = headings(outcome.claims)
    order = [name for name in ("holds", "claim", "paper", "measured") if name in columns]
    return aligned(outcome.claim_rows, order)


def aligned(rows: Sequence[Row], columns: Sequence[str] = ()) -> list[str]:
    """Lay out a table, or the chosen columns of it, as lines of text; nothing without rows."""
    if not rows:
        return []
    names = list(columns or rows[0])
    lines = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _listed(options: Options) -> str:
    texts = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in options.items()
    }
    return "; ".join(f"{name} {text}" for name, text in texts.items())


def page(results: Sequence[ReportEntry]) -> str:
    """Return the HTML of a page with all results, which needs no network."""
    from plotly.offline import get_plotlyjs

    index = "".join(
        f'<li><a href="#{escape(r.study.name)}">{escape(heading(r.study))}</a></li>'
        for r in results
    )
    body = "".join(map(_section, results))
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
        parts += map(fragment, study.figures(outcome).values())
        for name, rows in outcome.tables.items():
            part = f", the first {MOST_ROWS} of {len(rows)} rows" if len(rows) > MOST_ROWS else ""
            lines = [list(row.values()) for row in rows[:MOST_ROWS]]
            parts += [fold(f"Table {name}{part}", table(list(rows[0]), lines))] if rows else []
    settings = "; ".join(f"{name} {value}" for name, value in result.options.items())
    made = f"{study.command(result.options)}: {settings}. {result.note}"
    parts.append(f"<p><small>{escape(made)}</small></p>")
    return "".join(parts) + "</section>"


def write_document(file: Path, say: Callable[[str], None]) -> None:
    """Write the shipped results as a page in Markdown, and say so.

    Raises InputError when the disk refuses.
    """
    results = shipped()
    with refusing(f"{file} could not be written", OTHER):
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write(file, document(results, file))
    say(f"wrote {file.name}: {len(results)} of {len(STUDIES)} experiments")


def document(results: Mapping[str, Stored], file: Path) -> str:
    """Return verdicts and main tables of all experiments in Markdown."""
    command = f"python -m appca paper --document {file.parent.name}/{file.name}"
    lines, sections = [], []
    for study in STUDIES.values():
        if study.name not in results:
            lines.append([heading(study), f"`{study.name}`", "not computed", "", "", ""])
            continue
        result = results[study.name]
        size = study.size_of(result.options)
        size += "" if is_current(result) else ", before a change of the experiment"
        date = datetime.fromtimestamp(result.created, UTC).date().isoformat()
        counts = Counter(claim.holds for claim in result.outcome.claims)
        others = [f"{n} {holds}" for holds, n in counts.items() if holds != "yes"]
        verdict = f"{counts['yes']} of {len(result.outcome.claims)}"
        verdict += f" ({', '.join(others)})" if others else ""
        link, took = f"[{heading(study)}](#{study.name})", duration(result.seconds)
        lines.append([link, f"`{study.name}`", verdict, size, took, date])
        sections.append(_document_section(study, result, f"{date}; size {size}"))
    titles = ("Result", "NAME", "Claims that hold", "Size", "Took", "Date")
    parts = [HEAD.format(command=command), markdown_table(titles, lines), *sections]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def _document_section(study: Study, result: Stored, stamp: str) -> str:
    parts = [f'## <a id="{study.name}"></a>{heading(study)}', study.paper]
    titles = headings(result.outcome.claims)
    if titles:
        cells = [[getattr(claim, field) for field in titles] for claim in result.outcome.claims]
        parts.append(markdown_table([*titles.values()], cells))
    parts += [result.outcome.text] if result.outcome.text else []
    rows = next(iter(result.outcome.tables.values()), [])
    if rows:
        names = [name for name in study.columns or rows[0] if not name.startswith(TIMED)]
        numbers = [[_cell(row[name]) for name in names] for row in rows]
        parts.append(f"<details><summary>Table of {len(numbers)} rows</summary>")
        columns = [name.replace("_", " ") for name in names]
        parts += [markdown_table(columns, numbers), "</details>"]
    options = _listed({name: value for name, value in result.options.items() if value != ""})
    versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
    parts.append(f"    {study.command(result.options)}")
    parts.append(f"{stamp}: {options}. {versions}.")
    return "\n" + "\n\n".join(parts)
