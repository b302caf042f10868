"""What was found in files, as lines for people: on the page Data and on the command line."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from appca.data.dataset import Dataset, categories
from appca.words.wording import counted

MOST_NAMES = 5
_DONE = (
    ("modelled", "cell", "left to the model to fill"),
    ("filled", "cell", "filled"),
    ("dropped", "row", "left out"),
)
_FILLED = {
    "modelled": ", filled from the model",
    "filled": ", filled with their column's mean",
    "dropped": "; their rows are left out",
}
_ENCODINGS = {
    "utf-8": "UTF-8 text",
    "utf-8-sig": "UTF-8 text",
    "utf-16": "UTF-16 text",
    "utf-16-le": "UTF-16 text",
    "utf-16-be": "UTF-16 text",
    "cp1252": "Western European text",
    "latin-1": "Latin-1 text",
}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_ROLES = {"id": "Row names", "label": "Labels", "ignored": "Ignored"}


def facts(report: Mapping[str, Any], dataset: Dataset | None = None) -> dict[str, str]:
    """Return what was found: until files were refused, or with the data set they became.

    From a reader's report; of each line, what it is about and what there is to say.
    """
    lines = _size(report) | _roles(report)
    if dataset is not None:
        lines |= labels(dataset)
    return lines | _missing(report) | _oddities(report)


def in_one_line(report: Mapping[str, Any], dataset: Dataset) -> str:
    """Say what was assumed when files were read, for a person who may want it otherwise."""
    roles = report.get("roles", {})
    left_out = [f"“{name}” ({why})" for name, why in report.get("left_out", {}).items() if why]
    cells = (
        f"{report['n_missing']:,} of {report['rows'] * dataset.n_features:,} values are missing"
        if report.get("n_missing") and report.get("rows")
        else ""
    )
    done = next((words for key, words in _FILLED.items() if report.get(key)), "")
    sides = counted(dataset.n_rows, "row"), counted(dataset.n_features, "feature")
    parts = [
        _written(report) or f"Read as {' × '.join(sides)}",
        _marked(report),
        *(f"“{name}” names the rows" for name, role in roles.items() if role == "id"),
        f"left out: {few(left_out)}" if left_out else "",
        f"“{next(iter(dataset.labels))}” used as label" if dataset.labels else "",
        *(f"“{name}” may be a label" for name in list(report.get("likely_labels", {}))[:1]),
        f"{cells}{done}" if cells else "",
    ]
    return " · ".join(part for part in parts if part) + "."


def _written(report: Mapping[str, Any]) -> str:
    """Say how a text table is written."""
    if "separator" not in report:
        return ""
    separator = report["separator"]
    parts = [
        _ENCODINGS.get(report.get("encoding", "utf-8"), f"{report.get('encoding')} text"),
        _SEPARATORS.get(separator, f"cells between “{separator}”"),
        "decimal comma" if report.get("decimal") == "," else "",
        "" if report.get("header", True) else "no header",
    ]
    return "Read as " + ", ".join(part for part in parts if part)


def labels(dataset: Dataset) -> dict[str, str]:
    """Say of each label column which classes it holds."""
    lines = {}
    for name, column in list(dataset.labels.items())[:MOST_NAMES]:
        classes, codes = categories(column)
        counts = np.bincount(codes, minlength=len(classes))
        first = zip(classes[:MOST_NAMES], counts[:MOST_NAMES], strict=True)
        some = few([f"{text} ({count:,})" for text, count in first], len(classes))
        lines[f"Label “{name}”"] = f"{counted(len(classes), 'value')}: {some}"
    return lines


def _size(report: Mapping[str, Any]) -> dict[str, str]:
    lines = {}
    if report.get("files"):
        lines["Files"] = f"{report['files']:,}"
    if report.get("rows"):
        lines["Found"] = f"{counted(report['rows'], 'row')} × {report.get('columns', 0):,}"
    if report.get("marked"):
        lines["Variables"] = _marked(report)
    if report.get("image_shape"):
        lines["Images of"] = " × ".join(map(str, report["image_shape"])) + " pixels"
    return lines


def _marked(report: Mapping[str, Any]) -> str:
    """Say which variables of annotated data were read; nothing where all were."""
    if not report.get("marked"):
        return ""
    of, column = report["marked"]["of"], report["marked"]["column"]
    return f"{report.get('columns', 0):,} of {of:,} variables, those marked by “{column}”"


def _roles(report: Mapping[str, Any]) -> dict[str, str]:
    roles, left_out = report.get("roles", {}), report.get("left_out", {})
    why = {name: f"{name} ({reason})" for name, reason in left_out.items() if reason}
    named = {
        _ROLES[role]: few([why.get(n, n) for n in roles if roles[n] == role]) for role in _ROLES
    }
    return {label: names for label, names in named.items() if names}


def _missing(report: Mapping[str, Any]) -> dict[str, str]:
    if "missing" not in report:
        return {}
    cells = report["missing"]
    if not cells:
        return {"Missing": "none"}
    columns = few([f"{name} ({count:,})" for name, count in cells.items()])
    total = report.get("n_missing", sum(cells.values()))
    lines = {"Missing": f"{counted(total, 'cell')}: {columns}"}
    for done, what, words in _DONE:
        if report.get(done):
            lines["Done about it"] = f"{counted(report[done], what)} {words}"
    return lines


def _oddities(report: Mapping[str, Any]) -> dict[str, str]:
    lines = {}
    if report.get("constant"):
        constant = report["constant"]
        n_constant = report.get("n_constant", len(constant))
        names = " pixels" if report.get("image_shape") else f": {few(constant, n_constant)}"
        lines["Constant features"] = f"{n_constant:,}{names}"
    if report.get("likely_labels"):
        likely = report["likely_labels"].items()
        lines["Features that may be labels"] = few([f"{name} ({n} values)" for name, n in likely])
    if report.get("unused"):
        unused = report["unused"].items()
        lines["Arrays not used"] = few([f"{name} ({why})" for name, why in unused])
    if report.get("skipped"):
        lines["Files left out"] = f"{len(report['skipped']):,}: {few(report['skipped'])}"
    if report.get("duplicates"):
        lines["Repeated rows"] = f"{report['duplicates']:,}"
    return lines


def few(names: list[str], n: int | None = None) -> str:
    """Name the first of `n`; by default of those given."""
    more = (len(names) if n is None else n) - MOST_NAMES
    return ", ".join(map(str, names[:MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")
