"""``appca fit``: fit a model and describe every row."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from appca.commands import cluster, parsing, writing
from appca.commands.opening import opened
from appca.commands.terminal import Meter, clear, say, show_share
from appca.data.dataset import Dataset
from appca.data.prepared import prepared
from appca.data.preprocessing import SCALES, Preprocessing, suggest
from appca.data.store import DatasetStore
from appca.data.vae import autoencoder
from appca.runs.configuration import MODELS, RunConfig, defaults
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.model_file import about_run
from appca.runs.run import FitResult
from appca.runs.store import RunStore
from appca.storage.errors import InputError

EXAMPLES = (
    "python -m appca fit digits -K 6 -L 2 --out digits.npz",
    "python -m appca fit measurements.csv --label kind --missing model -K 3 --out table.csv",
    "python -m appca fit faces --option 'size=[16,16]' --pca 0.95 -K 4 --store",
)


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    parser = parsing.command(commands, "fit", "fit a model and describe every row", EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("data", nargs="+", metavar="DATA", help=parsing.DATA_HELP)
    parsing.add_reading(parser)
    model = parser.add_argument_group("what is fitted")
    model.add_argument("--model", default="aPPCA", choices=MODELS)
    model.add_argument("-K", "--components", type=int, help="components, or the most there may be")
    model.add_argument("-L", "--active", type=int, help="components a row uses (2)")
    model.add_argument("--seed", type=int, help="random seed (0)")
    parsing.add_settings(model, "--set", "a further setting of the model, such as n_init=5")
    before = parser.add_argument_group("what is done to the data first")
    before.add_argument("--divide", type=float, help="divide every value by this")
    before.add_argument("--centre", action="store_true", default=None, help="subtract the means")
    before.add_argument("--scale", choices=SCALES)
    reduce = before.add_mutually_exclusive_group()
    reduce.add_argument(
        "--pca", type=parsing.value, help="dimensions to keep, or share of variance below 1"
    )
    reduce.add_argument(
        "--vae", type=parsing.value, metavar="DIMENSIONS", help="dimensions of an autoencoder"
    )
    before.add_argument("--epochs", type=int, help="of the autoencoder; suggested by the data")
    parser.add_argument("--out", type=Path, help=f"{writing.OUT_HELP}; `project` reads the .npz")
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="fit on the Dask cluster there, or part by part on this computer (`threads`); DATA is "
        "then one NPY, Parquet or Zarr file that all workers can read, and may be larger than "
        "memory",
    )
    parser.add_argument("--store", action="store_true", help="keep the run where the app shows it")


def run(options: argparse.Namespace) -> None:
    """Fit, say how it went, and keep what was asked for."""
    writing.check_place(options.out)
    if cluster.is_for(options):
        cluster.run(options, _settings(options))
        return
    if options.epochs is not None and options.vae is None:
        msg = "--epochs is of an autoencoder; give --vae with its dimensions, or leave it out."
        raise InputError(msg)
    dataset = opened(options)
    before = _preprocessing(options, dataset)
    config = RunConfig(dataset.digest, before.to_dict(), options.model, _settings(options))
    fitted = prepared(dataset, before, home(), show_share) if before.vae else None
    result = fit_run(dataset, config, Meter(dataset.n_rows), fitted)
    clear()
    info = result.info
    say(f"{info.stop_reason}; {info.n_iter} iterations, {info.seconds} s")
    say(f"log-likelihood {info.log_likelihood / info.n_rows:.6g} nats per row")
    if dataset.missing is not None:
        say(f"{dataset.n_missing} missing cells, fitted around")
    if options.store:
        DatasetStore(home()).put(dataset)
        say(f"run {RunStore(home()).save(config, result).id}")
    if options.out:
        from appca.analysis.export.projections import projection_table

        writing.write(
            options.out,
            lambda: projection_table(dataset, result.fitted),
            lambda: _arrays(dataset, config, result),
        )


def _preprocessing(options: argparse.Namespace, dataset: Dataset) -> Preprocessing:
    given = {name: getattr(options, name) for name in ("divide", "centre", "scale", "pca")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.vae is not None:
        coder = autoencoder.suggest(dataset.n_rows, dataset.n_features)
        given["vae"] = replace(
            coder,
            dimensions=options.vae,
            epochs=coder.epochs if options.epochs is None else options.epochs,
            seed=options.seed or 0,
        )
    return Preprocessing(**(suggest(dataset).to_dict() | given))


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    bound = "n_components" if "n_components" in defaults(options.model) else "max_components"
    named = {
        bound: options.components,
        "n_active": options.active,
        "random_state": options.seed,
    }
    return {name: value for name, value in named.items() if value is not None} | dict(options.set)


def _arrays(dataset: Dataset, config: RunConfig, result: FitResult) -> dict[str, np.ndarray]:
    """Return a model file (see `appca.runs.model_file`) that also holds what was said of the rows.

    `project` reads from it, beside the model, what new rows must look like and how far out the
    rows of the fit lie.
    """
    found = {**result.fitted.to_arrays(), **writing.identity(dataset)}
    found |= about_run(config, result.info)
    found["data_type"] = np.array(str(dataset.X.dtype))
    if dataset.feature_names is not None:
        found["feature_names"] = np.array(dataset.feature_names, dtype="U")
    if dataset.image_shape is not None:
        found["image_shape"] = np.array(dataset.image_shape)
    return found
