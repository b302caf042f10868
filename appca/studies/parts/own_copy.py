"""Images of MNIST and COIL-20 from a person's own copy; nothing is fetched for a figure."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.sources.builtin import load
from appca.data.sources.folder import data_folder
from appca.words.errors import InputError


class Needed(NamedTuple):
    """Files that do not come with this package."""

    title: str
    files: tuple[str, ...]  # below the data folder; any one of them will do
    fetched: str  # what happens without them


NEEDED = {
    "mnist": Needed(
        "MNIST", ("mnist/train-images-idx3-ubyte.gz",), "it is fetched first, 12 MB, if possible"
    ),
    "coil20": Needed(
        "COIL-20",
        ("coil20/COIL20.mat", "coil20/coil-20-proc.zip"),
        "it is fetched first, 13 MB, if possible",
    ),
    "fmri": Needed(
        "the brain recording",
        ("fmri/sub-02_task-oneback_run-1_bold.nii.gz",),
        "put it there, with its events beside it",
    ),
}


def is_here(source: str) -> bool:
    """Whether any of the files of a source lies in the data folder."""
    return any((data_folder() / file).is_file() for file in NEEDED[source].files)


def images_of(source: str, rows: np.ndarray) -> np.ndarray | None:
    """Return the images (m, h, w) of rows (m,) of "mnist" or "coil20", as experiments number them.

    None where they are not here.
    """
    if not is_here(source):
        return None
    try:
        copy = _opened(source, str(data_folder()))
    except InputError:  # a damaged file: the figure does without
        return None
    return copy.images(rows) if rows.max(initial=-1) < copy.n_rows else None


@lru_cache(maxsize=2)
def _opened(source: str, folder: str) -> Dataset:
    if source == "mnist":
        return load(source, data_folder=folder, n=10_000)
    return load(source, data_folder=folder)
