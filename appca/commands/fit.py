"""``appca fit``: fit a model and describe every row."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from appca.commands import parsing, writing
from appca.commands.data import fields_of, lines_of
from appca.commands.opening import opened
from appca.commands.terminal import Meter, clear, say, say_facts
from appca.data.dataset import Dataset
from appca.data.preprocessing import SCALES, Preprocessing, suggest
from appca.data.store import DatasetStore
from appca.preparation import PREPARATIONS
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.model_file import about_run
from appca.runs.run import MODELS, FitResult, RunConfig, defaults
from appca.runs.store import RunStore

EXAMPLES = (
    "python -m appca fit digits -K 6 -L 2 --out digits.npz",
    "python -m appca fit measurements.csv --label kind --missing model -K 3 --out table.csv",
    "python -m appca fit faces --option 'size=[16,16]' --pca 0.95 -K 4 --store",
    "cat measurements.csv | python -m appca fit - --missing drop -K 3 --out - > model.npz",
)


PREPARING = ("prepare", "divide", "centre", "scale", "pca")
AS_THEY_ARE = "--divide 1 --no-centre --scale none"


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    parser = parsing.command(commands, "fit", "fit a model and describe every row", EXAMPLES, run)
    parser.add_argument("data", nargs="+", metavar="DATA", help=parsing.DATA_HELP)
    parsing.add_reading(parser)
    _add_model(parser)
    _add_preprocessing(parser)
    writing.add_out(parser, ".npz", "; `project` reads .npz; .h5ad or .zarr adds the fit to DATA")
    parser.add_argument(
        "--html", type=Path, help="also write the picture as one .html file (default: no)"
    )
    parsing.add_flag(parser, "--store", "store the run, so that the app shows it")


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("--model", default="aPPCA", choices=MODELS, help="(default: aPPCA)")
    sizes = {name: spec.parameters for name, spec in MODELS.items()}
    components = ", ".join(
        f"{name} {model.get('n_components', model.get('max_components'))}"
        for name, model in sizes.items()
    )
    active = ", ".join(
        f"{name} {model['n_active']}" for name, model in sizes.items() if "n_active" in model
    )
    group.add_argument(
        *("-K", "--components"),
        type=int,
        help=f"number of components; for NPPCA, isFA, fsFA the largest (default: {components})",
    )
    group.add_argument(
        *("-L", "--active"),
        type=parsing.size,
        metavar="L",
        help=f"components each row uses; aPPCA also takes “learned” (default: {active})",
    )
    choices = MODELS["aPPCA"].choices
    text = "aPPCA: one noise variance for all features, or one for each (default: shared)"
    group.add_argument("--noise", choices=choices["noise"], help=text)
    text = "aPPCA: whether each row has a learned scale (default: none)"
    group.add_argument("--row-scale", choices=choices["row_scale"], help=text)
    group.add_argument("--seed", type=int, help="random seed (default: 0)")
    text = "another setting of the model, such as n_init=5 (default: the model's)"
    parsing.add_settings(group, "--set", text)


def _add_preprocessing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("preprocessing")
    group.add_argument(
        "--prepare",
        choices=["none", *PREPARATIONS],
        help="preparation usual in a field, as `data` may propose; counts, snv, derivative, "
        "snv_derivative and tfidf then scale all features by one number (default: none)",
    )
    group.add_argument(
        "--divide",
        type=float,
        help="divide every value by this (default: the white value of images, such as 255; else 1)",
    )
    group.add_argument(
        "--centre",
        action=argparse.BooleanOptionalAction,
        help="subtract the mean of each feature (default: yes for tables, no for images)",
    )
    group.add_argument(
        "--scale",
        choices=SCALES,
        help="divide each feature by its standard deviation, or all by one number (default: "
        "feature for tables, global for recordings, none for images)",
    )
    group.add_argument(
        "--pca",
        type=parsing.value,
        help="reduce by PCA to this many dimensions, or below 1 to this share of the variance "
        "(default: no)",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Fit, report the settings and the result, and write the requested files."""
    is_annotated = writing.is_annotated(options)
    writing.check_place(options, (options.out.suffix,) if is_annotated else ())
    dataset = opened(options)
    with parsing.in_flags():
        before = _preprocessing(options, dataset)
        config = RunConfig(dataset.digest, before.to_dict(), options.model, _settings(options))
    meter = Meter(dataset.n_rows, lambda: _say_plan(options, dataset, config))
    with parsing.in_flags({*config.parameters, "pca"}):
        result = fit_run(dataset, config, meter)
    clear()
    meter.begin()
    outcome, run_id = _say_outcome(result, before), None
    if options.store:
        DatasetStore(home()).put(dataset)
        run_id = RunStore(home()).save(config, result).id
        say(f"run {run_id}")
    from appca.analysis.tables import projection_table

    if is_annotated:
        written: str | None = writing.write_annotated(options, dataset, config, result)
    else:
        table = partial(projection_table, dataset, result.fitted)
        written = writing.write(options, table, partial(_arrays, dataset, config, result))
    page = options.html and writing.write_page(options.html, dataset, [result.fitted])
    facts: dict[str, Any] = {"data": fields_of(dataset), "preprocessing": before.to_dict()}
    facts |= {"model": config.model, "parameters": config.parameters, **outcome, "run": run_id}
    return facts | {"written": written, "html": page}


