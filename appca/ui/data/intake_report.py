"""What was found in uploaded files, as a list of facts, and what a fit of them would take."""

from dataclasses import replace

import numpy as np
import streamlit as st

from appca.data.dataset import Dataset, categories
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds
from appca.storage.wording import counted
from appca.ui.data.role_editor import Report
from appca.ui.parts.text import about, fact_list, size
from appca.ui.session import state

MOST_NAMES = 5
MOST_FILES = 500  # listed by name
COPIES = 2  # of the matrix that a fit holds at its peak; 1.7 were measured
DONE = (
    ("modelled", "cell", "left to the model to fill"),
    ("filled", "cell", "filled"),
    ("dropped", "row", "left out"),
)
ROLES = {"id": "Row names", "label": "Labels", "ignored": "Ignored"}


def draw(report: Report, dataset: Dataset | None) -> None:
    """Draw the facts and, on demand, the names of all files that were left out."""
    st.html(facts(report, dataset))
    skipped = report.get("skipped", ())
    if len(skipped) > MOST_NAMES:
        with st.expander("Files left out"):
            st.text("\n".join(map(str, skipped[:MOST_FILES])))
            if len(skipped) > MOST_FILES:
                st.caption(f"The first {MOST_FILES:,} of {len(skipped):,}.")


def facts(report: Report, dataset: Dataset | None = None) -> str:
    """Return what was found as HTML: until files were refused, or with the data set they became."""
    lines = _size(report) | _roles(report)
    if dataset is not None:
        lines |= _labels(dataset)
    lines |= _missing(report) | _oddities(report)
    return fact_list(lines | (_cost(dataset) if dataset is not None else {}))


def memory(n_rows: int, n_features: int, itemsize: int) -> int:
    """Estimate the bytes of memory that a fit needs; bytes are worked on as float32."""
    return COPIES * n_rows * n_features * max(4, itemsize)


def _cost(dataset: Dataset) -> dict[str, str]:
    """Say what a fit would take: as the data open, and with the K and L on screen."""
    needed = memory(dataset.n_rows, dataset.n_features, dataset.X.itemsize)
    held = f"{dataset.X.dtype}, {size(dataset.X.nbytes)}"
    lines = {"Values": f"{held}; a fit needs about {size(needed)} of memory"}
    opening = state.first_config(dataset)
    lines["First fit"] = _takes(dataset, opening)
    if state.is_ready():
        now = state.config()
        wished = {"n_components": now.k, "n_active": now.n_active or now.k}
        same = replace(opening, parameters=opening.parameters | wished)
        same = state.fitting_limits(same, dataset)
        if same.parameters != opening.parameters:
            lines["With the present K and L"] = _takes(dataset, same)
    return lines


def _takes(dataset: Dataset, config: RunConfig) -> str:
    seconds = estimate_seconds(dataset.n_rows, dataset.n_features, config)
    return f"{about(seconds)} for {', '.join(config.sizes)}"


def _labels(dataset: Dataset) -> dict[str, str]:
    """Say of each label column which classes it holds."""
    lines = {}
    for name, column in list(dataset.labels.items())[:MOST_NAMES]:
        classes, codes = categories(column)
        counts = np.bincount(codes, minlength=len(classes))
        first = zip(classes[:MOST_NAMES], counts[:MOST_NAMES], strict=True)
        some = _few([f"{one} ({count:,})" for one, count in first], len(classes))
        lines[f"Label “{name}”"] = f"{counted(len(classes), 'value')}: {some}"
    return lines


def _size(report: Report) -> dict[str, str]:
    lines = {}
    if report.get("files"):
        lines["Files"] = f"{report['files']:,}"
    if report.get("rows"):
        lines["Found"] = f"{counted(report['rows'], 'row')} × {report.get('columns', 0):,}"
    if report.get("image_shape"):
        lines["Images of"] = " × ".join(map(str, report["image_shape"])) + " pixels"
    return lines


def _roles(report: Report) -> dict[str, str]:
    given = report.get("roles", {})
    named = {ROLES[role]: _few([n for n in given if given[n] == role]) for role in ROLES}
    return {label: names for label, names in named.items() if names}


def _missing(report: Report) -> dict[str, str]:
    if "missing" not in report:
        return {}
    cells = report["missing"]
    if not cells:
        return {"Missing": "none"}
    columns = _few([f"{name} ({count:,})" for name, count in cells.items()])
    total = report.get("n_missing", sum(cells.values()))
    lines = {"Missing": f"{counted(total, 'cell')}: {columns}"}
    for done, what, words in DONE:
        if report.get(done):
            lines["Done about it"] = f"{counted(report[done], what)} {words}"
    return lines


def _oddities(report: Report) -> dict[str, str]:
    lines = {}
    if report.get("constant"):
        constant = report["constant"]
        n_constant = report.get("n_constant", len(constant))
        names = " pixels" if report.get("image_shape") else f": {_few(constant, n_constant)}"
        lines["Constant features"] = f"{n_constant:,}{names}"
    if report.get("likely_labels"):
        likely = report["likely_labels"].items()
        lines["Features that may be labels"] = _few([f"{name} ({n} values)" for name, n in likely])
    if report.get("unused"):
        unused = report["unused"].items()
        lines["Arrays not used"] = _few([f"{name} ({why})" for name, why in unused])
    if report.get("skipped"):
        lines["Files left out"] = f"{len(report['skipped']):,}: {_few(report['skipped'])}"
    if report.get("duplicates"):
        lines["Repeated rows"] = f"{report['duplicates']:,}"
    return lines


def _few(names: list[str], n: int | None = None) -> str:
    """Name the first of `n`; by default of those given."""
    more = (len(names) if n is None else n) - MOST_NAMES
    return ", ".join(map(str, names[:MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")
