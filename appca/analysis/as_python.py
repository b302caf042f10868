"""A run as a Python script that reproduces its arrays, bit for bit on the same machine."""

from collections.abc import Mapping
from keyword import iskeyword
from pathlib import PurePath
from pprint import pformat
from typing import Any, NamedTuple

from appca.data.dataset import Dataset
from appca.data.sources import SOURCES
from appca.words import shortened

MOST_NAMED, WIDTH = 6, 88  # maximum number of listed files, and length of lines of settings


class Recipe(NamedTuple):
    """The settings of a run, without the data."""

    run: str  # its id
    title: str
    settings: Mapping[str, Any]  # settings of a `RunConfig`
    threads: int  # BLAS threads
    log_likelihood: float  # nats
    imported: bool = False  # from a session file: the settings may not reproduce it
    order: tuple[int, ...] = ()  # index of each component after the fit; () if unchanged
    signs: tuple[int, ...] = ()  # -1 where the app flips a component's sign; () flips none


def script(dataset: Dataset, recipe: Recipe) -> str:
    """Return the script; its variable `fitted` has the fit as the app shows it."""
    imports, load = _loading(dataset)
    if (left_out := dataset.provenance.get("left_out") or {}).get("ids"):
        imports = f"import numpy as np\n{imports}"
        without = f"np.isin(dataset.ids, {left_out['ids']!r}), {left_out['why']!r}"
        load += f"\n\ndataset = dataset.without({without})"
    same = "On the same machine, with the same versions, all numbers are equal to the bit."
    if recipe.imported:
        same = "This fit came in a session file; a new fit with its settings may differ."
    arranged = ""
    if recipe.order and (list(recipe.order) != sorted(recipe.order) or -1 in recipe.signs):
        arranged = f"""
order, signs = {list(recipe.order)}, {list(recipe.signs)}
fitted = fitted.arranged(order, signs)  # as the app shows the components"""
    # text from a file must not end the comment
    return f"""\
# Fit {recipe.run}: {recipe.title}, of {shortened(dataset.name, WIDTH)}.
# {same}

import os
{imports}
from appca.runs.run import RunConfig
from appca.runs.fit import fit_run

os.environ["OMP_NUM_THREADS"] = "{recipe.threads}"  # other numbers of threads round differently

{load}

expected = {dataset.digest!r}
assert dataset.digest == expected, "the fit used other data"

config = RunConfig.from_record(
{pformat(dict(recipe.settings), width=WIDTH)}
)
fitted = fit_run(dataset, config).fitted{arranged}

components, mean = fitted.components, fitted.mean
scores, active = fitted.scores, fitted.active
print(fitted.log_likelihood_rows.sum(), 'nats; the fit had {recipe.log_likelihood!r}')
"""


def _loading(dataset: Dataset) -> tuple[str, str]:
    kept = dataset.provenance
    source, options = kept.get("source"), dict(kept.get("options", {}))
    files = [str(name) for name in kept.get("files", [])]
    if kept.get("left_out") and not kept["left_out"].get("ids"):
        source, files = "", []  # the files are not enough if many rows were removed
    if source in SOURCES:
        usual = {option.name: option.default for option in SOURCES[source].options}
        special = {k: v for k, v in options.items() if k in usual and v != usual[k]}
        return "\nfrom appca.data.sources import load", _call("load", repr(source), special)
    if source != "file" or not files or files[0].endswith(".zarr"):  # a folder
        imports = "\nfrom appca.data.store import DatasetStore\nfrom appca.runs.home import home"
        about = "# The app's copy of the data, on the machine of the fit."
        return imports, f"{about}\ndataset = DatasetStore(home()).get({dataset.digest!r})"
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    paths = "sorted(path for path in folder.rglob('*') if path.is_file())"
    if len(files) <= MOST_NAMED:
        paths = f"[folder / name for name in {[PurePath(name).name for name in files]!r}]"
    imports = "from pathlib import Path\n\nfrom appca.data.readers import read_many"
    load = f"""\
folder = Path(".")  # the folder of the files
paths = {paths}
files = [(path.relative_to(folder).as_posix(), path) for path in paths]
{_call("read_many", "files", options)}"""
    return imports, load


def _call(function: str, first: str, keywords: Mapping[str, Any]) -> str:
    sound = (k for k in keywords if k.isascii() and k.isidentifier() and not iskeyword(k))
    arguments = [first, *(f"{name}={keywords[name]!r}" for name in sound)]
    return f"dataset = {function}({', '.join(arguments)})"
