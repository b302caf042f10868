"""``appca codes``: the canvas of any sparse code, as one page for a browser."""

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from appca.commands import parsing, writing
from appca.commands.terminal import say
from appca.words.errors import InputError

EXAMPLES = (
    "python -m appca codes features.h5",
    "python -m appca codes codes.npz --out picture.html --no-browser",
)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "show the sparse codes of any model, such as a sparse autoencoder"
    parser = parsing.command(commands, "codes", text, EXAMPLES, run)
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="HDF5 or NPZ with top_indices and top_acts, or indices and values, (N, L): the "
        "components that each row uses, counted from 0, and their values",
    )
    writing.add_page(parser, "FILE")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Read the codes, write the page and open it."""
    path = options.out or Path(f"{options.file.stem}{writing.PAGE}")
    writing.check_file(path, [writing.PAGE])
    if not options.file.is_file():
        msg = f"There is no file “{options.file}”; name an HDF5 or NPZ file of codes."
        raise InputError(msg)
    from appca.canvas.codes import codes_of, rows_of_codes, scene_of_codes
    from appca.canvas.file import picture_page
    from appca.data.readers.sparse.codes import open_codes

    codes = codes_of(open_codes(options.file))
    n, most = codes.slots.shape
    say(f"{n:,} rows, {codes.n_components:,} components, at most {most} used by a row")
    scene = scene_of_codes(codes, rows_of_codes(codes, None, None, None), {})
    written = writing.keep(path, picture_page([scene], options.file.stem, ""))
    if not options.no_browser:
        webbrowser.open(path.resolve().as_uri())
    return {"rows": n, "components": codes.n_components, "most_used": most, "written": written}
