"""``appca data``: list and describe data sets, and convert files."""

import argparse
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.commands import parsing, writing
from appca.commands.opening import opened, with_gaps
from appca.commands.terminal import say, say_facts
from appca.data import files as found
from appca.data.dataset import Dataset, categories
from appca.data.preprocessing import suggest
from appca.data.sources import SOURCES
from appca.preparation import proposed
from appca.runs.fit import estimate_seconds
from appca.runs.run import RunConfig
from appca.words import about, counted, percent, shortened, size

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES = (
    "python -m appca data",
    "python -m appca data measurements.csv --columns",
    "python -m appca data measurements.csv --label kind --out measurements.parquet",
    "python -m appca data faces --option 'size=[16,16]' --out faces.npz",
)

MOST_CLASSES = 1000  # maximum number of classes listed with counts


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "list the built-in data sets, or describe data and write them to a file"
    parser = parsing.command(commands, "data", text, EXAMPLES, run)
    parser.add_argument("data", nargs="*", metavar="DATA", help=parsing.DATA_HELP)
    parsing.add_flag(parser, "--columns", "list every column and its role")
    parsing.add_reading(parser, missing="kept")
    writing.add_out(parser, ".csv", "; missing cells stay missing")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """List data sets, or describe and write one."""
    if not options.data:
        return _sources()
    writing.check_place(options)
    dataset = with_gaps(options, opened)
    columns = columns_of(dataset)
    say(f"{dataset.name}: {dataset.n_rows:,} rows, {dataset.n_features:,} features")
    facts = {"Repeated rows": f"{len(dataset.repeated_rows):,}", "Digest": dataset.digest[:12]}
    facts = {"Values": f"{dataset.X.dtype}, {size(dataset.X.nbytes)}"} | facts
    say_facts(lines_of(dataset, "kept as they are") | facts | _first_fit(dataset))
    if options.columns:
        width = min(40, max((len(shortened(column["name"])) for column in columns), default=0))
        for column in columns:
            gaps = f", {counted(column['missing'], 'missing cell')}" if column["missing"] else ""
            kind = column["kind"] or ""
            say(f"  {shortened(column['name']):{width}}  {column['role']:8} {kind}{gaps}".rstrip())
    written = writing.write(
        options,
        lambda: table_of(dataset),
        lambda: {"X": dataset.with_gaps(), **writing.identity(dataset)},
    )
    more = {"repeated_rows": len(dataset.repeated_rows), "columns": columns, "written": written}
    return fields_of(dataset) | more


def _sources() -> dict[str, Any]:
    listed = []
    for source in SOURCES.values():
        options = [option.name for option in source.options]
        note = f" [{', '.join(options)}]" if options else ""
        shape = f"{source.rows} x {source.features}"
        say(f"{source.key:14} {shape:12} {source.description}{note}")
        fields = {name: getattr(source, name) for name in ("rows", "features", "description")}
        listed.append({"name": source.key, **fields, "offline": source.offline, "options": options})
    return {"data_sets": listed}


def _first_fit(dataset: Dataset) -> dict[str, str]:
    """Return the default settings of `fit` for these data, and the estimated time."""
    config = RunConfig(dataset.digest, suggest(dataset).to_dict(), "aPPCA", {})
    incomplete = len(dataset.incomplete_rows)
    seconds = estimate_seconds(dataset.n_rows, dataset.n_features, config, incomplete=incomplete)
    prepare, why = proposed(dataset)
    hint = {"Preparation": f"`fit --prepare {prepare}` may suit: {why}"} if prepare else {}
    return hint | {
        "Preprocessing": f"{suggest(dataset).in_words()} (what `fit` does by default)",
        "First fit": f"{about(seconds)} for {', '.join(config.sizes)}",
    }


def table_of(dataset: Dataset) -> "pd.DataFrame":
    """Return ids, labels and values as a table; missing cells are empty."""
    import pandas as pd

    names = dataset.feature_names or [f"x{d + 1}" for d in range(dataset.n_features)]
    labels = {f"label_{key}" if key in names else key: x for key, x in dataset.labels.items()}
    name = "row" if "id" in {*names, *labels} else "id"
    front = pd.DataFrame({name: dataset.ids.astype(object)} | labels)
    return pd.concat([front, pd.DataFrame(dataset.with_gaps(), columns=list(names))], axis=1)


def lines_of(dataset: Dataset, gaps: str) -> dict[str, str]:
    """Report column roles, classes, missing cells and their treatment, and constant features."""
    report = dataset.provenance.get("report", {})
    lines = found.facts(report, dataset)
    if names := report.get("likely_labels"):
        flags = " ".join(f"--label {shlex.quote(name)}" for name in names)
        lines["Features that may be labels"] += f"; use {flags}"
    for values in list(report.get("far", {}).values())[:1]:
        hint = f"; --na-values={values[0][0]:g} makes them missing"
        lines["Suspicious values"] = lines["Suspicious values"].rpartition(";")[0] + hint
    if doubt := report.get("doubt"):
        other = f"{doubt['option']}={str(doubt['other']).lower()}"
        lines["In doubt"] += f"; --option {other} reads it otherwise"
    constant = _constant(dataset)
    named = [name if isinstance(name, str) else f"feature {name + 1}" for name in constant]
    listed, features = [] if dataset.image_shape else named, f"{dataset.n_features:,}"
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
    """Return name, role, kind and missing cells of each table column, or feature of other data."""
    report = dataset.provenance.get("report", {})
    kinds, gaps = report.get("kinds", {}), report.get("missing") or {}
    roles = report.get("roles") or (
        dict.fromkeys(dataset.labels, "label")
        | dict.fromkeys(dataset.feature_names or (), "feature")
    )
    return [
        {"name": key, "role": role, "kind": kinds.get(key, "numbers"), "missing": gaps.get(key, 0)}
        for key, role in roles.items()
    ]


def fields_of(dataset: Dataset) -> dict[str, Any]:
    """Return the fields documented under “data” in `docs/command_line.md`."""
    report = dataset.provenance.get("report", {})
    shape = None if dataset.image_shape is None else list(dataset.image_shape)
    fields: dict[str, Any] = {"name": dataset.name, "digest": dataset.digest}
    fields |= {"rows": dataset.n_rows, "features": dataset.n_features}
    fields |= {"type": str(dataset.X.dtype), "image_shape": shape}
    fields["labels"] = [_classes(name, column) for name, column in dataset.labels.items()]
    fields |= {"missing_cells": dataset.n_missing, "incomplete_rows": len(dataset.incomplete_rows)}
    fields |= {"filled_cells": int(report.get("filled", 0))}
    fields |= {"dropped_rows": int(report.get("dropped", 0)), "constant": _constant(dataset)}
    return fields


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
    rows, cells = counted(len(dataset.incomplete_rows), "row"), counted(dataset.n_missing, "cell")
    return {"Missing": f"{cells} ({share}) in {rows}, {gaps}: {some}"}


def _constant(dataset: Dataset) -> list[Any]:
    left_out = dataset.provenance.get("report", {}).get("left_out", {})
    places = np.flatnonzero(dataset.X.min(axis=0) == dataset.X.max(axis=0)).tolist()
    names = dataset.feature_names
    features = [names[j] for j in places] if names else places
    return features + [name for name, why in left_out.items() if why == "one value"]
