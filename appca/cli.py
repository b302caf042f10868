"""The command line."""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Collection, Sequence

from appca import __version__
from appca.commands import app, data, demo, fit, home, page, paper, parsing, project
from appca.commands.terminal import Manner, clear, say, speaking
from appca.words import TOO_MUCH, naming_extra, printable, shortened

GOOD, REFUSED, USAGE = 0, 1, parsing.USAGE
INTERRUPTED, NOBODY_READS = 130, 141
COMMANDS = (app, data, fit, project, home, demo, page, paper)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code.

    0: success; 1: refused input, with one sentence, or damage found by `check`; 2: an invalid
    command line, with one sentence; 130: Ctrl-C; 141: the reader of the output, such as ``head``,
    has closed the pipe.
    """
    words = sys.argv[1:] if arguments is None else arguments
    parser, names = _parser()
    if not words or words[0] not in (*names, "-h", "--help", "--version"):
        words = [app.NAME, *words]  # `appca DATA` and `appca` open the app
    options = parser.parse_args(words)
    manner = Manner(options.quiet, options.json or parsing.is_piped(options))
    with speaking(manner), warnings.catch_warnings():
        warnings.showwarning = _say_warning
        return _run(options)


def _say_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a fit's warnings, except how it ended, which `fit` prints itself."""
    if category.__name__ != "ConvergenceWarning":
        clear()
        say(f"warning: {message}")


def _run(options: argparse.Namespace) -> int:
    try:
        parsing.check_output(options)
        with naming_extra():
            fields = options.run(options)
        if options.json:
            json.dump(fields, sys.stdout, ensure_ascii=False, allow_nan=False)
            sys.stdout.write("\n")
        sys.stdout.flush()
    except ValueError as error:
        code = USAGE if isinstance(error, parsing.UsageError) else REFUSED
        return _refuse(" ".join(str(error).split()), code)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)  # Python's flush at exit would also fail
        os.dup2(nowhere, sys.stdout.fileno())
        return NOBODY_READS
    except OSError as error:
        name = shortened(error.filename, 80) if error.filename else "A file"
        return _refuse(f"{name}: {error.strerror or error}.")
    except MemoryError:
        return _refuse(TOO_MUCH)
    except KeyboardInterrupt:
        clear()
        return INTERRUPTED
    return int(getattr(options, "code", GOOD))


def _parser() -> tuple[parsing.Parser, Collection[str]]:
    """Return the parser and the names of the commands."""
    parser = parsing.Parser(
        prog="appca",
        description="Adaptive PPCA: `appca` opens the app, `appca DATA` opens it on data.",
        epilog="`appca COMMAND --help` shows examples. Exit codes: 0 success, 1 the input "
        "was refused, 2 the command line was wrong.",
    )
    parser.add_argument("--version", action="version", version=f"appca {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=parsing.Parser)
    for command in COMMANDS:
        command.add(commands)
    return parser, commands.choices


def _refuse(sentence: str, code: int = REFUSED) -> int:
    clear()
    sys.stderr.write(f"appca: {printable(sentence)}\n")
    return code
