"""An experiment's tables and figures as files that anybody can open."""

from collections.abc import Sequence
from pathlib import Path

from appca.plots.export.figure_files import page
from appca.studies.claims import headings
from appca.studies.store import csv_text
from appca.studies.study import Outcome, Row, Study
from appca.words.refusal import OTHER, refused


def write(study: Study, outcome: Outcome, folder: Path) -> list[Path]:
    """Write CSV tables, the claims as text, and standalone HTML figures; return the files.

    Raises InputError when the folder cannot be made or written to.
    """
    figures = study.figures(outcome)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, rows in outcome.tables.items():
            path = folder / f"{_stem(study.name, name)}.csv"
            path.write_text(csv_text(rows), encoding="utf-8", newline="")
            written.append(path)
        text = folder / f"{study.name}.txt"
        parts = [study.title, study.paper, "\n".join(claim_lines(outcome)), outcome.text]
        text.write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf-8")
        written.append(text)
        for name, figure in figures.items():
            file = folder / f"{_stem(study.name, name)}.html"
            file.write_text(page(figure, study.title), encoding="utf-8")
            written.append(file)
    except OSError as error:
        what = f"{error.filename or folder} could not be written"
        raise refused(what, error, OTHER) from error
    return written


def claim_lines(outcome: Outcome) -> list[str]:
    """Lay out the claims as lines of text, the longest column last."""
    there = headings(outcome.claims)
    order = [name for name in ("holds", "claim", "paper", "measured") if name in there]
    return aligned(outcome.claim_rows, order)


def aligned(rows: Sequence[Row], columns: Sequence[str] = ()) -> list[str]:
    """Lay out a table, or the chosen columns of it, as lines of text; nothing without rows."""
    if not rows:
        return []
    names = list(columns or rows[0])
    lines = [names, *([cell(row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def cell(value: object) -> str:
    """Write a value of a table: four digits a number, None a dash."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def words(value: object) -> str:
    """Write the value of an option; of a list its members."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _stem(study: str, name: str) -> str:
    return study if name == study else f"{study}-{name}"
