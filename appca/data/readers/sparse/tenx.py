"""HDF5 files of 10x Genomics: counts of genes in cells, which are the rows here."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from appca.data.readers.arrays.choice import ArrayInfo, Beside
from appca.data.readers.sparse.filling import Compressed

_PARTS = ("data", "indices", "indptr", "shape", "barcodes")


class Counts(NamedTuple):
    """A matrix of cells by genes, and their names."""

    matrix: Compressed
    cells: Beside
    genes: list[str]


def place_of(arrays: Mapping[str, ArrayInfo]) -> str | None:
    """Return the group with the counts; None where the file is of another kind, or has several."""
    groups = {path.rpartition("/")[0] for path in arrays if path.endswith("/barcodes")}
    able = [group for group in groups if all(f"{group}/{part}" in arrays for part in _PARTS)]
    return able[0] if len(able) == 1 else None


def counts(
    group: str, arrays: Mapping[str, ArrayInfo], load: Callable[[str], np.ndarray]
) -> Counts:
    """Read the counts of Cell Ranger 3 and newer, or 2."""
    data, indices, indptr, shape, barcodes = (load(f"{group}/{part}") for part in _PARTS)
    sides = tuple(int(side) for side in np.ravel(shape)[:3])  # genes, cells
    names = (f"{group}/features/name", f"{group}/gene_names")
    genes = next((load(path) for path in names if path in arrays), None)
    fits = genes is not None and sides == (len(genes), len(barcodes))
    cells = Beside(barcodes.astype(str) if fits else None, {})
    listed = genes.astype(str).tolist() if fits and genes is not None else []
    return Counts(Compressed(sides, data, indices, indptr, by_row=False).turned(), cells, listed)
