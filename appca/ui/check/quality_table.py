"""Methods side by side as a table; those that keep as many numbers of a row stand together."""

from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from appca.runs.quality import MethodComparison

if TYPE_CHECKING:
    import pandas as pd


class QualityColumn(NamedTuple):
    """A measure in the table."""

    name: str
    about: str
    format: str


COLUMNS = {
    "log_likelihood": QualityColumn("Log-likelihood", "Nats per row held out.", "%.2f"),
    "mse": QualityColumn("Squared error", "Of a feature, held out.", "%.4f"),
    "mae": QualityColumn("Absolute error", "Of a feature, held out.", "%.4f"),
    "trustworthiness": QualityColumn("Trustworthiness", "1 is best.", "%.3f"),
    "continuity": QualityColumn("Continuity", "1 is best.", "%.3f"),
    "kept": QualityColumn("Neighbours kept", "Share of the {k} nearest rows.", "%.3f"),
    "accuracy": QualityColumn("k-NN accuracy", "Of classes, by the {k} nearest rows.", "%.3f"),
    "seconds": QualityColumn("Seconds", "Of fit and projection.", "%.2f"),
}


def table(found: MethodComparison) -> "pd.DataFrame":
    """Return a line a method and a column a measure, standard errors beside sampled ones.

    Comparisons are fair between methods that keep as many numbers of a row.
    """
    import pandas as pd

    lines = sorted(found.lines, key=lambda line: line["used"])
    columns: dict[str, list[Any]] = {
        "Method": [line["title"] for line in lines],
        "Numbers per row": [_kept(line["used"], line["size"]) for line in lines],
    }
    for key, column in COLUMNS.items():
        pairs = [_value_and_error(line, key) for line in lines]
        if any(value is not None for value, _ in pairs):
            columns[column.name] = [value for value, _ in pairs]
        if any(error for _, error in pairs):
            columns[f"± {column.name.lower()}"] = [error for _, error in pairs]
    return pd.DataFrame(columns | {"Note": [line["note"] for line in lines]})


def looks(found: MethodComparison) -> dict[str, Any]:
    """Return how `table`'s columns are shown."""
    shown = {}
    for one in COLUMNS.values():
        about = one.about.format(k=found.facts["n_neighbors"])
        shown[one.name] = st.column_config.NumberColumn(format=one.format, help=about)
        error = st.column_config.NumberColumn(format=one.format, help="Standard error.")
        shown[f"± {one.name.lower()}"] = error
    return shown


def _kept(used: int, size: int) -> str:
    return f"{used} of {size}" if used < size else str(size)


def _value_and_error(line: dict[str, Any], key: str) -> tuple[float | None, float | None]:
    value = line[key]
    if isinstance(value, list | tuple):
        return value[0], value[1] or None
    return value, line["log_likelihood_error"] if key == "log_likelihood" else None
