"""What there is to say of a data set: as lines for people, and as fields for programs."""

import shlex
from typing import Any

import numpy as np

from appca.data.dataset import Dataset, categories
from appca.data.readers import facts as found
from appca.words.numbers import percent
from appca.words.wording import counted

MOST_CLASSES = 1000  # counted one by one in the fields


def lines_of(dataset: Dataset, gaps: str) -> dict[str, str]:
    """Say what is there: roles of columns, classes, gaps and what becomes of them, constants."""
    report = dataset.provenance.get("report", {})
    lines = found.facts(report, dataset)
    for name in list(report.get("likely_labels", {}))[:1]:
        lines["Features that may be labels"] += f"; --label {shlex.quote(name)} makes it one"
    constant = _constant(dataset)
    named = [name if isinstance(name, str) else f"feature {name + 1}" for name in constant]
    listed = [] if dataset.image_shape else named
    features = f"{dataset.n_features:,}"
    if dataset.image_shape:
        features += f", images of {' × '.join(map(str, dataset.image_shape))} pixels"
    elif dataset.feature_names:
        features += f": {found.few(list(dataset.feature_names))}"
    missing = _missing(dataset, lines, gaps)
    return (
        {"Features": features, "Labels": found.few(list(dataset.labels)) or "none"}
        | lines
        | missing
        | {"Constant features": f"{len(constant):,}{': ' * bool(listed)}{found.few(listed)}"}
    )


def columns_of(dataset: Dataset) -> list[dict[str, Any]]:
    """Return name, role, kind and missing cells of every column of a table; of others, features."""
    report = dataset.provenance.get("report", {})
    kinds, gaps = report.get("kinds", {}), report.get("missing") or {}
    roles = report.get("roles") or (
        dict.fromkeys(dataset.labels, "label")
        | dict.fromkeys(dataset.feature_names or (), "feature")
    )
    return [
        {
            "name": name,
            "role": role,
            "kind": kinds.get(name, "numbers"),
            "missing": gaps.get(name, 0),
        }
        for name, role in roles.items()
    ]


def fields_of(dataset: Dataset) -> dict[str, Any]:
    """Return what `docs/command_line.md` lists under “data”."""
    report = dataset.provenance.get("report", {})
    return {
        "name": dataset.name,
        "digest": dataset.digest,
        "rows": dataset.n_rows,
        "features": dataset.n_features,
        "type": str(dataset.X.dtype),
        "image_shape": None if dataset.image_shape is None else list(dataset.image_shape),
        "labels": [_classes(name, column) for name, column in dataset.labels.items()],
        "missing_cells": dataset.n_missing,
        "incomplete_rows": len(dataset.incomplete_rows),
        "filled_cells": int(report.get("filled", 0)),
        "dropped_rows": int(report.get("dropped", 0)),
        "constant": _constant(dataset),
    }


def _classes(name: str, column: np.ndarray) -> dict[str, Any]:
    classes, codes = categories(column)
    counts = np.bincount(codes, minlength=len(classes)).tolist()
    some = dict(zip(classes, counts, strict=True)) if len(classes) <= MOST_CLASSES else None
    return {"name": name, "values": len(classes), "counts": some}


def _missing(dataset: Dataset, lines: dict[str, str], gaps: str) -> dict[str, str]:
    if dataset.missing is None:
        return {"Missing": lines.get("Missing", "none")}
    lines.pop("Done about it", None)
    names = dataset.feature_names or [f"feature {j + 1}" for j in range(dataset.n_features)]
    by_column = dataset.missing.sum(axis=0)
    some = found.few([f"{names[j]} ({by_column[j]:,})" for j in np.flatnonzero(by_column)])
    share = percent(dataset.n_missing / dataset.X.size, 1)
    rows = counted(len(dataset.incomplete_rows), "row")
    cells = counted(dataset.n_missing, "cell")
    return {"Missing": f"{cells} ({share}) in {rows}, {gaps}: {some}"}


def _constant(dataset: Dataset) -> list[Any]:
    """Name the columns with one value, also those left out for it; gaps do not count."""
    left_out = dataset.provenance.get("report", {}).get("left_out", {})
    places = np.flatnonzero(dataset.X.min(axis=0) == dataset.X.max(axis=0)).tolist()
    names = dataset.feature_names
    features = [names[j] for j in places] if names else places
    return features + [name for name, why in left_out.items() if why == "one value"]
