"""``appca demo``: a built-in data set as a page with sliders for K and L."""

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from appca.commands import parsing, writing
from appca.commands.terminal import Meter, clear, say
from appca.data.preprocessing import suggest
from appca.data.sources import LICENCES, SOURCES, load
from appca.runs.fit import fit_run
from appca.runs.run import RunConfig, defaults

EXAMPLES = (
    "python -m appca demo wine -K 2-6 -L 1-2",
    "python -m appca demo planes -K 2-3 -L 1-2 --out planes.html --no-browser",
)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "write one page with sliders of K and L for a built-in data set"
    parser = parsing.command(commands, "demo", text, EXAMPLES, run)
    parser.add_argument(
        "data", nargs="?", default="digits", choices=SOURCES, help="(default: digits)"
    )
    for flags, numbers, meaning in (
        (("-K", "--components"), range(2, 13), "numbers of components"),
        (("-L", "--active"), range(1, 4), "numbers of components a row uses"),
    ):
        look: Any = {"type": span, "default": numbers, "metavar": "FIRST-LAST"}
        parser.add_argument(*flags, help=f"{meaning} (default: {numbers[0]}-{numbers[-1]})", **look)
    writing.add_page(parser, "DATA")


def span(text: str) -> range:
    """Parse a range such as “2-12”, or one number."""
    first, _, last = text.partition("-")
    try:
        numbers = range(int(first), int(last or first) + 1)
    except ValueError:
        numbers = range(0)
    if not numbers or numbers[0] < 1:
        msg = f"“{text}” must be a number above 0, or two with a hyphen between them, such as 2-12"
        raise argparse.ArgumentTypeError(msg)
    return numbers


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Fit each K and L, write the page and open it."""
    path = options.out or Path(f"{options.data}{writing.PAGE}")
    writing.check_file(path, [writing.PAGE])
    sizes = [(k, active) for active in options.active for k in options.components if active <= k]
    msg = f"A row uses at most K components; got -K up to {options.components[-1]} and -L from "
    msg += f"{options.active[0]}, so lower -L or raise -K."
    parsing.wrong_if(not sizes, msg)
    dataset = load(options.data)
    before, fits = suggest(dataset).to_dict(), []
    for i, (k, active) in enumerate(sizes, start=1):
        say(f"fit {i} of {len(sizes)}: K = {k}, L = {active}")
        parameters = defaults("aPPCA") | {"n_components": k, "n_active": active}
        config = RunConfig(dataset.digest, before, "aPPCA", parameters)
        with parsing.in_flags(config.parameters):
            fits.append(fit_run(dataset, config, Meter(dataset.n_rows)).fitted)
        clear()
    note = ". ".join(filter(None, (dataset.provenance.get("citation"), LICENCES.get(options.data))))
    written = writing.write_page(path, dataset, fits, note)
    if not options.no_browser:
        webbrowser.open(path.resolve().as_uri())
    return {"rows": dataset.n_rows, "fits": [list(size) for size in sizes], "written": written}
