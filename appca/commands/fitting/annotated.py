"""``appca fit CELLS.h5ad --out FITTED.h5ad``: the same file with what the fit adds."""

import argparse
import io
import zipfile
from pathlib import Path

from appca.analysis.export.annotated_file import STORE, ending_of, with_fit
from appca.commands import parsing
from appca.commands.terminal import say
from appca.data.dataset import Dataset
from appca.runs.configuration import RunConfig
from appca.runs.model_file import annotated_fit
from appca.runs.run import FitResult
from appca.storage import atomic
from appca.words.refusal import OTHER, storing


def is_wanted(options: argparse.Namespace) -> bool:
    """Whether annotated data are to be written; a usage error where there are none to add to."""
    ending = None if options.out is None else ending_of(options.out.name)
    if ending is None:
        return False
    if len(options.data) != 1 or ending_of(options.data[0]) != ending:
        msg = (
            f"--out FILE{ending} adds a fit to annotated data, so DATA must be one {ending} file; "
            "write .csv, .parquet or .npz instead."
        )
        raise parsing.UsageError(msg)
    return True


def write(
    options: argparse.Namespace, dataset: Dataset, config: RunConfig, result: FitResult
) -> str:
    """Write the file that was read, with scores, loadings, supports and the model.

    A store whose name ends in .zarr becomes a folder, one that ends in .zarr.zip a file.
    """
    source, path = Path(options.data[0]), options.out
    content = with_fit(source.name, source, dataset, annotated_fit(config, result.fitted))
    with storing(f"“{path.name}”", path.parent, OTHER):
        if path.suffix == STORE:
            with (
                atomic.draft_folder(path.parent) as draft,
                zipfile.ZipFile(io.BytesIO(content)) as archive,
            ):
                archive.extractall(draft)
                atomic.replace_folder(draft, path)
        else:
            atomic.write(path, content)
    say(f"wrote {path}, {len(content)} bytes")
    return str(path)
