"""Methods side by side as tables: grouped by the numbers a row keeps, the best of each marked."""

import csv
import io
from typing import Any, NamedTuple

from appca.analysis.explore.subspaces import title
from appca.data.numbers import fixed, percent
from appca.runs.quality import MethodComparison, QualityConfig
from appca.ui.parts.text import markdown, measured, tag, words

PICTURES = ("plane", "umap")


class QualityColumn(NamedTuple):
    """A measure in the table."""

    key: str
    name: str
    unit: str
    digits: int
    larger: bool  # is better


COLUMNS = (
    QualityColumn("log_likelihood", "Log-likelihood", "nats a row held out", 2, True),
    QualityColumn("mse", "Squared error", "a feature, held out", 4, False),
    QualityColumn("mae", "Absolute error", "a feature, held out", 4, False),
    QualityColumn("trustworthiness", "Trustworthiness", "1 is best", 3, True),
    QualityColumn("continuity", "Continuity", "1 is best", 3, True),
    QualityColumn("kept", "Neighbours kept", "share of {k}", 3, True),
    QualityColumn("accuracy", "k-NN accuracy", "of classes, {k} nearest", 3, True),
    QualityColumn("seconds", "Time", "fit and projection", 2, False),
)


def in_words(config: QualityConfig, found: MethodComparison) -> str:
    """Say what the choice of components gains in density; empty where there is none."""
    density = {line["key"]: line["log_likelihood"] for line in found.lines}
    own, few, every = (density.get(key) for key in ("own", "ppca_l", "ppca_k"))
    if own is None or few is None or every is None:
        return ""
    k, active = config.k, config.n_active
    error = f" ± {found.facts['gain_error']:.2f}" if "gain_error" in found.facts else ""
    better = "gains" if own >= few else "loses"
    text = (
        f"By letting every row choose {active} of {k} components, the model {better} "
        f"{fixed(abs(own - few))}{error} nats a row held out over PCA with {active} fixed ones"
    )
    if every > few and own >= few:
        text += f": {percent((own - few) / (every - few))} of what PCA with all {k} would gain"
    return text + "."


def table(config: QualityConfig, found: MethodComparison) -> str:
    """Return the methods as an HTML table, grouped by the numbers they keep of a row."""
    k = found.facts["n_neighbors"]
    columns = [
        column for column in COLUMNS if any(line[column.key] is not None for line in found.lines)
    ]
    heads = tag("th", "Method", scope="col") + "".join(
        tag("th", words(c.name) + tag("small", words(c.unit.format(k=k))), scope="col")
        for c in columns
    )
    body = ""
    for heading, lines in groups(config, found).items():
        span = {"colspan": str(len(columns) + 1), "scope": "rowgroup"}
        body += tag("tr", tag("th", words(heading), **span), "ca-group")
        best = {column.key: _best(lines, column) for column in columns}
        body += "".join(_line(line, columns, best) for line in lines)
    inner = tag("thead", tag("tr", heads)) + tag("tbody", body)
    return tag("div", tag("table", inner), "ca-table ca-plain ca-wrap")


def groups(config: QualityConfig, found: MethodComparison) -> dict[str, list[dict[str, Any]]]:
    """Return the lines by how many numbers a row keeps: only within a group is it a fair race."""
    k, active = config.k, config.n_active
    few, every, pictures = [], [], []
    for line in found.lines:
        if line["key"] in PICTURES:
            pictures.append(line)
        elif line["used"] < k:
            few.append(line)
        else:
            every.append(line)
    few.sort(key=lambda line: line["size"] == line["used"])  # those that choose come first
    named = {
        f"{_numbers(active)} a row: which of {k} the row chooses, or always the same": few,
        f"All {_numbers(k)} a row" if few else f"{_numbers(k)} a row": every,
        "Pictures: 2 numbers a row": pictures,
    }
    return {heading: lines for heading, lines in named.items() if lines}


