"""Arguments that several commands share, and help that ends with examples."""

import argparse
import json
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from appca.data.readers.intake import MISSING_CHOICES

BAD_INPUT = 2
DATA_HELP = (
    "a built-in data set (see `data`), a file (CSV, TSV, Parquet, NPY, NPZ, MAT, IDX, NIfTI, zip "
    "of images), several images, or a folder of them"
)


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Write the sentence and leave with exit code 2."""
        self.exit(BAD_INPUT, f"{self.prog}: {message.rstrip('.')}; see {self.prog} --help.\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def command(commands: Commands, name: str, text: str, examples: Sequence[str]) -> Parser:
    """Add a command whose help ends with examples."""
    lines = "\n".join(f"  {example}" for example in examples)
    return commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"examples:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_reading(parser: argparse.ArgumentParser, missing: str = "refuse") -> None:
    """Add what says how a file is read; `missing` is what happens to gaps by default."""
    group = parser.add_argument_group("how to read DATA")
    add_settings(group, "--option", "an option of the data, such as n=1000 or size=[32,32]")
    group.add_argument(
        "--missing", choices=MISSING_CHOICES, help=f"what to do with missing cells ({missing})"
    )
    for flag, text in (
        ("--label", "a column that names classes"),
        ("--id", "the column that names rows"),
        ("--ignore", "a column to leave out"),
    ):
        group.add_argument(flag, action="append", default=[], metavar="COLUMN", help=text)


def add_settings(parser: "argparse._ActionsContainer", flag: str, text: str) -> None:
    """Add an option that takes NAME=VALUE, as often as wanted."""
    parser.add_argument(
        flag, action="append", default=[], type=pair, metavar="NAME=VALUE", help=text
    )


def pair(text: str) -> tuple[str, object]:
    """Take NAME=VALUE apart."""
    name, equals, given = text.partition("=")
    if not equals or not name:
        msg = f"“{text}” must be of the form name=value"
        raise argparse.ArgumentTypeError(msg)
    return name.strip(), value(given)


def value(text: str) -> object:
    """Read a value as JSON, else as a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
