"""``appca paper``: reproduce tables and figures of the paper."""

import argparse
from pathlib import Path
from typing import Any

from appca.commands import parsing
from appca.commands.terminal import say, show_share
from appca.runs.home import home
from appca.studies.catalogue import STUDIES

EXAMPLES = (
    "python -m appca paper z-priors --quick",
    "python -m appca paper z-priors --set n_rows=100 --out results",
    "python -m appca paper --ship",
    "python -m appca paper --document docs/paper.md",
)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "reproduce the tables and figures of the paper"
    parser = parsing.command(commands, "paper", text, EXAMPLES, run)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("names", nargs="*", default=[], metavar="NAME", help=", ".join(STUDIES))
    parsing.add_flag(which, "--all", "reproduce everything that NAME can name")
    which.add_argument(
        "--document",
        type=Path,
        metavar="FILE",
        help="compute nothing; write the results that come with the package to FILE, as a page of "
        "Markdown (default: no)",
    )
    text = "store the results in the package; without NAME, those of all studies"
    parsing.add_flag(parser, "--ship", text)
    size = parser.add_mutually_exclusive_group()
    parser.set_defaults(size="default")
    for name, meaning in (
        ("quick", "smaller studies, for a first look (default: no)"),
        ("full", "more data sets and draws (default: no)"),
    ):
        size.add_argument(f"--{name}", action="store_const", dest="size", const=name, help=meaning)
    parsing.add_settings(
        parser, "--set", "another value of an option, such as seeds=3 (default: the study's own)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for tables (CSV) and figures (HTML) (default: nothing is written)",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Compute, print, store and write results, or write stored results."""
    from appca.studies.report import paper, write_document
    from appca.studies.store import ShippedResults, StudyStore

    changes = dict(options.set)
    msg = "one of the arguments NAME --all --ship --document is required"
    is_told = options.names or options.all or options.ship or options.document
    parsing.wrong_if(not is_told, msg)
    if options.document is not None:
        more = changes or options.out is not None or options.size != "default" or options.ship
        msg = "--document computes nothing; leave out --quick, --full, --set, --ship and --out."
        parsing.wrong_if(more, msg)
        write_document(options.document, say)
        return {"experiments": [], "document": str(options.document), "folder": None}
    store = ShippedResults() if options.ship else StudyStore(home())
    paper(options.names, options.size, changes, store, options.out, say, show_share)
    folder = None if options.out is None else str(options.out)
    return {"experiments": options.names or list(STUDIES), "document": None, "folder": folder}
