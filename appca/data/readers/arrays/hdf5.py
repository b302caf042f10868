"""HDF5 files: one of their arrays holds the rows, others may name them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.arrays import hdf5_contents
from appca.data.readers.arrays.choice import (
    ArrayInfo,
    Beside,
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
from appca.data.readers.sparse.filling import Compressed, filled
from appca.data.readers.sparse.filling import build as sparse_build
from appca.words.wording import shortened

_OF_10X = ("data", "indices", "indptr", "shape", "barcodes")  # counts of 10x Genomics


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

        group = _place_of_counts(arrays) if options.array is None else None
        if group is not None:
            matrix, cells, genes = _counts(group, arrays, load)
            X = filled(name, matrix, None, limits)
            return sparse_build(name, X, cells, genes, options.missing, report, limits)
        wanted = choose(name, arrays, options.array, report, limits)
        check_array(shortened(wanted), arrays[wanted], limits)
        values = native(load(wanted))
        report |= {"array": wanted, "dtype": str(arrays[wanted].dtype)}
        named = RowNames(name, wanted, len(values), options.ids, options.labels)
        rows = beside(named, arrays, load, report, limits)
    return build(name, values, rows, options.missing, options.image_shape, report, limits)


def _place_of_counts(arrays: Mapping[str, ArrayInfo]) -> str | None:
    """Return the group of 10x counts; None in a file of another kind, or with several."""
    groups = {path.rpartition("/")[0] for path in arrays if path.endswith("/barcodes")}
    able = [group for group in groups if all(f"{group}/{part}" in arrays for part in _OF_10X)]
    return able[0] if len(able) == 1 else None


def _counts(
    group: str, arrays: Mapping[str, ArrayInfo], load: Callable[[str], np.ndarray]
) -> tuple[Compressed, Beside, list[str] | None]:
    """Read counts of genes in cells, which are the rows, as Cell Ranger 2 and newer write."""
    data, indices, indptr, shape, barcodes = (load(f"{group}/{part}") for part in _OF_10X)
    sides = tuple(int(side) for side in np.ravel(shape)[:3])  # genes, cells
    names = (f"{group}/features/name", f"{group}/gene_names")
    stored = (load(path).astype(str).tolist() for path in names if path in arrays)
    genes: list[str] = next(stored, [])
    fits = bool(genes) and sides == (len(genes), len(barcodes))
    cells = Beside(barcodes.astype(str) if fits else None, {})
    matrix = Compressed(sides, data, indices, indptr, by_row=False).turned()
    return matrix, cells, genes if fits else None


READER = Reader(Hdf5Options, read)
