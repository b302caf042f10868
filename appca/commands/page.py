"""``appca page``: aPPCA in one HTML file that fits without a server or a network."""

import argparse
import base64
from pathlib import Path
from typing import Any

import numpy as np

from appca.commands import parsing, writing
from appca.data.sources import LICENCES, load
from appca.plots import style
from appca.runs.run import defaults

EXAMPLES = ("python -m appca page appca.html",)
DATA = "digits"


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "write one page that fits aPPCA in the browser, to the digits or to files dropped on it"
    parser = parsing.command(commands, "page", text, EXAMPLES, run)
    parser.add_argument("out", type=Path, metavar="OUT", help="the .html file to write")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Write the page."""
    writing.check_file(options.out, [writing.PAGE])
    content = live_page()
    return {"written": writing.keep(options.out, content), "bytes": len(content)}


def live_page() -> bytes:
    """Return the page, which includes the digits."""
    from appca.canvas.html import JS, closed_bundle, html_page
    from appca.plots.components import DARK, LIGHT

    dataset = load(DATA)
    classes = {name: dataset.classes(name) for name in dataset.labels}
    note = ". ".join(filter(None, (dataset.provenance.get("citation"), LICENCES.get(DATA))))
    levels = style.viridis(style.LEVELS)
    values = base64.b64encode(np.ascontiguousarray(dataset.X).tobytes()).decode()
    look: dict[str, Any] = {"few": style.CATEGORICAL, "many": style.MANY, "shapes": style.SHAPES}
    look |= {"ramp": levels, "missing": style.MISSING, "light": LIGHT, "dark": DARK}
    contents: dict[str, Any] = {"name": dataset.name, "values": values, "names": None, "note": note}
    contents |= {"n": dataset.n_rows, "d": dataset.n_features, "shape": dataset.image_shape}
    contents |= {"divide": dataset.image_range[1], "ids": dataset.ids.tolist()}
    contents |= {"provenance": dataset.provenance, "look": look | {"settings": defaults("aPPCA")}}
    contents["labels"] = [
        {"name": name, "names": names, "codes": codes.tolist()}
        for name, (names, codes) in classes.items()
    ]
    code = closed_bundle(JS / "live" / "worker.js")
    worker = f'<script type="text/plain" id="worker">{code}</script>'
    return html_page(JS / "live.js", dataset.name, contents, note, worker=worker)
