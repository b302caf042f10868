"""A run as a Python script that makes the same arrays again, to the bit on the same machine."""

from collections.abc import Mapping
from keyword import iskeyword
from pathlib import PurePath
from typing import Any, NamedTuple

from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.data.sources.builtin import SOURCES
from appca.words.wording import shortened

MOST_NAMED = 6  # files
WIDTH = 88  # columns; longer calls are broken into lines


class Recipe(NamedTuple):
    """What a run was made with, beside the data."""

    run: str  # its id
    title: str
    estimator: str  # "module:class"
    parameters: Mapping[str, Any]  # keywords of the estimator
    preprocessing: Mapping[str, Any]
    stopped_at: int | None  # iterations, when it was stopped by hand
    compiled: bool  # whether the model's estimates follow every bit of a row
    threads: int  # of BLAS
    log_likelihood: float  # of the run, nats
    imported: bool = False  # it came in a file: nobody here knows that these settings make it
    order: tuple[int, ...] = ()  # the row, from 0, that each component has after the fit; () as is
    signs: tuple[int, ...] = ()  # -1 where the app shows a component turned round; () turns none


def script(dataset: Dataset, recipe: Recipe) -> str:
    """Return the text of the script.

    It ends with `model` fitted, `found` (a `Description` of all rows), and the arrays `components`,
    `mean`, `scores`, `active` as the app shows them.

    The provenance of the data set says how it is loaded: a built-in source by name and options, a
    file by a path to fill in, anything else from the app's own copy.
    """
    kind = recipe.estimator.partition(":")[2]
    load_import, load_lines = _loading(dataset)
    parts = [
        _heading(dataset, recipe),
        _imports(kind, load_import, recipe),
        f"threadpool_limits({recipe.threads})  # other numbers of threads round differently",
        "\n".join(load_lines),
        _check(dataset),
        _preprocessing(recipe.preprocessing, dataset),
        _fit(kind, recipe),
        _described(recipe),
        _arrays(recipe),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(dataset: Dataset, recipe: Recipe) -> str:
    name = shortened(dataset.name, WIDTH)  # a text from a file must not leave the comment
    same = (
        "# The same machine and versions give the same numbers to the bit."
        if not recipe.imported
        else "# It came in a session file; fitted again by its settings, the numbers may be others."
    )
    return f"# Fit {recipe.run}: {recipe.title}, of {name}.\n{same}"


def _imports(kind: str, load_import: str, recipe: Recipe) -> str:
    imports = [
        f"from appca import {kind}",
        *load_import.splitlines(),
        "from appca.data.preprocessing import Preprocessing",
    ]
    if _anew(recipe):
        imports.append("from appca.models.rows.steady_products import times")
    standard = ["import itertools"] if recipe.stopped_at is not None else []
    standard += ["from pathlib import Path"] if load_import.endswith("read_many") else []
    standard += [""] if standard else []
    others = ["import numpy as np", "from threadpoolctl import threadpool_limits"]
    return "\n".join([*standard, *others, "", *sorted(imports)])


def _loading(dataset: Dataset) -> tuple[str, list[str]]:
    """Import and statements that make `dataset`."""
    source = dataset.provenance.get("source")
    if source in SOURCES:
        usual = {option.name: option.default for option in SOURCES[source].options}
        options = dataset.provenance.get("options", {})
        accepted = {name: value for name, value in options.items() if name in usual}
        special = {name: value for name, value in accepted.items() if value != usual[name]}
        return "from appca.data.sources.builtin import load", [
            _call("dataset = load", special, first=repr(source))
        ]
    files = list(dataset.provenance.get("files", []))
    if "sample" in dataset.provenance and len(files) == 1:
        return "from appca.data.readers.sampling import read_sample", _reading(dataset)
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


def _check(dataset: Dataset) -> str:
    return (
        f"expected = {dataset.digest!r}\n"
        'assert dataset.digest == expected, "these are not the data of the fit"'
    )


def _anew(recipe: Recipe) -> bool:
    """Whether rows are reduced once more to be described, by products that never change."""
    options = Preprocessing.from_dict(dict(recipe.preprocessing))
    return recipe.compiled and options.pca is not None


def _preprocessing(options: Mapping[str, Any], dataset: Dataset) -> str:
    settings = Preprocessing.from_dict(dict(options)).to_dict()
    usual = Preprocessing().to_dict()
    special = {name: value for name, value in settings.items() if value != usual.get(name)}
    whole = dataset.missing is None
    fit = ".fit(dataset.X)" if whole else ".fit(dataset.X, missing=dataset.missing)"
    rows = "dataset.X" if whole else "dataset.with_gaps()"
    return "\n".join(
        [
            _call("preprocessing = Preprocessing", special) + fit,
            f"Y = preprocessing.transform({rows})",
        ]
    )


def _fit(kind: str, recipe: Recipe) -> str:
    keywords = {name: repr(value) for name, value in recipe.parameters.items()}
    if recipe.stopped_at is None:
        return _written("model = " + kind, keywords) + ".fit(Y)"
    stop = (
        "iterations = itertools.count(1)\n\n\n"
        "def stop(progress):\n"
        f"    if next(iterations) == {recipe.stopped_at}:  # the fit was stopped by hand then\n"
        "        raise StopIteration\n\n\n"
    )
    return stop + _written("model = " + kind, {**keywords, "callback": "stop"}) + ".fit(Y)"


def _described(recipe: Recipe) -> str:
    lines = ["found = model.describe(Y)  # what transform, allocate and score_samples say"]
    if _anew(recipe):
        again = "Y = preprocessing.transform(dataset.X, times)  # to the bit for any rows"
        lines.insert(0, again)
    return "\n".join(lines)


def _arrays(recipe: Recipe) -> str:
    order = list(recipe.order)
    plain = order == sorted(order) and -1 not in recipe.signs
    shown = (
        f"order = {order}  # as the app shows the components\n"
        f"signs = np.array({list(recipe.signs)}, np.float32)\n"
        "model.reorder(order, signs)\n"
        "found = found._replace(\n"
        "    scores=found.scores[:, order] * signs + 0.0,  # no -0.0\n"
        "    active=found.active[:, order],\n"
        "    inclusion=found.inclusion[:, order],\n"
        ")\n"
    )
    return (
        f"{'' if plain else shown}"
        "components, mean = model.components_, model.mean_\n"
        "scores, active = found.scores.astype(np.float32), found.active\n"
        f"print(found.log_likelihood.sum(), 'nats; the fit had {recipe.log_likelihood!r}')"
    )


def _call(function: str, keywords: Mapping[str, Any], first: str = "") -> str:
    return _written(function, {name: repr(value) for name, value in keywords.items()}, first)


def _written(function: str, keywords: Mapping[str, str], first: str = "") -> str:
    """Write a call on one line, or with one argument a line where that is too long."""
    arguments = [first] * bool(first) + [f"{name}={value}" for name, value in keywords.items()]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), ")"])
