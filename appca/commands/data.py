"""``appca data``: what there is to open, what is in it, and the same as another kind of file."""

import argparse
from typing import TYPE_CHECKING, Any

from appca.commands import facts, parsing, writing
from appca.commands.opening import opened, with_gaps
from appca.commands.terminal import say, say_facts
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.readers.intake import duplicate_rows
from appca.data.sources.builtin import SOURCES
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds
from appca.words.numbers import about, size
from appca.words.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES = (
    "python -m appca data",
    "python -m appca data measurements.csv --columns",
    "python -m appca data measurements.csv --label kind --out measurements.parquet",
    "python -m appca data faces --option 'size=[16,16]' --out faces.npz",
)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "list the built-in data sets, or describe data and write them to a file"
    parser = parsing.command(commands, "data", text, EXAMPLES, run)
    parser.add_argument("data", nargs="*", metavar="DATA", help=parsing.DATA_HELP)
    parser.add_argument(
        "--columns", action="store_true", help="list every column and its role (default: no)"
    )
    parsing.add_reading(parser, missing="kept")
    writing.add_out(parser, ".csv", "; missing cells stay missing")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """List data sets, or describe and write one."""
    if not options.data:
        return _sources()
    writing.check_place(options)
    dataset = with_gaps(options, opened)
    repeated = duplicate_rows(dataset.X)
    columns = facts.columns_of(dataset)
    say(f"{dataset.name}: {dataset.n_rows:,} rows, {dataset.n_features:,} features")
    say_facts(
        facts.lines_of(dataset, "kept as they are")
        | {
            "Repeated rows": f"{repeated:,}",
            "Values": f"{dataset.X.dtype}, {size(dataset.X.nbytes)}",
            "Digest": dataset.digest[:12],
        }
        | _first_fit(dataset)
    )
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
    more = {"repeated_rows": repeated, "columns": columns, "written": written}
    return facts.fields_of(dataset) | more


def _sources() -> dict[str, Any]:
    for source in SOURCES.values():
        names = ", ".join(option.name for option in source.options)
        note = f" [{names}]" if names else ""
        shape = f"{source.rows} x {source.features}"
        say(f"{source.key:14} {shape:12} {source.description}{note}")
    return {
        "data_sets": [
            {
                "name": source.key,
                "rows": source.rows,
                "features": source.features,
                "description": source.description,
                "offline": source.offline,
                "options": [option.name for option in source.options],
            }
            for source in SOURCES.values()
        ]
    }


def _first_fit(dataset: Dataset) -> dict[str, str]:
    """Say how `fit` would begin without further options, and about how long it would take."""
    config = RunConfig(dataset.digest, suggest(dataset).to_dict(), "aPPCA", {})
    incomplete = len(dataset.incomplete_rows)
    seconds = estimate_seconds(dataset.n_rows, dataset.n_features, config, incomplete=incomplete)
    return {
        "Preprocessing": f"{suggest(dataset).in_words()} (what `fit` does by default)",
        "First fit": f"{about(seconds)} for {', '.join(config.sizes)}",
    }


def table_of(dataset: Dataset) -> "pd.DataFrame":
    """Return ids, labels and values as a table; missing cells are empty."""
    import pandas as pd

    names = dataset.feature_names or [f"x{d + 1}" for d in range(dataset.n_features)]
    labels = {
        f"label_{key}" if key in names else key: dataset.labels[key] for key in dataset.labels
    }
    front = pd.DataFrame({"id": dataset.ids.astype(object)} | labels)
    values = pd.DataFrame(dataset.with_gaps(), columns=list(names))
    return pd.concat([front, values], axis=1)
