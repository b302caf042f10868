"""Results of experiments on the command line, as files, as a page and in Markdown."""

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
from appca.studies.catalogue import STUDIES, shipped, study_of
from appca.studies.claims import headings
from appca.studies.store import Stored, StudyStore, csv_text
from appca.studies.study import Options, Outcome, Report, Study
from appca.words import OTHER, InputError, duration, refuse_if, refusing

MOST_PROCESSES, REPORT = 2, "report.html"
MOST_ROWS = 60  # maximum number of rows shown; the CSV contains all
RESULTS = "../appca/studies/results"  # relative to docs/
HEAD = """# Reproducing the paper

For every table and figure of A. Farooq, Y. P. Raykov, P. Raykov and M. A. Little, *Controlling for
sparsity in sparse factor analysis models: adaptive latent feature sharing for piecewise linear
dimensionality reduction* ([arXiv 2006.12369](https://arxiv.org/abs/2006.12369)), this page shows
the paper's claims, our measurements, and whether each claim holds. The app's page Paper shows the
figures.

`{command}`
writes this page from the results in the package; a test checks that they agree. `python -m appca
paper NAME --ship` computes a result again; without NAME, all of them. Sizes are “quick”, “default”,
and “full” with more data sets and draws. “Took” is the time on two cores.
"""


class ReportEntry(NamedTuple):
    """An experiment in a report: its outcome, or the reason for having none."""

    study: Study
    options: Options
    outcome: Outcome | None
    note: str  # date of the computation, or the reason for having no outcome


def paper(
    names: Sequence[str],
    size: str,
    changes: Options,
    store: StudyStore,
    out: Path | None,
    say: Callable[[str], None],
    report: Report,
) -> None:
    """Compute the named experiments, or all if `names` is empty, one after the other.

    `changes` are options that differ from those of the size. `store` stores the results; CSV and
    HTML are written to the folder `out`. `say` receives printed lines, `report` (stage, fraction).
    Raises InputError for an unknown name or option, before anything is computed.
    """
    named = [study_of(name) for name in names or STUDIES]
    planned = [(each, each.options(size, **changes)) for each in STUDIES.values() if each in named]
    msg = f"The place of the output must be a folder; “{out}” is a file."
    refuse_if(out is not None and out.exists() and not out.is_dir(), msg)
    results = []
    for study, options in planned:
        say(study.heading)
        say(_listed(options))
        began = time.perf_counter()
        try:
            outcome = study.run(options, report, min(MOST_PROCESSES, os.cpu_count() or 1))
        except InputError as error:  # the data of other experiments may be present
            results.append(ReportEntry(study, options, None, str(error)))
            continue
        seconds = time.perf_counter() - began
        note = f"{seconds:.0f} s; stored as {store.save(study, options, outcome, seconds)}"
        results.append(ReportEntry(study, options, outcome, note))
        rows = next(iter(outcome.tables.values()), [])
        columns = list(study.columns or [*rows, {}][0])
        lines = [[_cell(row[column]) for column in columns] for row in rows]
        parts = aligned(columns, lines), aligned(*_claims(outcome))
        for line in "\n\n".join(filter(None, (*parts, outcome.text, note))).splitlines():
            say(line)
        if out is not None:
            say(f"wrote {', '.join(file.name for file in write(study, outcome, out))} in {out}")
    if out is not None:
        with refusing(f"{out / REPORT} could not be written", OTHER):
            out.mkdir(parents=True, exist_ok=True)
            (out / REPORT).write_text(page(results), encoding="utf-8")
        say(f"wrote {REPORT} in {out}")
    if refusals := [result for result in results if result.outcome is None]:
        missing = "; ".join(f"{result.study.name}: {result.note}" for result in refusals)
        msg = f"{len(refusals)} of {len(results)} results are missing. {missing}"
        raise InputError(refusals[0].note if len(results) == 1 else msg)


def write(study: Study, outcome: Outcome, folder: Path) -> list[Path]:
    """Write tables as CSV and figures as standalone HTML; InputError if writing fails."""
    contents = [(name, "csv", csv_text(rows)) for name, rows in outcome.tables.items()]
    for name, figure in study.figures(outcome).items():
        contents.append((name, "html", fragment(figure, study.title)))
    written = []
    with refusing(f"{folder} could not be written", OTHER):
        folder.mkdir(parents=True, exist_ok=True)
        for name, ending, text in contents:
            stem = name if name == study.name else f"{study.name}-{name}"
            written.append(folder / f"{stem}.{ending}")
            written[-1].write_text(text, encoding="utf-8", newline="")
    return written


