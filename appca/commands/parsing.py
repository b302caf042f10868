"""Arguments shared by commands, and help text that ends with examples."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

from appca.data.readers.intake import MISSING_CHOICES
from appca.runs.run import LEARNED
from appca.words import InputError, shortened

USAGE = 2
PIPE = "-"  # file name of standard input or standard output
DATA_HELP = (
    "a built-in data set (see `data`), a file (CSV, TSV, XLSX, Parquet, NPY, NPZ, MAT, HDF5, H5AD, "
    "Zarr, MTX, IDX, NIfTI, ZIP of images), several images, a folder of them, or - for one file of "
    "standard input"
)
_FLAGS = {"n_components": "-K", "max_components": "-K", "n_active": "-L", "random_state": "--seed"}
_FLAGS |= {name: f"--{name}" for name in ("divide", "scale", "pca", "prepare")}
_NAMES = re.compile(r"“[^”]*”|\b(" + "|".join(_FLAGS) + r")\b(?=[ =.,:;])")


_WRONG = (TypeError, OverflowError)  # raised by Python for unexpected values


class UsageError(InputError):
    """The command line is invalid, whatever the data."""


def wrong_if(is_wrong: object, sentence: str) -> None:
    """Raise a UsageError with this one-sentence message if the command line breaks a rule."""
    if is_wrong:
        raise UsageError(sentence)


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Print the sentence and exit with code 2."""
        self.exit(USAGE, f"{self.prog}: {message.rstrip('.')}; see {self.prog} --help.\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def command(
    commands: Commands,
    name: str,
    text: str,
    examples: Sequence[str],
    run: Callable[[argparse.Namespace], dict[str, Any]],
) -> Parser:
    """Add a command whose help ends with examples, with the options of all commands."""
    lines = "\n".join(f"  {example}" for example in examples)
    parser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"examples:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    group = parser.add_argument_group("output")
    text = "print one JSON object on standard output, and the text on standard error; "
    add_flag(group, "--json", text + "docs/command_line.md lists the fields")
    group.add_argument("-q", "--quiet", action="store_true", help="print errors only (default: no)")
    return parser


def add_flag(parser: "argparse._ActionsContainer", flag: str, text: str) -> None:
    """Add an option that is off by default."""
    parser.add_argument(flag, action="store_true", help=f"{text} (default: no)")


def is_piped(options: argparse.Namespace) -> bool:
    """Whether the result goes to standard output."""
    return str(getattr(options, "out", None)) == PIPE


def check_output(options: argparse.Namespace) -> None:
    """Raise UsageError if two results would go to standard output."""
    msg = "--json and --out - both write to standard output; give --out the name of a file."
    wrong_if(options.json and is_piped(options), msg)


def add_reading(parser: argparse.ArgumentParser, missing: str = "refuse") -> None:
    """Add options for reading a file; `missing` is the default treatment of missing cells."""
    group = parser.add_argument_group("how to read DATA")
    text = "an option of the reader, such as n=1000 or size=[32,32] (default: the reader's)"
    add_settings(group, "--option", text)
    group.add_argument(
        "--missing",
        choices=MISSING_CHOICES,
        help=f"what to do with missing cells (default: {missing})",
    )
    group.add_argument(
        "--na-values",
        action="append",
        default=[],
        metavar="VALUE",
        help="a further value of missing cells, such as -999 (default: NA, null, -, …)",
    )
    for flag, text in (
        ("--label", "a column of classes (default: columns of words, or named class, target …)"),
        (
            "--id",
            "the column of row names (default: named like id, unique words, or running numbers)",
        ),
        ("--feature", "a column of numbers to fit (default: columns of numbers)"),
        ("--ignore", "a column to leave out (default: dates, long text, columns of one value)"),
    ):
        group.add_argument(flag, action="append", default=[], metavar="COLUMN", help=text)

    for flag, text in (
        ("--where", "take rows that meet this, such as 'alcohol>12' or kind=a,b (default: all)"),
        ("--drop", "leave out rows that meet this, such as id=174 (default: none)"),
    ):
        group.add_argument(flag, action="append", default=[], metavar="CONDITION", help=text)


def add_settings(parser: "argparse._ActionsContainer", flag: str, text: str) -> None:
    """Add a repeatable option that takes NAME=VALUE."""
    parser.add_argument(
        flag, action="append", default=[], type=pair, metavar="NAME=VALUE", help=text
    )


def size(text: str) -> int | str:
    """Parse the number of components per row, or “learned”."""
    if text == LEARNED:
        return text
    try:
        return int(text)
    except ValueError as error:
        msg = f"“{text}” must be a whole number or “{LEARNED}”"
        raise argparse.ArgumentTypeError(msg) from error


def pair(text: str) -> tuple[str, object]:
    """Split NAME=VALUE."""
    name, equals, written = text.partition("=")
    if not equals or not name:
        msg = f"“{text}” must be of the form name=value"
        raise argparse.ArgumentTypeError(msg)
    return name.strip(), value(written)


def value(text: str) -> object:
    """Parse a value as JSON, else keep it as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@contextmanager
def in_flags(settings: Collection[str] | None = None) -> Iterator[None]:
    """Rename settings in a model's errors to the typed options: -K, not n_components.

    Raises UsageError for an error that begins with the name of a setting in `settings`, or for any
    error if `settings` is empty; InputError for other errors, which concern the data.
    """
    try:
        yield
    except _WRONG as error:
        msg = f"A value has the wrong type for its setting ({error}); see --set and --help."
        raise UsageError(msg) from error
    except ValueError as error:
        said = _NAMES.sub(lambda match: _FLAGS.get(match[0], match[0]), str(error))
        usage = settings is None or str(error).partition(" ")[0] in settings
        kind = UsageError if usage else InputError
        raise kind(re.sub(r"(-[KL])=", r"\1 ", said)) from error


@contextmanager
def options_of_data(options: argparse.Namespace) -> Iterator[None]:
    """Raise UsageError for values of --option whose type the reader does not accept."""
    try:
        yield
    except _WRONG as error:
        written = ", ".join(f"{name}={json.dumps(value)}" for name, value in options.option)
        if not written:
            raise
        msg = f"--option {shortened(written, 120)} has the wrong type for the option "
        msg += f"({shortened(error, 120)}); write a number, a text or a list such as [32,32]."
        raise InputError(msg) from error


def from_pipe(limit: int) -> bytes:
    """Return standard input, at most limit + 1 bytes; UsageError if it is a terminal."""
    msg = "- reads standard input, which is empty; name a file, or write `cat FILE | ...`."
    wrong_if(sys.stdin is None or sys.stdin.isatty(), msg)
    return sys.stdin.buffer.read(limit + 1)
