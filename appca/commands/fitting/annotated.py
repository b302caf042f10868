"""``appca fit CELLS.h5ad --out FITTED.h5ad``: the same file with what the fit adds."""

import argparse
from pathlib import Path

from appca.analysis.export.annotated_file import ENDING, with_fit
from appca.commands import parsing
from appca.commands.terminal import say
from appca.data.dataset import Dataset
from appca.runs.configuration import RunConfig
from appca.runs.model_file import annotated_fit
from appca.runs.run import FitResult
from appca.storage import atomic
from appca.words.refusal import OTHER, storing


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
    source, path = Path(options.data[0]), options.out
    content = with_fit(source.name, source, dataset, annotated_fit(config, result.fitted))
    with storing(f"“{path.name}”", path.parent, OTHER):
        atomic.write(path, content)
    say(f"wrote {path}, {len(content)} bytes")
    return str(path)
