"""``appca project``: describe new rows with a fitted model, and flag rows that fit badly."""

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.fitted import ROW_ARRAYS, SOME_ROW_ARRAYS, DescribedRows, FittedModel, FittedRun
from appca.analysis.new_rows import LEVEL, NewRowsVerdict, new_rows_table, verdict
from appca.analysis.rows import distances
from appca.commands import parsing, writing
from appca.commands.opening import opened_as, with_gaps
from appca.commands.terminal import Meter, clear, say
from appca.data.columns import Wanted, wanted_by
from appca.data.store import DatasetStore
from appca.runs.fit import project
from appca.runs.home import home
from appca.runs.model_file import read_model
from appca.runs.numbering import ComponentNumbers, numbered
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.storage.packed import Packed
from appca.words import InputError, counted, refuse_if, shortened

EXAMPLES = (
    "python -m appca project digits.npz new.csv --out rows.parquet",
    "python -m appca project digits.npz new.csv --flag",
    "python -m appca project digits.npz digits --flag --level 0.999 --out rows.csv",
    "cat new.csv | python -m appca project digits.npz - --out - > new_rows.csv",
)
_ABOUT = ("data_type", "image_shape")


class RowsDescriber(NamedTuple):
    """A model with information on the rows it was fitted to."""

    config: RunConfig
    model: FittedModel
    run: FittedRun | None  # None if the file contains only the model
    wanted: Wanted


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "describe new rows with a fitted model, and flag those that do not fit"
    parser = parsing.command(commands, "project", text, EXAMPLES, run)
    parser.add_argument(
        "fitted", metavar="RUN", help="an .npz from `fit` or the app, or the id of a stored run"
    )
    parser.add_argument("data", nargs="+", metavar="DATA", help=parsing.DATA_HELP)
    parsing.add_reading(parser, missing="kept if the model takes them, else refuse")
    parsing.add_flag(parser, "--flag", "report how many rows do not fit, and mark them in --out")
    parser.add_argument(
        "--level",
        type=float,
        default=LEVEL,
        help=f"with --flag: the share of fitted rows within each limit (default: {LEVEL})",
    )
    writing.add_out(parser, ".csv")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Describe the rows, report the result and write it."""
    _check(options)
    fitted = _fitted(options.fitted)
    takes = fitted.config.fits_around_gaps and fitted.model.preprocessing.takes_gaps
    new = with_gaps(options, lambda how: opened_as(how, fitted.wanted), may=takes)
    if new.reordered:
        say("columns matched by name; their order differs")
    if new.ignored:
        say(f"not used: {', '.join(shortened(name) for name in new.ignored)}")
    dataset = new.dataset
    described = project(fitted.config, fitted.model, dataset.with_gaps(), Meter(dataset.n_rows))
    clear()
    doubtful = described.membership < 0.5
    share = np.mean(doubtful)
    say(f"{counted(dataset.n_rows, 'row')}; {share:.1%} of them with doubtful membership")
    from appca.analysis.tables import projection_table

    table, flags, misfits = partial(projection_table, dataset, described), {}, None
    if options.flag:
        said, misfits = _judged(fitted, described, options.level)
        table = partial(new_rows_table, dataset, described, said)
        flags = {"t2": said.distances.t2, "q": said.distances.q, "fits": said.fits}
    written = writing.write(
        options, table, lambda: {**described.row_arrays(), **writing.identity(dataset), **flags}
    )
    facts = {"rows": dataset.n_rows, "doubtful_rows": int(doubtful.sum())}
    facts |= {"missing_cells": dataset.n_missing, "reordered": new.reordered}
    return facts | {"not_used": list(new.ignored), "misfits": misfits, "written": written}


def _check(options: argparse.Namespace) -> None:
    writing.check_place(options)
    msg = "There is nothing to do with the rows; name a file with --out, or add --flag."
    parsing.wrong_if(options.out is None and not options.flag, msg)
    msg = f"--level must be a share between 0 and 1; got {options.level:g}."
    parsing.wrong_if(not 0 < options.level < 1, msg)


def _judged(
    fitted: RowsDescriber, described: DescribedRows, level: float
) -> tuple[NewRowsVerdict, dict[str, Any]]:
    """Print which rows fit badly; return the verdict and the counts."""
    run_distances = None if fitted.run is None else distances(fitted.run)
    said = verdict(distances(fitted.model.with_rows(described)), run_distances, level)
    t2, q = (said.ratios > 1).sum(axis=0).tolist()
    rows = int((~said.fits).sum())
    whose = "the run's rows" if run_distances is not None else "rows drawn from the model"
    verb = "does" if rows == 1 else "do"
    say(
        f"{rows} of {counted(len(said.fits), 'row')} {verb} not fit: {q} too far from "
        f"their subspace (Q), {t2} too far out within it (T2), above the limits that {level:.4g} "
        f"of {whose} are below"
    )
    return said, {"level": level, "rows": rows, "q": q, "t2": t2}


def _fitted(text: str) -> RowsDescriber:
    if (run := RunStore(home()).get(text)) is not None:
        shown = numbered(run.fitted, ComponentNumbers(home()).of_run(run))
        return RowsDescriber(run.config, shown, shown, _wanted_by_run(run.config, shown))
    path = Path(text)
    msg = f"“{text}” is neither an .npz file from `fit` nor the id of a stored run; "
    msg += "`python -m appca runs` lists those."
    refuse_if(not path.is_file(), msg)
    config, _, model, names = read_model(path.name, path)
    with path.open("rb") as stream:
        packed = Packed(path.name, stream)
        more = {
            name: packed.array(f"{name}.npy")
            for name in (*ROW_ARRAYS, *SOME_ROW_ARRAYS, *_ABOUT)
            if f"{name}.npy" in packed
        }
    wanted = _wanted_by_file(more, names, len(model.preprocessing.offset))
    whole = set(ROW_ARRAYS) <= set(more)
    fitted = model.with_rows(DescribedRows.from_arrays(more)) if whole else None
    return RowsDescriber(config, model, fitted, wanted)


def _wanted_by_run(config: RunConfig, model: FittedModel) -> Wanted:
    try:
        return wanted_by(DatasetStore(home()).get(config.dataset))
    except InputError:
        return Wanted(len(model.preprocessing.offset))


def _wanted_by_file(more: dict[str, np.ndarray], names: tuple[str, ...], n_features: int) -> Wanted:
    """Return the columns that a model file expects; ignore inconsistent entries."""
    shape = tuple(int(side) for side in more.get("image_shape", np.empty(0, int)).ravel())
    is_shape = len(shape) in (2, 3) and min(shape) > 0 and math.prod(shape) == n_features
    kinds: dict[str, np.dtype] = {"uint8": np.dtype(np.uint8), "float32": np.dtype(np.float32)}
    return Wanted(
        n_features,
        names if len(set(names)) == n_features else None,
        shape if is_shape and shape[2:] in ((), (3,)) else None,
        kinds.get(str(more.get("data_type", "")), np.dtype(np.float64)),
    )
