"""Table 1 on the page: methods as rows, designs and K as columns, one measure at a time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st

from appca.data.numbers import fixed, percent
from appca.studies.experiments.table1 import REFERENCES
from appca.studies.study import Row
from appca.ui.parts.text import tag, words
from appca.ui.parts.widgets import one_of


class MeasureHeading(NamedTuple):
    """How a measure is shown."""

    short: str
    meaning: str
    write: Callable[[float], str]
    best: Callable[[Sequence[float]], float] | None


def _points(digits: int) -> Callable[[float], str]:
    return lambda value: fixed(value, digits)


MEASURES = {
    "mae": MeasureHeading(
        "Absolute error",
        "Mean absolute reconstruction error an entry, in-sample. In quieter colour what the paper "
        "prints.",
        _points(4),
        min,
    ),
    "mse": MeasureHeading(
        "Squared error", "Mean squared reconstruction error an entry, in-sample.", _points(4), min
    ),
    "heldout": MeasureHeading(
        "Held-out",
        "Log-likelihood of fresh rows, nats per row; estimated where there are too many sets of "
        "factors to sum.",
        _points(2),
        max,
    ),
    "cosine": MeasureHeading(
        "Columns",
        "|cos| between true and found columns, matched one to one, mean over the factors that at "
        "least 1% of the rows use. Factors that are always used together (subspace, single) are "
        "found only up to a rotation.",
        _points(3),
        max,
    ),
    "cosine_least": MeasureHeading("Worst column", "The least of these |cos|.", _points(3), max),
    "z_right": MeasureHeading(
        "Z right",
        "Share of indicators that are right after matching; surplus factors count as mistakes.",
        lambda value: percent(value, 1),
        max,
    ),
    "per_row": MeasureHeading("A row", "Factors used by a row, mean.", _points(1), None),
    "n_used": MeasureHeading("Factors", "Factors used by any row.", _points(1), None),
    "seconds": MeasureHeading(
        "Seconds", "Of the fit, while another one ran beside it.", _points(2), min
    ),
}


def comparison_table(rows: Sequence[Row]) -> None:
    """Draw the choice of the measure, its meaning and the table."""
    names = {name: measure.short for name, measure in MEASURES.items()}
    name = one_of("Measure", names, "lab_measure", "mae")
    bold = " Bold: the best method of a column." if MEASURES[name].best else ""
    st.caption(f"{MEASURES[name].meaning} Small: the spread over data sets.{bold}")
    st.html(table_html(rows, name))


def table_html(rows: Sequence[Row], name: str) -> str:
    """Return the table of one measure as HTML."""
    there = [row for row in rows if row[name] is not None]
    designs = list(dict.fromkeys(row["design"] for row in rows))
    sizes = list(dict.fromkeys(row["K"] for row in rows))
    by_place = {(row["method"], row["design"], row["K"]): row for row in there}
    columns = [(design, K) for design in designs for K in sizes]
    best = {column: _best(there, name, *column) for column in columns}
    body = [_head(designs, sizes)]
    for method in dict.fromkeys(row["method"] for row in there):
        title = next(row["title"] for row in there if row["method"] == method)
        cells = [_cell(by_place.get((method, *column)), name, best[column]) for column in columns]
        css = "ca-reference" if method in REFERENCES else ""
        body.append(tag("tr", tag("th", words(title), scope="row") + "".join(cells), css))
    return tag("div", tag("table", "".join(body)), "ca-table")


def _head(designs: Sequence[str], sizes: Sequence[int]) -> str:
    first = tag("th", "") + "".join(
        tag("th", words(design.capitalize()), colspan=str(len(sizes))) for design in designs
    )
    second = tag("th", "") + "".join(tag("th", words(f"K = {K}")) for _ in designs for K in sizes)
    return tag("thead", tag("tr", first) + tag("tr", second))


def _best(rows: Sequence[Row], name: str, design: str, K: int) -> float | None:
    """Return the best value of a column among the methods; the references are none."""
    values = [
        row[name]
        for row in rows
        if (row["design"], row["K"]) == (design, K) and row["method"] not in REFERENCES
    ]
    choose = MEASURES[name].best
    return choose(values) if choose and values else None


def _cell(row: Row | None, name: str, best: float | None) -> str:
    if row is None:
        return tag("td", "")
    write = MEASURES[name].write
    value = words(write(row[name]))
    parts = [tag("b", value) if row[name] == best else value]
    spread = row[f"{name}_sd"]
    if spread is not None:
        parts.append(tag("small", words(f"± {write(spread)}")))
    if name == "mae" and row["paper_mae"] is not None:
        parts.append(tag("small", words(f"paper {row['paper_mae']:.3f}".replace("0.", "."))))
    return tag("td", "".join(parts))
