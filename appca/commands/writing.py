"""Output files of a command: the extension sets the format; no file is left incomplete."""

import argparse
import io
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.analysis.tables import csv_bytes, npz_of
from appca.annotated_file import STORE, ending_of, with_fit
from appca.commands import parsing
from appca.commands.terminal import say
from appca.data.dataset import Dataset
from appca.runs.model_file import annotated_fit
from appca.runs.run import FitResult, RunConfig
from appca.storage import files
from appca.words import OTHER, refuse_if, storing

if TYPE_CHECKING:
    import pandas as pd

KINDS, PAGE = (".csv", ".parquet", ".npz"), ".html"
PACKAGES = {
    ".csv": ("pandas",),
    ".parquet": ("pandas", "pyarrow"),
    ".h5ad": ("h5py",),
    ".zarr": ("h5py", "zarr"),
    ".zip": ("h5py", "zarr"),
    PAGE: ("PIL",),
}
OUT_HELP = "file to write, ending in .csv, .parquet or .npz, or - for standard output"


def add_out(parser: argparse.ArgumentParser, kind: str, more: str = "") -> None:
    """Add --out and --format; `kind` is the default format for standard output."""
    parser.add_argument("--out", type=Path, help=f"{OUT_HELP}{more} (default: nothing is written)")
    parser.add_argument(
        "--format",
        choices=[suffix[1:] for suffix in KINDS],
        help=f"the format of --out -, which has no file name (default: {kind[1:]})",
    )
    parser.set_defaults(default_kind=kind)


def check_place(options: argparse.Namespace, more: tuple[str, ...] = ()) -> None:
    """Check that the output can be written, before anything is computed.

    `more` are additional allowed extensions. Raises InputError for any other extension, or if the
    folder is missing or read-only; ModuleNotFoundError if the package for this format is not
    installed.
    """
    path = options.out
    if getattr(options, "html", None) is not None:
        check_file(options.html, [PAGE])
    msg = "--format needs --out -; the extension of a file sets its format."
    parsing.wrong_if(options.format is not None and not parsing.is_piped(options), msg)
    if path is None:
        return
    if parsing.is_piped(options):
        msg = f"{_kind(options)} is not text; write `--out - > FILE`, or name a file."
        parsing.wrong_if(_kind(options) != ".csv" and sys.stdout.isatty(), msg)
        _check_packages(_kind(options))
        return
    check_file(path, (*KINDS, *more))


def check_file(path: Path, kinds: Sequence[str]) -> None:
    """Check that a file has an allowed extension and can be written; see `check_place`."""
    msg = f"The output's name must end in {', '.join(kinds)}; got “{path.name}”."
    parsing.wrong_if(path.suffix not in kinds, msg)
    msg = f"The folder of the output must exist; there is no “{path.parent}”."
    refuse_if(not path.parent.is_dir(), msg)
    msg = f"The output must be a file; “{path}” is a folder, so name a file in it."
    refuse_if(path.is_dir() and path.suffix != ".zarr", msg)
    _check_packages(path.suffix)
    with storing(f"“{path.name}”", path.parent, OTHER):
        files.check_place(path)


def _check_packages(kind: str) -> None:
    for package in PACKAGES.get(kind, ()):
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)


def write(
    options: argparse.Namespace,
    table: Callable[[], "pd.DataFrame"],
    arrays: Callable[[], Mapping[str, np.ndarray]],
) -> str | None:
    """Write a table or arrays to --out, if given; return the file's name.

    An existing file is replaced atomically. Raises InputError if the file cannot be written.
    """
    if (path := options.out) is None:
        return None
    kind = _kind(options)
    if kind == ".npz":
        content = npz_of(arrays())
    else:
        content = csv_bytes(table()) if kind == ".csv" else table().to_parquet(index=False)
    if parsing.is_piped(options):
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return None
    return keep(path, content)


def keep(path: Path, content: bytes | str) -> str:
    """Write a complete file, print its name and return it; InputError if writing fails."""
    with storing(f"“{path.name}”", path.parent, OTHER):
        files.write(path, content)
    say(f"wrote {path}, {len(content)} bytes")
    return str(path)


def is_annotated(options: argparse.Namespace) -> bool:
    """Whether --out is an annotated data file; UsageError unless DATA is one, too."""
    ending = None if options.out is None else ending_of(options.out.name)
    if ending is None:
        return False
    msg = f"--out FILE{ending} adds a fit to annotated data, so DATA must be one {ending} "
    msg += "file; write .csv, .parquet or .npz instead."
    parsing.wrong_if(len(options.data) != 1 or ending_of(options.data[0]) != ending, msg)
    return True


def write_annotated(
    options: argparse.Namespace, dataset: Dataset, config: RunConfig, result: FitResult
) -> str:
    """Write DATA with scores, loadings, supports and the model: .zarr as a folder, else a file."""
    source, path = Path(options.data[0]), options.out
    content = with_fit(source.name, source, dataset, annotated_fit(config, result.fitted))
    if path.suffix != STORE:
        return keep(path, content)
    with (
        storing(f"“{path.name}”", path.parent, OTHER),
        files.draft_folder(path.parent) as draft,
        zipfile.ZipFile(io.BytesIO(content)) as archive,
    ):
        archive.extractall(draft)
        files.replace_folder(draft, path)
    say(f"wrote {path}, {len(content)} bytes")
    return str(path)


def add_page(parser: argparse.ArgumentParser, source: str) -> None:
    """Add the options of commands that write a page and open it."""
    text = f"the .html file to write (default: in this folder, named after {source})"
    parser.add_argument("--out", type=Path, metavar="PAGE", help=text)
    text = "do not open the page (default: open it)"
    parser.add_argument("--no-browser", action="store_true", help=text)


def write_page(path: Path, dataset: Dataset, fits: Sequence[FittedRun], note: str = "") -> str:
    """Write the picture of fits as one page, print its name and return it."""
    from appca.canvas import from_model, html

    html.write_page(path, from_model.GivenRows(dataset, None), fits, {}, dataset.name, note)
    say(f"wrote {path}, {path.stat().st_size} bytes")
    return str(path)


def identity(dataset: Dataset) -> dict[str, np.ndarray]:
    """Return ids and labels as arrays."""
    labels = {f"label_{i}": column for i, column in enumerate(dataset.labels.values())}
    return {"ids": dataset.ids, "label_names": np.array(list(dataset.labels), dtype="U"), **labels}


def _kind(options: argparse.Namespace) -> str:
    if not parsing.is_piped(options):
        return str(options.out.suffix)
    return f".{options.format}" if options.format else str(options.default_kind)
