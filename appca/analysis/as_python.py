"""A run as a Python script that makes the same arrays again, to the bit on the same machine."""

from collections.abc import Mapping
from keyword import iskeyword
from pathlib import PurePath
from pprint import pformat
from typing import Any, NamedTuple

from appca.data.dataset import Dataset
from appca.data.sources import SOURCES
from appca.words import shortened

MOST_NAMED = 6  # files
WIDTH = 88  # columns; longer calls are broken into lines


class Recipe(NamedTuple):
    """What a run was made with, beside the data."""

    run: str  # its id
    title: str
    settings: Mapping[str, Any]  # of a `RunConfig` to fit
    threads: int  # of BLAS
    log_likelihood: float  # of the run, nats
    imported: bool = False  # it came in a file: nobody here knows that these settings make it
    order: tuple[int, ...] = ()  # the row, from 0, that each component has after the fit; () as is
    signs: tuple[int, ...] = ()  # -1 where the app shows a component turned round; () turns none


def script(dataset: Dataset, recipe: Recipe) -> str:
    """Return the text of the script.

    It ends with `fitted`, a `FittedRun`, and the arrays `components`, `mean`, `scores`, `active` as
    the app shows them.

    The provenance of the data set says how it is loaded: a built-in source by name and options, a
    file by a path to fill in, anything else from the app's own copy.
    """
    load_import, load_lines = _loading(dataset)
    name = shortened(dataset.name, WIDTH)  # a text from a file must not leave the comment
    same = "The same machine and versions give the same numbers to the bit."
    if recipe.imported:
        same = "It came in a session file; fitted again by its settings, the numbers may differ."
    paths = "from pathlib import Path\n" if load_import.endswith("read_many") else ""
    fit_lines = [
        f"config = RunConfig.from_record(\n{pformat(dict(recipe.settings), width=WIDTH)}\n)",
        "fitted = fit_run(dataset, config).fitted",
    ]
    if recipe.order and (list(recipe.order) != sorted(recipe.order) or -1 in recipe.signs):
        fit_lines += [
            f"order, signs = {list(recipe.order)}, {list(recipe.signs)}",
            "fitted = fitted.arranged(order, signs)  # as the app shows the components",
        ]
    load, fit = "\n".join(load_lines), "\n".join(fit_lines)
    return f"""\
# Fit {recipe.run}: {recipe.title}, of {name}.
# {same}

import os
{paths}
{load_import}
from appca.runs.run import RunConfig
from appca.runs.fit import fit_run

os.environ["OMP_NUM_THREADS"] = "{recipe.threads}"  # other numbers of threads round differently

{load}

expected = {dataset.digest!r}
assert dataset.digest == expected, "these are not the data of the fit"

{fit}

components, mean = fitted.components, fitted.mean
scores, active = fitted.scores, fitted.active
print(fitted.log_likelihood_rows.sum(), 'nats; the fit had {recipe.log_likelihood!r}')
"""


def _loading(dataset: Dataset) -> tuple[str, list[str]]:
    """Import and statements that make `dataset`."""
    source = dataset.provenance.get("source")
    if source in SOURCES:
        usual = {option.name: option.default for option in SOURCES[source].options}
        options = dataset.provenance.get("options", {})
        accepted = {name: value for name, value in options.items() if name in usual}
        special = {name: value for name, value in accepted.items() if value != usual[name]}
        return "from appca.data.sources import load", [
            _call("dataset = load", special, first=repr(source))
        ]
    files = list(dataset.provenance.get("files", []))
    if "sample" in dataset.provenance and len(files) == 1:
        return "from appca.data.readers.process import read_sample", _reading(dataset)
    if source == "file" and files and not files[0].endswith(".zarr"):  # a folder
        name = "read" if len(files) == 1 else "read_many"
        return f"from appca.data.readers import {name}", _reading(dataset)
    copy = [
        "# The app's own copy of the data, on the machine of the fit.",
        f"dataset = DatasetStore(home()).get({dataset.digest!r})",
    ]
    imports = "from appca.data.store import DatasetStore\nfrom appca.runs.home import home"
    return imports, copy


def _reading(dataset: Dataset) -> list[str]:
    kept = dataset.provenance
    options_read = {key: _from_json(value) for key, value in kept.get("options", {}).items()}
    options = reading_options(kept.get("report", {}), dataset) | options_read
    options = {name: value for name, value in options.items() if _is_keyword(name)}
    files = [str(name) for name in kept["files"]]
    if len(files) > 1:
        return _reading_many(files, options)
    name = PurePath(files[0]).name
    first, reader = f"{name!r}, path", "read"
    if "sample" in kept:
        first, reader = f"[({first})]", "read_sample"
    return [
        f"path = {name!r}  # write here where the file lies",
        _call(f"dataset = {reader}", options, first=first),
    ]


def _reading_many(names: list[str], options: dict[str, Any]) -> list[str]:
    """Name the files where they are few; else they are all those of a folder."""
    paths = "sorted(path for path in folder.rglob('*') if path.is_file())"
    if len(names) <= MOST_NAMED:
        paths = f"[folder / name for name in {[PurePath(name).name for name in names]!r}]"
    return [
        'folder = Path(".")  # write here where the files lie',
        f"paths = {paths}",
        "files = [(path.relative_to(folder).as_posix(), path) for path in paths]",
        _call("dataset = read_many", options, first="files"),
    ]


def _is_keyword(name: str) -> bool:
    """Whether a name from a file can stand for an option in a call, and for nothing else."""
    return name.isascii() and name.isidentifier() and not iskeyword(name)


def _from_json(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def reading_options(report: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Return the options a file was read with, as far as the report of its reader tells them."""
    options: dict[str, Any] = {}
    if report.get("roles"):
        options["roles"] = dict(report["roles"])
    for key, choice in (("modelled", "model"), ("filled", "mean"), ("dropped", "drop")):
        if report.get(key):
            options["missing"] = choice
    if "files" in report and dataset.image_shape is not None:  # a zip of images
        options["size"] = tuple(dataset.image_shape[:2])
        options["broken"] = "skip" if report.get("skipped") else "refuse"
        options["colour"] = "keep" if len(dataset.image_shape) == 3 else "grey"
    return options


def _call(function: str, keywords: Mapping[str, Any], first: str = "") -> str:
    """Write a call on one line, or with one argument a line where that is too long."""
    arguments = [first] * bool(first) + [f"{name}={value!r}" for name, value in keywords.items()]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), ")"])
