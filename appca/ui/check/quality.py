"""The tab Map quality: how many near rows the panels keep near, beside PCA and UMAP."""

from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from appca.data.dataset import Dataset
from appca.plots.check.quality import neighbours_kept, unmeasured
from appca.runs.home import home
from appca.runs.quality import MethodComparison, QualityConfig, QualityStore
from appca.ui.check.compare_choice import sizes
from appca.ui.parts import progress
from appca.ui.parts.answers import Level, answer, numbers
from appca.ui.parts.chart import chart
from appca.ui.parts.notes import gaps_note
from appca.ui.session.fitting import Shown
from appca.words.numbers import about, percent

if TYPE_CHECKING:
    import pandas as pd

MANY = 10_000  # rows above which a sample is compared
SECONDS_A_ROW_AND_FEATURE = 1.5e-5  # measured, of all methods together
START = 30.0  # seconds, most of them for UMAP's compiler
NAMES = {"own": "The panels", "plane": "PCA", "umap": "UMAP"}
WHY = (
    "Of each row's nearest rows in the data, the share that is also among its nearest in the "
    "picture. A row of the panels is placed by all its scores, zero where it does not use a "
    "component. Every method is fitted to four fifths of the rows; the rest are held out."
)


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


def body(dataset: Dataset, shown: Shown) -> None:
    """Draw the answer, or how long it takes; all methods and measures are folded."""
    config = config_of(dataset, shown)
    told = "Methods that have been measured are kept when you cancel."
    if progress.follow(config.id, "quality_cancel", told, lambda: _so_far(config)):
        return
    comparison = _stored(config)
    if comparison is not None:
        _shown(comparison)
    if comparison is None or not comparison.complete:
        _offer(dataset, config, comparison)
    if comparison is None:
        chart(unmeasured(NAMES.values(), "nearest rows kept"), "quality_unmeasured")
    gaps_note(dataset, "All methods here, this model among them,")


def config_of(dataset: Dataset, shown: Shown) -> QualityConfig:
    """Return what is compared of a fit, on a sample of very many rows."""
    rows = MANY if dataset.n_rows > MANY else None
    return QualityConfig(shown.config.to_dict(), *sizes(shown), rows)


def _stored(config: QualityConfig) -> MethodComparison | None:
    return QualityStore(home()).get(config.id)


def kept(comparison: MethodComparison) -> dict[str, float]:
    """Return the share of near rows that each picture keeps, as far as it has been measured."""
    lines = {line["key"]: line["kept"] for line in comparison.lines}
    return {name: lines[key][0] for key, name in NAMES.items() if lines.get(key) is not None}


def _so_far(config: QualityConfig) -> None:
    comparison = _stored(config)
    if comparison is not None and kept(comparison):
        chart(neighbours_kept(kept(comparison)), "quality_so_far")


def _shown(comparison: MethodComparison) -> None:
    shares, k = kept(comparison), comparison.facts["n_neighbors"]
    if shares:
        ranked = sorted(shares, key=lambda name: -shares[name])
        verb = "keep" if ranked[0] == NAMES["own"] else "keeps"
        title = f"{ranked[0]} {verb} {percent(shares[ranked[0]])} of each row's {k} nearest rows"
        others = ", ".join(f"{name} {percent(shares[name])}" for name in ranked[1:])
        level: Level = "good" if ranked[0] == NAMES["own"] else "doubtful"
        answer(title, f"{others}." if others else "", level)
        chart(neighbours_kept(shares), "quality_kept")
        st.html(numbers([(percent(share), name) for name, share in shares.items()]))
    with st.popover("Why?"):
        st.markdown(WHY)
    with st.expander("All methods and measures", icon=":material/table:"):
        st.dataframe(
            table_of(comparison), hide_index=True, width="stretch", column_config=looks(comparison)
        )


def _offer(dataset: Dataset, config: QualityConfig, comparison: MethodComparison | None) -> None:
    if comparison is None:
        text = "The panels beside PCA, UMAP and other methods."
        answer("How many near rows stay near?", text)
    start_button(dataset, config, "Measure" if comparison is None else "Go on")


def start_button(dataset: Dataset, config: QualityConfig, label: str) -> None:
    """Draw the button that measures all methods, with the time it takes."""
    rows = config.rows or dataset.n_rows
    takes = about(START + SECONDS_A_ROW_AND_FEATURE * rows * dataset.n_features)
    spec = {"key": config.id, "config": config.to_dict()}
    progress.button(f"{label}, {takes}", "quality_start", "quality", config.id, spec)


def table_of(comparison: MethodComparison) -> "pd.DataFrame":
    """Return a line a method and a column a measure, standard errors beside sampled ones.

    Comparisons are fair between methods that keep as many numbers of a row.
    """
    import pandas as pd

    lines = sorted(comparison.lines, key=lambda line: line["used"])
    columns: dict[str, list[Any]] = {
        "Method": [line["title"] for line in lines],
        "Numbers per row": [
            f"{line['used']} of {line['size']}"
            if line["used"] < line["size"]
            else str(line["size"])
            for line in lines
        ],
    }
    for key, column in COLUMNS.items():
        pairs = [_value_and_error(line, key) for line in lines]
        if any(value is not None for value, _ in pairs):
            columns[column.name] = [value for value, _ in pairs]
        if any(error for _, error in pairs):
            columns[f"± {column.name.lower()}"] = [error for _, error in pairs]
    return pd.DataFrame(columns | {"Note": [line["note"] for line in lines]})


def looks(comparison: MethodComparison) -> dict[str, Any]:
    """Return how `table_of`'s columns are shown."""
    shown = {}
    for column in COLUMNS.values():
        about = column.about.format(k=comparison.facts["n_neighbors"])
        shown[column.name] = st.column_config.NumberColumn(format=column.format, help=about)
        error = st.column_config.NumberColumn(format=column.format, help="Standard error.")
        shown[f"± {column.name.lower()}"] = error
    return shown


def _value_and_error(line: dict[str, Any], key: str) -> tuple[float | None, float | None]:
    value = line[key]
    if isinstance(value, list | tuple):
        return value[0], value[1] or None
    return value, line["log_likelihood_error"] if key == "log_likelihood" else None
