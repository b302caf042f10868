"""The page Compare, other methods: the job that measures them, and the tables of what it found."""

import csv
import io
from typing import NamedTuple

import streamlit as st

from appca.analysis.subspaces import title
from appca.data.dataset import Dataset
from appca.runs.home import home
from appca.runs.jobfolder import ENDED, JobStatus
from appca.runs.quality_store import Comparison, QualityConfig, QualityStore
from appca.ui import services, watching
from appca.ui.compare_page import sizes
from appca.ui.fitting import Shown
from appca.ui.text import about, duration, markdown, tag, words

MANY = 10_000  # rows above which a sample is compared unless all are asked for
POLL_SECONDS = 1.0
METHODS = 9
PICTURES = ("plane", "umap")


class Column(NamedTuple):
    """A measure in the table."""

    key: str
    name: str
    unit: str
    digits: int
    larger: bool  # is better


COLUMNS = (
    Column("log_likelihood", "Log-likelihood", "nats a row held out", 2, True),
    Column("mse", "Squared error", "a feature, held out", 4, False),
    Column("mae", "Absolute error", "a feature, held out", 4, False),
    Column("trustworthiness", "Trustworthiness", "1 is best", 3, True),
    Column("continuity", "Continuity", "1 is best", 3, True),
    Column("kept", "Neighbours kept", "share of {k}", 3, True),
    Column("accuracy", "k-NN accuracy", "of classes, {k} nearest", 3, True),
    Column("seconds", "Time", "fit and projection", 1, False),
)


def settings(dataset: Dataset, shown: Shown) -> QualityConfig:
    """Draw the choice of rows where there are many, and return what is to be compared."""
    k, active = sizes(shown)
    whole = QualityConfig(shown.config.to_dict(), k, active)
    if dataset.n_rows <= MANY:
        return whole
    choices = {
        rows: QualityConfig(shown.config.to_dict(), k, active, rows) for rows in (MANY, None)
    }
    store = QualityStore(home())
    known = [
        rows
        for rows, config in choices.items()
        if watching.running(config.id) is not None or store.get(config.id) is not None
    ]
    rows = st.segmented_control(
        "Rows compared",
        list(choices),
        default=(known or [MANY])[0],
        format_func=lambda n: f"{n:,} drawn at random" if n else f"all {dataset.n_rows:,}",
        key=f"quality_rows-{whole.id}",
        required=True,
    )
    return choices[rows]


def body(shown: Shown, config: QualityConfig) -> None:
    """Draw the comparison: running, finished, or the button that starts it."""
    job = watching.running(config.id)
    if job is not None:
        _running(job.id, config)
        return
    found = QualityStore(home()).get(config.id)
    if found is None or not found.complete:
        _offer(shown, config, found)
    if found is not None:
        tables(config, found)


def tables(config: QualityConfig, found: Comparison) -> None:
    """Draw what has been measured."""
    st.html(table(config, found))
    st.caption(_fairness(config, found))
    if found.panels:
        st.subheader("Crowding: classes in a panel and in one picture", anchor=False)
        st.html(panels_table(config, found))
        st.caption(
            f"How often the class of a row is the most frequent one among its "
            f"{found.facts['n_neighbors']} nearest rows: in the panel of its subspace, which holds "
            "its own rows only; for the same rows as PCA places them; and there among all rows, as "
            "one picture of everything shows them."
        )
    st.download_button(
        "Save the table as CSV",
        data=csv_text(found),
        file_name=f"quality-{config.id}.csv",
        mime="text/csv",
        key="quality_csv",
        on_click="ignore",
        icon=":material/download:",
    )


def table(config: QualityConfig, found: Comparison) -> str:
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


def groups(config: QualityConfig, found: Comparison) -> dict[str, list[dict]]:
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
        f"{_numbers(active)} a row, of {k} to choose from or always the same": few,
        f"All {_numbers(k)} a row" if few else f"{_numbers(k)} a row": every,
        "Pictures: 2 numbers a row": pictures,
    }
    return {heading: lines for heading, lines in named.items() if lines}


