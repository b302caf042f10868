"""The command line: the same code as the pages, on built-in data and files."""

import argparse
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from appca.data import atomic
from appca.data.builtin import SOURCES, load
from appca.data.dataset import Dataset
from appca.data.errors import InputError
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.store import DatasetStore
from appca.runs.config import MODELS, RunConfig, defaults
from appca.runs.fit import Result, fit_run, project
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.studies.catalogue import STUDIES

if TYPE_CHECKING:
    from appca.models.loop import Progress

BAD_INPUT, INTERRUPTED = 2, 130
_DATA_HELP = "a built-in data set (see `data`) or a file: CSV, TSV, NPY, zip of images"
_OUT_HELP = "where the result goes; its name ends in .csv or .npz"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 0, or 2 after one sentence about bad input."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except ValueError as error:
        return _refuse(" ".join(str(error).split()))
    except OSError as error:
        return _refuse(f"{error.filename or 'A file'}: {error.strerror or error}.")
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Write the sentence and leave with exit code 2."""
        self.exit(BAD_INPUT, f"{self.prog}: {message.rstrip('.')}; see {self.prog} --help.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="appca", description="Adaptive probabilistic PCA on the command line.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    data = commands.add_parser("data", help="list built-in data sets, or write one to a file")
    data.set_defaults(run=_data)
    data.add_argument("data", nargs="?", metavar="DATA", help=_DATA_HELP)
    _add_option(data)
    data.add_argument("--out", type=Path, help=_OUT_HELP)

    fit = commands.add_parser("fit", help="fit a model and describe every row")
    fit.set_defaults(run=_fit)
    fit.add_argument("data", metavar="DATA", help=_DATA_HELP)
    _add_option(fit)
    fit.add_argument("--model", default="aPPCA", choices=MODELS)
    fit.add_argument("-K", "--components", type=int, help="components, or the most there may be")
    fit.add_argument("-L", "--active", type=int, help="components a row uses (2)")
    fit.add_argument("--seed", type=int, help="random seed (0)")
    _add_settings(fit, "--set", "a further setting of the model, such as n_init=5")
    fit.add_argument("--divide", type=float, help="divide every value by this")
    fit.add_argument("--centre", action="store_true", default=None, help="subtract the means")
    fit.add_argument("--scale", choices=("none", "feature", "global"))
    fit.add_argument("--pca", type=_value, help="dimensions to keep, or share of variance below 1")
    fit.add_argument("--out", type=Path, help=f"{_OUT_HELP}; `project` reads the .npz")
    fit.add_argument("--store", action="store_true", help="keep the run where the app shows it")

    new = commands.add_parser("project", help="describe new rows by a fitted model")
    new.set_defaults(run=_project)
    new.add_argument("fitted", metavar="RUN", help="an .npz from `fit`, or the id of a stored run")
    new.add_argument("data", metavar="DATA", help=_DATA_HELP)
    _add_option(new)
    new.add_argument("--out", type=Path, required=True, help=_OUT_HELP)
    _add_paper(commands.add_parser("paper", help="compute tables and figures of the paper anew"))
    return parser


def _add_paper(paper: argparse.ArgumentParser) -> None:
    paper.set_defaults(run=_paper, size="default")
    which = paper.add_mutually_exclusive_group(required=True)
    which.add_argument("names", nargs="*", default=[], metavar="NAME", help=", ".join(STUDIES))
    which.add_argument("--all", action="store_true", help="all of them")
    size = paper.add_mutually_exclusive_group()
    for name, text in (("quick", "small, for a first look"), ("full", "more data sets and draws")):
        size.add_argument(
            f"--{name}", dest="size", action="store_const", const=name, default="default", help=text
        )
    _add_settings(paper, "--set", "another value of an option, such as seeds=3")
    paper.add_argument("--out", type=Path, help="folder for tables (CSV) and figures (HTML)")


def _add_option(parser: argparse.ArgumentParser) -> None:
    _add_settings(parser, "--option", "how to open the data, such as n=1000 or classes=[0,1]")


def _add_settings(parser: argparse.ArgumentParser, flag: str, text: str) -> None:
    parser.add_argument(
        flag, action="append", default=[], type=_pair, metavar="NAME=VALUE", help=text
    )


def _pair(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        msg = f"“{text}” must be of the form name=value"
        raise argparse.ArgumentTypeError(msg)
    return name.strip(), _value(value)


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _data(options: argparse.Namespace) -> None:
    if options.data is None:
        for source in SOURCES.values():
            names = ", ".join(option.name for option in source.options)
            note = f" [{names}]" if names else ""
            size = f"{source.rows} x {source.features}"
            _say(f"{source.key:14} {size:12} {source.description}{note}")
        return
    dataset = _opened(options)
    _say(f"{dataset.name}: {dataset.n_rows} rows, {dataset.n_features} features")
    _say(f"labels: {', '.join(dataset.labels) or 'none'}; digest {dataset.digest[:12]}")
    if options.out:
        _write(options.out, lambda: _data_csv(dataset), lambda: _npz(_data_arrays(dataset)))


def _fit(options: argparse.Namespace) -> None:
    writer = _kind(options.out) if options.out else None
    dataset = _opened(options)
    config = RunConfig(
        dataset.digest,
        _preprocessing(options, dataset).to_dict(),
        options.model,
        _settings(options),
    )
    result = fit_run(dataset, config, _Meter(dataset.n_rows))
    info = result.info
    _say(f"{info['stop_reason']}; {info['n_iter']} iterations, {info['seconds']} s")
    _say(f"log-likelihood {info['log_likelihood'] / info['n_rows']:.6g} nats a row")
    if options.store:
        DatasetStore(home()).put(dataset)
        _say(f"run {RunStore(home()).save(config, result).id}")
    if writer:
        _write(
            options.out,
            lambda: _table_csv(dataset, result.arrays),
            lambda: _npz(_run_arrays(dataset, config, result)),
        )


def _project(options: argparse.Namespace) -> None:
    _kind(options.out)
    config, arrays = _run_of(options.fitted)
    dataset = _opened(options)
    found = project(config, arrays, dataset.with_gaps())
    share = np.mean(found["membership"] < 0.5)
    _say(f"{dataset.n_rows} rows; {share:.1%} of them with doubtful membership")
    _write(
        options.out,
        lambda: _table_csv(dataset, found),
        lambda: _npz({**found, **_identity(dataset)}),
    )


def _paper(options: argparse.Namespace) -> None:
    from appca.studies.command import paper

    changes = dict(options.set)
    paper(options.names, options.size, changes, home(), options.out, _say, _show_share)


def _show_share(stage: str, share: float) -> None:
    if sys.stderr.isatty():
        line = f"{share:4.0%} {stage}"
        sys.stderr.write(f"\r{line:79.79}\r")


def _opened(options: argparse.Namespace) -> Dataset:
    chosen = dict(options.option)
    if options.data in SOURCES:
        return load(options.data, **chosen)
    path = Path(options.data)
    if not path.is_file():
        msg = (
            f"“{options.data}” is neither a file nor a built-in data set; "
            f"the latter are {', '.join(SOURCES)}."
        )
        raise InputError(msg)
    from appca.data.readers import read

    return read(path.name, path, **chosen)


def _preprocessing(options: argparse.Namespace, dataset: Dataset) -> Preprocessing:
    given = {name: getattr(options, name) for name in ("divide", "centre", "scale", "pca")}
    given = {name: value for name, value in given.items() if value is not None}
    return Preprocessing(**(suggest(dataset).to_dict() | given))


def _settings(options: argparse.Namespace) -> dict:
    bound = "n_components" if "n_components" in defaults(options.model) else "max_components"
    named = {
        bound: options.components,
        "n_active": options.active,
        "random_state": options.seed,
    }
    return {name: value for name, value in named.items() if value is not None} | dict(options.set)


def _run_of(text: str) -> tuple[RunConfig, dict[str, np.ndarray]]:
    run = RunStore(home()).get(text)
    if run is not None:
        return run.config, run.arrays
    if not Path(text).is_file():
        msg = f"“{text}” is neither an .npz file from `fit` nor the id of a stored run."
        raise InputError(msg)
    needed = {"run", "components", "mean", "pre_divide"}
    try:
        with Path(text).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        missing = sorted(needed - set(arrays))
        config = None if missing else json.loads(str(arrays["run"]))["config"]
    except Exception as error:
        msg = f"“{text}” cannot be read as an .npz file from `fit` ({type(error).__name__})."
        raise InputError(msg) from error
    if config is None:
        msg = f"“{text}” lacks {', '.join(missing)}; make it with `fit --out`."
        raise InputError(msg)
    return RunConfig.from_dict(config), arrays


def _kind(path: Path) -> str:
    if path.suffix not in {".csv", ".npz"}:
        msg = f"The output's name must end in .csv or .npz; got “{path.name}”."
        raise InputError(msg)
    if not path.parent.is_dir():
        msg = f"The folder of the output must exist; there is no “{path.parent}”."
        raise InputError(msg)
    return path.suffix


def _write(path: Path, as_csv: Callable[[], bytes], as_npz: Callable[[], bytes]) -> None:
    content = as_csv() if _kind(path) == ".csv" else as_npz()
    try:
        atomic.write(path, content)
    except OSError as error:
        msg = (
            f"“{path}” could not be written ({error.strerror or error}); free some space, or name "
            "another place."
        )
        raise InputError(msg) from error
    _say(f"wrote {path}, {len(content)} bytes")


def _table_csv(dataset: Dataset, arrays: dict[str, np.ndarray]) -> bytes:
    from appca.analysis.export import csv_bytes, projection_table

    return csv_bytes(projection_table(dataset, arrays))


def _data_csv(dataset: Dataset) -> bytes:
    import pandas as pd

    from appca.analysis.export import csv_bytes

    names = dataset.feature_names or [f"x{d + 1}" for d in range(dataset.n_features)]
    labels = {
        f"label_{key}" if key in names else key: dataset.labels[key] for key in dataset.labels
    }
    front = pd.DataFrame({"id": dataset.ids.astype(object)} | labels)
    return csv_bytes(pd.concat([front, pd.DataFrame(dataset.X, columns=list(names))], axis=1))


def _data_arrays(dataset: Dataset) -> dict[str, np.ndarray]:
    return {"X": dataset.X, **_identity(dataset)}


def _identity(dataset: Dataset) -> dict[str, np.ndarray]:
    labels = {f"label_{i}": column for i, column in enumerate(dataset.labels.values())}
    return {"ids": dataset.ids, "label_names": np.array(list(dataset.labels), dtype="U"), **labels}


def _run_arrays(dataset: Dataset, config: RunConfig, result: Result) -> dict[str, np.ndarray]:
    text = json.dumps({"config": config.to_dict(), "info": result.info})
    return {**result.arrays, **_identity(dataset), "run": np.array(text)}


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


class _Meter:
    """Shows the passes of a fit on one line of a terminal."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows, self.shown = n_rows, sys.stderr.isatty()

    def __call__(self, progress: "Progress") -> None:
        if self.shown:
            value = progress.log_likelihood / self.n_rows
            line = f"{progress.stage}, pass {progress.iteration}: {value:.6g} nats a row"
            sys.stderr.write(f"\r{line:79.79}\r")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _refuse(sentence: str) -> int:
    sys.stderr.write(f"appca: {sentence}\n")
    return BAD_INPUT
