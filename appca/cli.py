"""The command line: the same code as the pages, on built-in data and files."""

import os
import sys
from collections.abc import Sequence

from appca.commands import bench, check, data, fit, paper, parsing, project, runs
from appca.commands.terminal import clear
from appca.storage.errors import TOO_MUCH
from appca.storage.wording import shortened

BAD_INPUT, INTERRUPTED, NOBODY_READS = parsing.BAD_INPUT, 130, 141
COMMANDS = (data, fit, project, runs, check, paper, bench)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code.

    0; 1 where `check` found damage; 2 after one sentence about bad input; 130 after Ctrl-C; 141
    when what reads the output, such as ``head``, has gone.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except ValueError as error:
        return _refuse(" ".join(str(error).split()))
    except BrokenPipeError:
        _close_output()
        return NOBODY_READS
    except OSError as error:
        name = shortened(error.filename, 80) if error.filename else "A file"
        return _refuse(f"{name}: {error.strerror or error}.")
    except MemoryError:
        return _refuse(TOO_MUCH)
    except KeyboardInterrupt:
        clear()
        return INTERRUPTED
    return getattr(options, "code", 0)


def _parser() -> parsing.Parser:
    parser = parsing.Parser(
        prog="appca",
        description="Adaptive probabilistic PCA on the command line.",
        epilog="`python -m appca COMMAND --help` shows examples.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=parsing.Parser)
    for command in COMMANDS:
        command.add(commands)
    return parser


def _refuse(sentence: str) -> int:
    clear()
    sys.stderr.write(f"appca: {sentence}\n")
    return BAD_INPUT


def _close_output() -> None:
    """Let the end of the process find nothing to write: it would complain again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
