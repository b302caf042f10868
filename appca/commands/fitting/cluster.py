"""``appca fit --scheduler ADDRESS``: a fit by the workers of a Dask cluster, its table in parts.

Without a cluster the rows are still read part by part, by threads of this process: for the address
`threads`, and for Zarr files, which are not read otherwise.
"""

import argparse
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from appca.analysis.fitted import DescribedRows, FittedModel
from appca.commands import parsing
from appca.commands.terminal import Meter, clear, say, say_facts
from appca.data.lazy import open_lazily
from appca.data.preprocessing import Preprocessing
from appca.runs.cluster import SchedulerAddress, connected, losses, refuse_missing_packages
from appca.runs.configuration import MODELS, RunConfig, estimator_class
from appca.runs.fit import versions
from appca.runs.run import RunInfo
from appca.storage import atomic

if TYPE_CHECKING:
    import pandas as pd
    from dask.array import Array

    from appca.data.dataset import Dataset

ON_DASK = [model for model, spec in MODELS.items() if spec.can.dask]
THREADS = "threads"  # in the place of an address
ONLY_LAZILY = ".zarr"
NEEDLESS = {  # arguments that need all rows at hand, or the app's own store
    "store": "--store",
    "html": "--html",
    "label": "--label",
    "id": "--id",
    "ignore": "--ignore",
    "option": "--option",
    "missing": "--missing",
    "divide": "--divide",
    "centre": "--centre",
    "scale": "--scale",
    "pca": "--pca",
}


class Numbered(NamedTuple):
    """Rows that have nothing but numbers."""

    ids: np.ndarray
    labels: dict[str, np.ndarray]


def is_for(options: argparse.Namespace) -> bool:
    """Whether the rows are to be read part by part."""
    only = any(
        Path(name).suffix == ONLY_LAZILY and not (Path(name) / "obs").is_dir()  # no AnnData
        for name in options.data
    )
    return options.scheduler is not None or only


def run(options: argparse.Namespace, parameters: dict[str, Any]) -> dict[str, Any]:
    """Fit where the rows are, say how it went, and write what was asked for part by part."""
    path = _check(options)
    with _workers(options.scheduler) as place:
        began = time.perf_counter()
        X = open_lazily(path)
        before = Preprocessing().to_dict()
        with parsing.in_flags():
            config = RunConfig(_digest(path, X), before, options.model, parameters)
        kind, keywords = estimator_class(config.model), dict(config.parameters)
        keywords["callback"] = Meter(X.shape[0])
        say(f"{X.shape[0]} rows of {X.shape[1]} features, {place}")
        say_facts({"Preprocessing": "none", "Model": ", ".join([config.model, *config.sizes])})
        with parsing.in_flags(config.parameters):
            model = kind(**keywords).fit(X)
        mean = model.score(X)
        clear()
        seconds = round(time.perf_counter() - began, 3)
        say(f"{model.stop_reason_}; {model.n_iter_} iterations, {seconds} s")
        say(f"log-likelihood {mean:.6g} nats per row")
        info = RunInfo(
            n_iter=int(model.n_iter_),
            stop_reason=str(model.stop_reason_),
            log_likelihood=mean * X.shape[0],
            likelihood="exact",
            likelihood_error=0.0,
            n_rows=X.shape[0],
            n_features=X.shape[1],
            versions=versions(),
            seconds=seconds,
        )
        if options.out:
            _write(options.out, model, X, config, info)
    return {
        "data": {"name": path.name, "rows": info.n_rows, "features": info.n_features},
        "preprocessing": config.preprocessing,
        "model": config.model,
        "parameters": config.parameters,
        "stop_reason": info.stop_reason,
        "iterations": info.n_iter,
        "seconds": seconds,
        "log_likelihood_per_row": mean,
        "run": None,
        "written": None if options.out is None else str(options.out),
        "html": None,
    }


def _check(options: argparse.Namespace) -> Path:
    """Return the file, after refusing what a fit on a cluster cannot do."""
    cause = f"a {ONLY_LAZILY} file" if options.scheduler is None else "--scheduler"
    needless = [
        flag for name, flag in NEEDLESS.items() if getattr(options, name) not in (None, False, [])
    ]
    if needless:
        msg = (
            f"{needless[0]} cannot be combined with {cause}, where the numbers in the file are "
            "fitted as they are; leave one of the two out."
        )
        raise parsing.UsageError(msg)
    if options.model not in ON_DASK:
        msg = f"With {cause}, fit {' or '.join(ON_DASK)}; got {options.model}: name one of these."
        raise parsing.UsageError(msg)
    if len(options.data) != 1:
        msg = f"With {cause}, name one file or folder; got {len(options.data)}: leave out the rest."
        raise parsing.UsageError(msg)
    if parsing.PIPE in (options.data[0], str(options.out)):
        msg = f"With {cause}, DATA and --out are names of files; got -: write the file's name."
        raise parsing.UsageError(msg)
    return Path(options.data[0])


@contextmanager
def _workers(address: str | None) -> Iterator[str]:
    """Let a cluster do what Dask computes meanwhile, or threads; yields which, in words."""
    if address in (None, THREADS):
        refuse_missing_packages("Reading part by part", ("dask",), "save the rows as CSV")
        yield "by threads of this computer"
        return
    scheduler = SchedulerAddress(
        address, "--scheduler", f"name {THREADS} instead to fit on this computer"
    )
    with connected(scheduler), losses(scheduler):
        yield f"on the cluster at {address}"


def _digest(path: Path, X: "Array") -> str:
    """Tell files apart without reading them: name, shape, type, size and time of writing.

    Of a folder, those of the files in it.
    """
    files = sorted(file for file in path.rglob("*") if file.is_file()) or [path]
    facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    text = repr((path.name, X.shape, str(X.dtype), facts))
    return hashlib.sha256(text.encode()).hexdigest()


def _write(path: Path, model: Any, X: "Array", config: RunConfig, info: RunInfo) -> None:
    if path.suffix == ".npz":
        from appca.runs.model_file import model_bytes

        nothing = Preprocessing().fit(np.zeros((2, X.shape[1]), X.dtype))
        fitted = FittedModel.from_estimator(model, nothing)
        atomic.write(path, model_bytes(config, fitted, info))
    else:
        _write_tables(path, _tables(model, X))
    say(f"wrote {path}, {path.stat().st_size} bytes")


def _tables(model: Any, X: "Array") -> Iterator["pd.DataFrame"]:
    """Say of the rows, chunk by chunk, what `fit` says of them all."""
    from appca.analysis.export.projections import projection_table

    first = 0
    for described in model.describe_chunks(X):
        ids = np.arange(first, first + len(described.scores)).astype(str)
        rows = cast("Dataset", Numbered(ids, {}))  # the table asks for nothing else
        yield projection_table(rows, DescribedRows.from_description(described))
        first += len(ids)


def _write_tables(path: Path, tables: Iterator["pd.DataFrame"]) -> None:
    from appca.analysis.export.projections import csv_bytes

    with atomic.growing(path) as file:
        if path.suffix == ".parquet":
            _write_parquet(file, tables)
            return
        for i, table in enumerate(tables):
            content = csv_bytes(table)
            file.write(content if i == 0 else content.split(b"\r\n", 1)[1])


def _write_parquet(file: Any, tables: Iterator["pd.DataFrame"]) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    parts = (pa.Table.from_pandas(table, preserve_index=False) for table in tables)
    first = next(parts)
    with ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part)
