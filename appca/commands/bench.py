"""``appca bench``: time, memory, error and likelihood of the models and others, as a table."""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from appca.commands import parsing
from appca.commands.terminal import say
from appca.words.errors import InputError
from appca.words.wording import shortened

ROOT = Path(__file__).resolve().parents[2]  # of the project, in a checkout
RESULTS = Path("benchmarks", "results")
EXAMPLES = (
    "python -m appca bench --quick --rounds 1 --methods appca_em,fa",
    "python -m appca bench --data COIL-20 --minutes 10 --out results",
)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "compare the models with others on this computer, as `python -m benchmarks.table` does"
    parser = parsing.command(commands, "bench", text, EXAMPLES, run)
    parser.add_argument(
        "what",
        nargs="?",
        choices=("table", "rivals"),
        default="table",
        help="time and memory, or the comparison with mixtures and k-subspaces (default: table)",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="two small data sets only (default: no)")
    size.add_argument("--large", action="store_true", help="also 215,302 x 989 (default: no)")
    parser.add_argument("--rounds", type=int, help="fits of each method (default: 3)")
    parser.add_argument("--minutes", type=float, help="time limit for everything (default: 40)")
    parser.add_argument(
        "--data",
        metavar="NAME",
        help="only data sets whose name contains this; for rivals, a list A,B (default: all)",
    )
    parser.add_argument("--methods", metavar="A,B", help="only these and PCA (default: all)")
    parser.add_argument(
        "--out", type=Path, help=f"folder for the table (default: {RESULTS.as_posix()})"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure in a process of its own, which writes to the same terminal, and say where it is."""
    _check(options)
    words = [f"--{name}" for name in ("quick", "large") if getattr(options, name)]
    for name in ("rounds", "minutes", "data", "methods"):
        value = getattr(options, name)
        if value is not None:
            words.append(f"--{name}={value}")
    if options.out is not None:
        words.append(f"--out={options.out.resolve()}")
    command = [sys.executable, "-m", f"benchmarks.{options.what}", *words]
    stdout: Any = None
    if options.quiet:
        stdout = subprocess.DEVNULL
    elif options.json:
        stdout = sys.stderr
    code = subprocess.run(command, cwd=ROOT, check=False, stdout=stdout).returncode
    if code:
        msg = (
            f"The benchmarks ended with exit code {code} and without a table; correct what the "
            "lines above name."
        )
        raise InputError(msg)
    folder = options.out or ROOT / RESULTS
    say(f"table in {folder}")
    return {"folder": str(folder)}


def _check(options: argparse.Namespace) -> None:
    """Refuse what cannot be measured, before anything is begun."""
    if not (ROOT / "benchmarks" / "table.py").is_file():
        msg = (
            f"{shortened(ROOT, 80)} has no folder “benchmarks”, which an installed package lacks "
            "and `bench` runs; start it in a checkout of the project."
        )
        raise InputError(msg)
    for name, lowest, rule in (("rounds", 1, "at least 1"), ("minutes", 1e-9, "above 0")):
        value = getattr(options, name)
        if value is not None and not value >= lowest:
            msg = f"--{name} must be {rule}; got {value}: raise it or leave it out."
            raise parsing.UsageError(msg)
    for name in ("quick", "large", "rounds", "minutes", "methods"):
        if options.what == "rivals" and getattr(options, name):
            msg = f"--{name} is for `bench table`; `bench rivals` takes --data and --out."
            raise parsing.UsageError(msg)
