"""What was found in files, as lines for people: on the page Data and on the command line."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from appca.data.dataset import Dataset, categories
from appca.storage.wording import counted

MOST_NAMES = 5
_DONE = (
    ("modelled", "cell", "left to the model to fill"),
    ("filled", "cell", "filled"),
    ("dropped", "row", "left out"),
)
_ROLES = {"id": "Row names", "label": "Labels", "ignored": "Ignored"}


def facts(report: Mapping[str, Any], dataset: Dataset | None = None) -> dict[str, str]:
    """Return what was found: until files were refused, or with the data set they became.

    Parameters
    ----------
    report : dict
        Of a reader.
    dataset : Dataset or None

    Returns
    -------
    dict of str to str
        What a line is about, and what there is to say.
    """
    lines = _size(report) | _roles(report)
    if dataset is not None:
        lines |= labels(dataset)
    return lines | _missing(report) | _oddities(report)


def labels(dataset: Dataset) -> dict[str, str]:
    """Say of each label column which classes it holds."""
    lines = {}
    for name, column in list(dataset.labels.items())[:MOST_NAMES]:
        classes, codes = categories(column)
        counts = np.bincount(codes, minlength=len(classes))
        some = few([f"{one} ({count:,})" for one, count in zip(classes, counts, strict=True)])
        lines[f"Label “{name}”"] = f"{counted(len(classes), 'value')}: {some}"
    return lines


def _size(report: Mapping[str, Any]) -> dict[str, str]:
    lines = {}
    if report.get("files"):
        lines["Files"] = f"{report['files']:,}"
    if report.get("rows"):
        lines["Found"] = f"{counted(report['rows'], 'row')} × {report.get('columns', 0):,}"
    if report.get("image_shape"):
        lines["Images of"] = " × ".join(map(str, report["image_shape"])) + " pixels"
    return lines


def _roles(report: Mapping[str, Any]) -> dict[str, str]:
    given = report.get("roles", {})
    named = {_ROLES[role]: few([n for n in given if given[n] == role]) for role in _ROLES}
    return {label: names for label, names in named.items() if names}


def _missing(report: Mapping[str, Any]) -> dict[str, str]:
    if "missing" not in report:
        return {}
    cells = report["missing"]
    if not cells:
        return {"Missing": "none"}
    columns = few([f"{name} ({count:,})" for name, count in cells.items()])
    lines = {"Missing": f"{counted(sum(cells.values()), 'cell')}: {columns}"}
    for done, what, words in _DONE:
        if report.get(done):
            lines["Done about it"] = f"{counted(report[done], what)} {words}"
    return lines


def _oddities(report: Mapping[str, Any]) -> dict[str, str]:
    lines = {}
    if report.get("constant"):
        names = f": {few(report['constant'])}" if not report.get("image_shape") else " pixels"
        lines["Constant features"] = f"{len(report['constant']):,}{names}"
    if report.get("skipped"):
        lines["Files left out"] = f"{len(report['skipped']):,}: {few(report['skipped'])}"
    if report.get("duplicates"):
        lines["Repeated rows"] = f"{report['duplicates']:,}"
    return lines


def few(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(map(str, names[:MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")
