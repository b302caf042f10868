"""``appca fit CELLS.h5ad --out FITTED.h5ad``: the same file with what the fit adds."""

import argparse
from pathlib import Path

import numpy as np

from appca.commands import parsing
from appca.commands.terminal import say
from appca.data.dataset import Dataset
from appca.runs.configuration import RunConfig, estimator_class
from appca.runs.run import FitResult
from appca.storage import atomic
from appca.words.errors import InputError
from appca.words.refusal import OTHER, storing

ENDING = ".h5ad"
KEY = "appca"


def is_wanted(options: argparse.Namespace) -> bool:
    """Whether an .h5ad file is to be written; a usage error where there is none to add to."""
    if options.out is None or options.out.suffix != ENDING:
        return False
    if len(options.data) != 1 or not options.data[0].lower().endswith(ENDING):
        msg = (
            "--out FILE.h5ad adds a fit to annotated data, so DATA must be one .h5ad file; write "
            ".csv, .parquet or .npz instead."
        )
        raise parsing.UsageError(msg)
    return True


def write(
    options: argparse.Namespace, dataset: Dataset, config: RunConfig, result: FitResult
) -> str:
    """Write the file that was read, with scores, loadings, supports and the model."""
    from appca.analysis.export.annotated import additions
    from appca.analysis.export.annotated_file import with_additions
    from appca.data.readers.sparse.h5ad import names_of

    source, path = Path(options.data[0]), options.out
    cells, genes = names_of(source.name, source)
    if len(cells) != dataset.n_rows:
        msg = (
            f"“{source.name}” has {len(cells):,} observations and {dataset.n_rows:,} were fitted; "
            "fit all of them (--missing model), or write another kind of file."
        )
        raise InputError(msg)
    wanted = str(dataset.provenance["report"]["array"])
    of_variables = not wanted.startswith("obsm/")
    names = list(dataset.column_names)
    features = np.isin(genes, names) if of_variables else None
    params = {"model": config.model, **_place(wanted), **config.parameters}
    added = additions(
        KEY, result.fitted, result.fitted, _ratio(config, result), params, features, np.array(names)
    )
    content = with_additions(source, added)
    with storing(f"“{path.name}”", path.parent, OTHER):
        atomic.write(path, content)
    say(f"wrote {path}, {len(content)} bytes")
    return str(path)


def _place(wanted: str) -> dict[str, str]:
    kind, _, name = wanted.partition("/")
    return {"layers": {"layer": name}, "obsm": {"use_rep": name}}.get(kind, {})


def _ratio(config: RunConfig, result: FitResult) -> np.ndarray | None:
    """Return the share of variance (K,) of each component, where the model has one."""
    estimator = estimator_class(config.model)(**config.parameters)
    estimator.restore(result.fitted.estimator_arrays())
    ratio = getattr(estimator, "explained_variance_ratio_", None)
    return None if ratio is None else np.asarray(ratio)