def aligned(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Format a table as lines of text; empty if there are no rows."""
    rows = [names, *lines] if lines else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = ([c.ljust(width) for c, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in cells)


def _claims(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    titles = headings(outcome.claims)
    lines = [[getattr(claim, field) for field in titles] for claim in outcome.claims]
    return list(titles.values()), lines


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _listed(options: Options) -> str:
    texts = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in options.items()
    }
    return "; ".join(f"{name} {text}" for name, text in texts.items() if text != "")


def page(results: Sequence[ReportEntry]) -> str:
    """Return a self-contained HTML page with all results."""
    from plotly.offline import get_plotlyjs

    links, sections = [], []
    for study, options, outcome, note in results:
        name, heading = escape(study.name), escape(study.heading)
        links.append(f'<li><a href="#{name}">{heading}</a></li>')
        parts = [f"<h2>{heading}</h2><p><b>The paper.</b> {escape(study.paper)}</p>"]
        if outcome is not None:
            parts += [table(*_claims(outcome))] if outcome.claims else []
            parts += [paragraph(text) for text in outcome.text.split("\n\n")]
            parts += map(fragment, study.figures(outcome).values())
            for key, rows in outcome.tables.items():
                part = f", the first {MOST_ROWS} of {len(rows)} rows" * (len(rows) > MOST_ROWS)
                lines = [list(row.values()) for row in rows[:MOST_ROWS]]
                parts += [fold(f"Table {key}{part}", table(list(rows[0]), lines))] if rows else []
        made = f"{study.command(options)}: {_listed(options)}. {note}"
        parts.append(f"<p><small>{escape(made)}</small></p>")
        sections.append(f'<section id="{name}">{"".join(parts)}</section>')
    body = f"<ol>{''.join(links)}</ol>{''.join(sections)}"
    return framed("Reproduced results of the paper", body, get_plotlyjs())


def write_document(file: Path, say: Callable[[str], None]) -> None:
    """Write the shipped results as a Markdown page; InputError if writing fails."""
    results = shipped()
    with refusing(f"{file} could not be written", OTHER):
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write(file, document(results, file))
    say(f"wrote {file.name}: {len(results)} of {len(STUDIES)} experiments")


def document(results: Mapping[str, Stored], file: Path) -> str:
    """Return the verdicts of all experiments in Markdown, with links to their tables."""
    command = f"python -m appca paper --document {file.parent.name}/{file.name}"
    lines, sections = [], []
    for study in STUDIES.values():
        name, heading, result = f"`{study.name}`", study.heading, results.get(study.name)
        if result is None:
            lines.append([heading, name, "not computed", "", "", ""])
            continue
        size, is_current = study.size_of(result.options), study.id(result.options) == result.id
        size += "" if is_current else ", before a change of the experiment"
        date = datetime.fromtimestamp(result.created, UTC).date().isoformat()
        counts = Counter(claim.holds for claim in result.outcome.claims)
        others = ", ".join(f"{n} {holds}" for holds, n in counts.items() if holds != "yes")
        verdict = f"{counts['yes']} of {len(result.outcome.claims)}" + f" ({others})" * bool(others)
        link = f"[{heading}](#{study.name})"
        lines.append([link, name, verdict, size, duration(result.seconds), date])
        parts = [f'## <a id="{study.name}"></a>{heading}', study.paper]
        parts += [markdown_table(*_claims(result.outcome))] if result.outcome.claims else []
        parts += [result.outcome.text] if result.outcome.text else []
        links = (f"[{key}]({RESULTS}/{result.id}/{key}.csv)" for key in result.outcome.tables)
        parts += [f"As CSV: {', '.join(links)}."] if result.outcome.tables else []
        versions = ", ".join(f"{package} {number}" for package, number in result.versions.items())
        parts.append(f"    {study.command(result.options)}")
        parts.append(f"{_listed(result.options)}. {versions}.")
        sections.append("\n" + "\n\n".join(parts))
    titles = ["Result", "NAME", "Claims that hold", "Size", "Took", "Date"]
    parts = [HEAD.format(command=command), markdown_table(titles, lines), *sections]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)