def panels_table(config: QualityConfig, found: Comparison) -> str:
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


def csv_text(found: Comparison) -> str:
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


@st.fragment(run_every=POLL_SECONDS)
def _running(job_id: str, config: QualityConfig) -> None:
    """Follow the job; the table fills as methods come in."""
    job = services.jobs().status(job_id)
    if job is None or job.state in ENDED:
        st.rerun()
    st.progress(min(max(job.fraction, 0.0), 1.0), text=_progress(job))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Cancel", key="quality_cancel", on_click=watching.cancel, args=[job.id])
        st.caption("Methods that have been measured are kept when you cancel.")
    found = QualityStore(home()).get(config.id)
    if found is not None:
        st.html(table(config, found))


def _offer(shown: Shown, config: QualityConfig, found: Comparison | None) -> None:
    if found is None:
        n = config.rows or shown.info["n_rows"]
        st.markdown(
            f"How much of the data does this projection keep, beside others? Up to {METHODS} "
            f"methods are fitted in the background to four fifths of {n:,} rows and judged by "
            f"the fifth held out, each for at most {about(config.seconds).removeprefix('about ')}. "
            "Small tables take a minute, 10,000 images of 784 pixels several."
        )
    else:
        st.markdown(f"{len(found.lines)} methods have been measured before it was ended.")
    label = "Measure" if found is None else "Go on"
    st.button(label, type="primary", key="quality_start", on_click=_start, args=[config])


def _start(config: QualityConfig) -> None:
    watching.allow(config.id)
    spec = {"key": config.id, "config": config.to_dict()}
    job = services.jobs().submit("quality", spec, key=config.id)
    watching.add(job, watching.Watched("quality", config.id))


def _progress(job: JobStatus) -> str:
    if job.state == "queued":
        return "Waiting for a free worker"
    return markdown(job.stage) or "starting"


def _fairness(config: QualityConfig, found: Comparison) -> str:
    facts = found.facts
    text = (
        f"All methods saw the same {facts['n_train']:,} rows of {facts['n_features']:,} features, "
        f"preprocessed as in this run; log-likelihood and errors are of {facts['n_test']:,} other "
        "rows, in preprocessed units, ± the standard error of the mean. A method keeps its own "
        "defaults where the table names no setting. Bold: best of its group. "
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


def _line(line: dict, columns: list[Column], best: dict[str, float | None]) -> str:
    name = words(line["title"])
    small = "this run's settings, fitted to these rows" if line["key"] == "own" else line["note"]
    if line["key"] == "own" and line["note"]:
        small += f"; {line['note']}"
    cells = tag("th", name + (tag("small", words(small)) if small else ""), scope="row")
    for column in columns:
        value = _value(line, column.key)
        is_best = value is not None and value == best[column.key]
        cells += tag("td", _text(line, column), "ca-best" if is_best else "")
    return tag("tr", cells, "ca-own" if line["key"] == "own" else "")


def _best(lines: list[dict], column: Column) -> float | None:
    values = [value for line in lines if (value := _value(line, column.key)) is not None]
    if len(values) < 2:
        return None
    return max(values) if column.larger else min(values)


def _value(line: dict, key: str) -> float | None:
    value = line[key]
    return value[0] if isinstance(value, (list, tuple)) else value


def _text(line: dict, column: Column) -> str:
    value = line[column.key]
    if value is None:
        return "–"
    if column.key == "seconds":
        return words(f"{value:.2f} s" if value < 10 else duration(value))
    if column.key == "log_likelihood":
        return _measure([value, line["log_likelihood_error"]], column.digits)
    return _measure(value if isinstance(value, (list, tuple)) else [value, 0.0], column.digits)


def _measure(value: list[float], digits: int) -> str:
    number = words(f"{value[0]:,.{digits}f}".replace("-", "−"))
    return number + (tag("small", f"± {value[1]:.{digits}f}") if value[1] else "")


def _numbers(count: int) -> str:
    return f"{count} number{'' if count == 1 else 's'}"
