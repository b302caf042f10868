"""Images of MNIST and COIL-20 from a person's own copy; nothing is fetched for a figure."""

from functools import lru_cache

import numpy as np

from appca.data.dataset import Dataset
from appca.data.sources.builtin import are_here, load
from appca.data.sources.folder import data_folder
from appca.words.errors import InputError


def images_of(source: str, rows: np.ndarray) -> np.ndarray | None:
    """Return the images (m, h, w) of rows (m,) of "mnist" or "coil20", as experiments number them.

    None where they are not here.
    """
    if not are_here(source):
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