def _say_outcome(result: FitResult, before: Preprocessing) -> dict[str, Any]:
    from appca.analysis.components import DOUBTFUL, rarely_used

    info, rows = result.info, result.fitted
    mean = info.log_likelihood / info.n_rows
    say(f"{info.stop_reason}; {info.n_iter} iterations, {info.seconds} s")
    unit = "" if before.in_words() == "none" else ", of the values after preprocessing"
    say(f"log-likelihood {mean:.6g} nats per row{unit}")
    doubtful = int(np.sum(rows.membership < DOUBTFUL))
    verb = "is" if doubtful == 1 else "are"
    say(f"{doubtful:,} of {info.n_rows:,} rows {verb} doubtful: no support is likelier than 1/2")
    said: dict[str, Any] = {"stop_reason": info.stop_reason, "iterations": info.n_iter}
    said |= {"seconds": info.seconds, "log_likelihood_per_row": mean, "doubtful_rows": doubtful}
    return said | {"rarely_used_components": rarely_used(rows)}


def _say_plan(options: argparse.Namespace, dataset: Dataset, config: RunConfig) -> None:
    seed = f"seed {config.parameters.get('random_state', 0)}"
    before = Preprocessing.from_dict(config.preprocessing)
    chosen = any(getattr(options, name) is not None for name in PREPARING)
    whose = "" if chosen else f" (by default; {AS_THEY_ARE} fits the values as they are)"
    say(f"{dataset.name}: {dataset.n_rows:,} rows, {dataset.n_features:,} features")
    steps = before.in_words() + whose * (before != Preprocessing())
    model = ", ".join([MODELS[config.model].title, *config.sizes, seed])
    say_facts(lines_of(dataset, "fitted around") | {"Preprocessing": steps, "Model": model})


def _preprocessing(options: argparse.Namespace, dataset: Dataset) -> Preprocessing:
    steps = {name: value for name in PREPARING if (value := getattr(options, name)) is not None}
    return Preprocessing(**(suggest(dataset, options.prepare or "none").to_dict() | steps))


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    bound = "n_components" if "n_components" in defaults(options.model) else "max_components"
    named = {bound: options.components, "n_active": options.active, "noise": options.noise}
    named |= {"row_scale": options.row_scale, "random_state": options.seed}
    return {name: value for name, value in named.items() if value is not None} | dict(options.set)


def _arrays(dataset: Dataset, config: RunConfig, result: FitResult) -> dict[str, np.ndarray]:
    """Return the arrays of a model file, with limits for new rows."""
    members = {**result.fitted.to_arrays(), **writing.identity(dataset)}
    members |= about_run(config, result.info, dataset.feature_names)
    members["data_type"] = np.array(str(dataset.X.dtype))
    if dataset.image_shape is not None:
        members["image_shape"] = np.array(dataset.image_shape)
    return members