def panels_table(config: QualityConfig, found: MethodComparison) -> str:
    """Return the panels as an HTML table."""
    heads = (
        ("Panel", ""),
        ("Rows", ""),
        ("In the panel", f"{_numbers(config.n_active)} of the run"),
        ("Same rows", f"PCA, {_numbers(config.n_active)}"),
        ("Among all rows", f"PCA, {_numbers(config.n_active)}"),
    )
    head = "".join(
        tag("th", words(name) + tag("small", words(unit)), scope="col") for name, unit in heads
    )
    body = ""
    for panel in found.panels:
        values = [panel[key] for key in ("panel", "same_rows", "all_rows")]
        most = max(value for value, _ in values)
        cells = tag("td", f"{panel['n_rows']:,}")
        for value in values:
            cells += tag("td", _measure(value, 3), "ca-best" if value[0] == most else "")
        name = title(tuple(panel["components"]))
        body += tag("tr", tag("th", words(name), scope="row") + cells)
    inner = tag("thead", tag("tr", head)) + tag("tbody", body)
    return tag("div", tag("table", inner), "ca-table ca-plain")


def csv_text(found: MethodComparison) -> str:
    """Return the table as CSV; a sampled measure has its standard error in a column beside."""
    rows = []
    for line in found.lines:
        row: dict[str, object] = {}
        for name, value in line.items():
            row[name] = value[0] if isinstance(value, (list, tuple)) else value
            if isinstance(value, (list, tuple)):
                row[f"{name}_error"] = value[1]
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def fairness(config: QualityConfig, found: MethodComparison) -> str:
    """Say what was compared with what, as Markdown."""
    facts = found.facts
    text = (
        f"All methods saw the same {facts['n_train']:,} rows of {facts['n_features']:,} features, "
        f"preprocessed as in this run; log-likelihood and errors are of {facts['n_test']:,} other "
        "rows, in preprocessed units, ± the standard error of the mean; all are judged by the same "
        "rows, so a difference is surer than that. A method keeps its own defaults where the table "
        "names no setting. Factor analysis has a noise variance for each feature, the others one "
        "for all. Bold: best of its group. "
        f"Neighbours: of the rows fitted to, the {facts['n_neighbors']} nearest. Where rows choose "
        f"their components, distances are between all {config.k} scores, zero where a component is "
        "not used. Trustworthiness falls when rows become neighbours that are far apart in the "
        "data, continuity when neighbours of the data are torn apart. UMAP's time leaves out "
        "compiling."
    )
    if facts["n_anchors"] < facts["n_train"]:
        text += (
            f" Neighbours were looked up for {facts['n_anchors']:,} random rows, each against all "
            f"{facts['n_train']:,}; ± is the standard error of that sample."
        )
    return markdown(text)


def _line(line: dict[str, Any], columns: list[QualityColumn], best: dict[str, str | None]) -> str:
    name = words(line["title"])
    small = "this run's settings, fitted to these rows" if line["key"] == "own" else line["note"]
    if line["key"] == "own" and line["note"]:
        small += f"; {line['note']}"
    cells = tag("th", name + (tag("small", words(small)) if small else ""), scope="row")
    for column in columns:
        value = _value(line, column.key)
        is_best = value is not None and _looks(value, column) == best[column.key]
        cells += tag("td", _text(line, column), "ca-best" if is_best else "")
    return tag("tr", cells, "ca-own" if line["key"] == "own" else "")


def _best(lines: list[dict[str, Any]], column: QualityColumn) -> str | None:
    """How the best value of a group is written: what looks the same is as good."""
    values = [value for line in lines if (value := _value(line, column.key)) is not None]
    if len(values) < 2:
        return None
    return _looks(max(values) if column.larger else min(values), column)


def _looks(value: float, column: QualityColumn) -> str:
    return f"{value:.{column.digits}f}"


def _value(line: dict[str, Any], key: str) -> float | None:
    value = line[key]
    number: float | None = value[0] if isinstance(value, (list, tuple)) else value
    return number


def _text(line: dict[str, Any], column: QualityColumn) -> str:
    value = line[column.key]
    if value is None:
        return "–"
    if column.key == "seconds":
        return words(measured(value))
    if column.key == "log_likelihood":
        return _measure([value, line["log_likelihood_error"]], column.digits)
    return _measure(list(value) if isinstance(value, list | tuple) else [value, 0.0], column.digits)


def _measure(value: list[float], digits: int) -> str:
    number = words(fixed(value[0], digits))
    return number + (tag("small", f"± {value[1]:.{digits}f}") if value[1] else "")


def _numbers(count: int) -> str:
    return f"{count} number{'' if count == 1 else 's'}"
