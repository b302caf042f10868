"""``appca data``: what there is to open, what is in it, and the same as another kind of file."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from appca.commands import parsing, writing
from appca.commands.opening import opened_with_gaps
from appca.commands.terminal import say
from appca.data.dataset import Dataset
from appca.data.sources.builtin import SOURCES
from appca.storage.wording import counted

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES = (
    "python -m appca data",
    "python -m appca data measurements.csv --label kind --out measurements.parquet",
    "python -m appca data faces --option 'size=[16,16]' --out faces.npz",
)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "list the built-in data sets, or look into data and write them to a file"
    parser = parsing.command(commands, "data", text, EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("data", nargs="*", metavar="DATA", help=parsing.DATA_HELP)
    parsing.add_reading(parser, missing="kept")
    parser.add_argument(
        "--out", type=Path, help=f"{writing.OUT_HELP}; missing cells stay missing in it"
    )


def run(options: argparse.Namespace) -> None:
    """List data sets, or describe and write one."""
    if not options.data:
        for source in SOURCES.values():
            names = ", ".join(option.name for option in source.options)
            note = f" [{names}]" if names else ""
            size = f"{source.rows} x {source.features}"
            say(f"{source.key:14} {size:12} {source.description}{note}")
        return
    writing.check_place(options.out)
    dataset = opened_with_gaps(options)
    say(f"{dataset.name}: {dataset.n_rows} rows, {dataset.n_features} features")
    say(f"labels: {', '.join(dataset.labels) or 'none'}; digest {dataset.digest[:12]}")
    if dataset.missing is not None:
        say(f"{counted(dataset.n_missing, 'missing cell')}, kept as they are")
    if options.out:
        writing.write(
            options.out,
            lambda: table_of(dataset),
            lambda: {"X": dataset.with_gaps(), **writing.identity(dataset)},
        )


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
