"""HDF5 files: one of their arrays holds the rows, others may name them."""

from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.arrays import hdf5_contents
from appca.data.readers.arrays.choice import (
    RowNames,
    beside,
    build,
    check_array,
    choose,
    native,
)
from appca.data.readers.intake import FileReport
from appca.data.readers.reader import Reader
from appca.data.readers.source import LIMITS, File, ReadLimits, plain_file
from appca.data.readers.sparse import tenx
from appca.data.readers.sparse.filling import build as sparse_build
from appca.data.readers.sparse.filling import filled
from appca.words.wording import shortened


class Hdf5Options(NamedTuple):
    """How to read an HDF5 file; arrays are named by their paths, such as ``train/X``."""

    array: str | None = None  # the one with the rows; None takes X, or the only one it can be
    ids: str | None = None  # the array that names the rows; None looks for one
    labels: tuple[str, ...] | None = None  # arrays with one entry a row; None looks for them
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


def read(name: str, file: File, options: Hdf5Options, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one array as rows, and those with one entry per row as ids and labels.

    Types are as from NPY. Counts of 10x Genomics become rows of cells. Links, virtual data sets and
    numbers kept in other files are not followed.
    """
    report: FileReport = {}
    with plain_file(name, file, limits) as stream, hdf5_contents.opened(name, stream) as opened:
        inside = hdf5_contents.arrays(name, opened, report)
        arrays = {path: item.info for path, item in inside.items()}

        def load(path: str) -> np.ndarray:
            return hdf5_contents.load(name, path, inside[path], limits)

        group = tenx.place_of(arrays) if options.array is None else None
        if group is not None:
            matrix, cells, genes = tenx.counts(group, arrays, load)
            X = filled(name, matrix, None, limits)
            return sparse_build(name, X, cells, genes or None, options.missing, report, limits)
        wanted = choose(name, arrays, options.array, report, limits)
        check_array(shortened(wanted), arrays[wanted], limits)
        values = native(load(wanted))
        report |= {"array": wanted, "dtype": str(arrays[wanted].dtype)}
        named = RowNames(name, wanted, len(values), options.ids, options.labels)
        rows = beside(named, arrays, load, report, limits)
    return build(name, values, rows, options.missing, options.image_shape, report, limits)


READER = Reader(Hdf5Options, read)
