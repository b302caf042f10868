"""Methods side by side as tables: grouped by the numbers a row keeps, the best of each marked."""

from collections.abc import Sequence
from typing import NamedTuple

from appca.data.numbers import fixed
from appca.runs.quality import MethodComparison, QualityConfig
from appca.storage.wording import counted
from appca.studies import store
from appca.studies.study import Row
from appca.ui.parts.text import measured, tag, words
from appca.ui.parts.text import table as html_table

PICTURES = ("plane", "umap")


class QualityColumn(NamedTuple):
    """A measure in the table."""

    key: str
    name: str
    unit: str
    digits: int
    larger: bool  # is better


COLUMNS = (
    QualityColumn("log_likelihood", "Log-likelihood", "nats per row held out", 2, True),
    QualityColumn("mse", "Squared error", "a feature, held out", 4, False),
    QualityColumn("mae", "Absolute error", "a feature, held out", 4, False),
    QualityColumn("trustworthiness", "Trustworthiness", "1 is best", 3, True),
    QualityColumn("continuity", "Continuity", "1 is best", 3, True),
    QualityColumn("kept", "Neighbours kept", "share of {k}", 3, True),
    QualityColumn("accuracy", "k-NN accuracy", "of classes, {k} nearest", 3, True),
    QualityColumn("seconds", "Time", "fit and projection", 2, False),
)


def table(config: QualityConfig, found: MethodComparison) -> str:
    """Return the methods as an HTML table, grouped by the numbers they keep of a row."""
    k = found.facts["n_neighbors"]
    columns = [
        column for column in COLUMNS if any(line[column.key] is not None for line in found.lines)
    ]
    heads = [words(c.name) + tag("small", words(c.unit.format(k=k))) for c in columns]
    body = ""
    for heading, lines in groups(config, found).items():
        span = {"colspan": str(len(columns) + 1), "scope": "rowgroup"}
        body += tag("tr", tag("th", words(heading), **span), "ca-group")
        best = {column.key: _best(lines, column) for column in columns}
        body += "".join(_line(line, columns, best) for line in lines)
    return html_table(["Method", *heads], body, "ca-plain ca-wrap")


def groups(config: QualityConfig, found: MethodComparison) -> dict[str, list[Row]]:
    """Return the lines by how many numbers a row keeps: comparisons are fair within a group."""
    k, active = config.k, config.n_active
    pictures = [line for line in found.lines if line["key"] in PICTURES]
    others = [line for line in found.lines if line["key"] not in PICTURES]
    every = [line for line in others if line["used"] >= k]
    few = [line for line in others if line["used"] < k]
    few.sort(key=lambda line: line["size"] == line["used"])  # those that choose come first
    named = {
        f"{_numbers(active)} per row: which of {k} the row chooses, or always the same": few,
        f"All {_numbers(k)} per row" if few else f"{_numbers(k)} per row": every,
        "Pictures: 2 numbers per row": pictures,
    }
    return {heading: lines for heading, lines in named.items() if lines}


def csv_text(found: MethodComparison) -> str:
    """Return the table as CSV; a sampled measure has its standard error in a column beside."""
    rows: list[Row] = []
    for line in found.lines:
        row: Row = {}
        for name, value in line.items():
            sampled = isinstance(value, (list, tuple))
            row |= {name: value[0], f"{name}_error": value[1]} if sampled else {name: value}
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return store.csv_text([{name: row.get(name) for name in names} for row in rows])


def _line(line: Row, columns: list[QualityColumn], best: dict[str, str | None]) -> str:
    name = words(line["title"])
    small = "these settings, fitted to these rows" if line["key"] == "own" else line["note"]
    if line["key"] == "own" and line["note"]:
        small += f"; {line['note']}"
    cells = tag("th", name + (tag("small", words(small)) if small else ""), scope="row")
    for column in columns:
        value = _value(line, column.key)
        is_best = value is not None and _looks(value, column) == best[column.key]
        cells += tag("td", _text(line, column), "ca-best" if is_best else "")
    return tag("tr", cells, "ca-own" if line["key"] == "own" else "")


def _best(lines: list[Row], column: QualityColumn) -> str | None:
    """How the best value of a group is written: what looks the same is as good."""
    values = [value for line in lines if (value := _value(line, column.key)) is not None]
    if len(values) < 2:
        return None
    return _looks(max(values) if column.larger else min(values), column)


def _looks(value: float, column: QualityColumn) -> str:
    return f"{value:.{column.digits}f}"


def _value(line: Row, key: str) -> float | None:
    value: float | None = line[key][0] if isinstance(line[key], (list, tuple)) else line[key]
    return value


def _text(line: Row, column: QualityColumn) -> str:
    value = line[column.key]
    if value is None:
        return "–"
    if column.key == "seconds":
        return words(measured(value))
    if not isinstance(value, (list, tuple)):
        value = [value, line["log_likelihood_error"] if column.key == "log_likelihood" else 0.0]
    return _measure(value, column.digits)


def _measure(value: Sequence[float], digits: int) -> str:
    number = words(fixed(value[0], digits))
    return number + (tag("small", f"± {value[1]:.{digits}f}") if value[1] else "")


def _numbers(count: int) -> str:
    return counted(count, "number")
