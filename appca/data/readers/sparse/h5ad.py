"""Annotated data (AnnData) in .h5ad files: X, a layer or a representation, with its `obs`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from appca.data.annotated import HIGHLY_VARIABLE, MOST_CATEGORIES
from appca.data.dataset import Dataset
from appca.data.readers.arrays import hdf5_contents
from appca.data.readers.arrays.choice import ArrayInfo, Beside, check_array, choose, native
from appca.data.readers.intake import FileReport
from appca.data.readers.reader import Reader
from appca.data.readers.source import LIMITS, File, ReadLimits, plain_file
from appca.data.readers.sparse.filling import Compressed, build, check_rows, filled, unique
from appca.words.errors import InputError, unknown
from appca.words.wording import shortened

_SPARSE = ("data", "indices", "indptr")


class H5adOptions(NamedTuple):
    """How to read annotated data."""

    array: str | None = None  # X, layers/NAME or obsm/NAME; None takes X
    ids: str | None = None  # a column of obs; None takes its index
    labels: tuple[str, ...] | None = None  # columns of obs; None takes all that can be
    mask_var: str | None = HIGHLY_VARIABLE  # a column of var, where there is one; None takes all
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN


class Contents(NamedTuple):
    """The arrays of annotated data, read when they are asked for."""

    name: str
    infos: Mapping[str, ArrayInfo]  # by path
    load: Callable[[str], np.ndarray]  # an array by its path
    attributes: Callable[[str], Mapping[str, Any]]  # what is said of a group or array
    damaged: Callable[[str], InputError]
    limits: ReadLimits

    def attribute(self, path: str, key: str) -> Any:
        """Return what is said of a group or array; None where nothing is."""
        try:
            return self.attributes(path).get(key)
        except Exception as error:  # libraries fail in as many ways as there are fields
            raise self.damaged(self.name) from error

    def is_sparse(self, path: str) -> bool:
        """Whether a group holds a sparse matrix."""
        return all(f"{path}/{part}" in self.infos for part in _SPARSE)

    def compressed(self, path: str) -> Compressed:
        """Read a sparse matrix."""
        shape = self._shape(path)
        kind = str(self.attribute(path, "encoding-type") or self.attribute(path, "h5sparse_format"))
        data, indices, indptr = (self.load(f"{path}/{part}") for part in _SPARSE)
        return Compressed(shape, data, indices, indptr, by_row="csc" not in kind)

    def _shape(self, path: str) -> tuple[int, ...]:
        stated = self.attribute(path, "shape")
        stated = self.attribute(path, "h5sparse_shape") if stated is None else stated
        sides = np.ravel([] if stated is None else stated)
        if sides.dtype.kind not in "ui" or sides.shape != (2,):
            raise self.damaged(self.name)
        return int(sides[0]), int(sides[1])

    def matrices(self) -> dict[str, ArrayInfo]:
        """List what may be fitted: X, layers and representations."""
        infos: dict[str, ArrayInfo] = {}
        for path in self.infos:
            folder = path.rpartition("/")[0]
            place = folder if path.endswith("/data") and self.is_sparse(folder) else path
            can_be_fitted = place == "X" or (
                place.count("/") == 1 and place.startswith(("layers/", "obsm/"))
            )
            if not can_be_fitted:
                continue
            info = self.infos[path]
            infos[place] = info if place == path else info._replace(shape=self._shape(place))
        return {path: info for path, info in infos.items() if len(info.shape) == 2}

    def index_path(self, table: str) -> str:
        """Return the path of the names of rows of obs or var.

        Raises
        ------
        InputError
            When there is none, as in files of anndata before 0.7.
        """
        walked = any(path.startswith(f"{table}/") for path in self.infos)  # so it is no link
        key = self.attribute(table, "_index") if walked else None
        key = _text(key or "_index")
        if f"{table}/{key}" not in self.infos:
            msg = (
                f"“{self.name}” has no names in {table}, so no file of anndata 0.7 or newer wrote "
                "it; read it with anndata and write it again."
            )
            raise InputError(msg)
        return f"{table}/{key}"

    def names(self, table: str) -> list[str]:
        """Return the names of the rows of obs or var, made unique as in a data set."""
        return unique(self.load(self.index_path(table)).astype(str).tolist())

    def columns(self, table: str, n: int) -> dict[str, str]:
        """List the columns of obs or var that have one value for each of n rows: name to path."""
        paths, index = {}, self.index_path(table)
        for path, info in self.infos.items():
            parts = path.split("/")
            of_table = parts[0] == table and path != index and info.shape == (n,)
            if of_table and (len(parts) == 2 or parts[2:] in (["codes"], ["values"])):
                paths[parts[1]] = f"{table}/{parts[1]}"
        return paths

    def column(self, path: str) -> np.ndarray:
        """Read a column: numbers, NaN where missing, or texts, empty where missing."""
        if f"{path}/codes" in self.infos and f"{path}/categories" in self.infos:
            codes = self.load(f"{path}/codes").astype(np.int64)
            names = np.append(self.load(f"{path}/categories").astype(str), "")
            if (codes >= len(names) - 1).any():
                raise self.damaged(self.name)
            return names[np.where(codes < 0, len(names) - 1, codes)]
        if f"{path}/values" not in self.infos:
            return _plain(self.load(path))
        values = self.load(f"{path}/values")
        masked = f"{path}/mask" in self.infos
        mask = self.load(f"{path}/mask") if masked else np.zeros(len(values), bool)
        if mask.shape != values.shape or mask.dtype != bool:
            raise self.damaged(self.name)
        numbers = values.dtype.kind in "uif"
        return _plain(
            np.where(mask, np.nan if numbers else "", values if numbers else values.astype(str))
        )


def read(name: str, file: File, options: H5adOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read X, a layer or a representation as rows, and columns of `obs` as labels.

    Row names are those of `obs`, features those of `var`. Sparse matrices are filled with their
    zeros.
    """
    with opened(name, file, limits) as contents:
        return read_contents(contents, options)


def read_contents(contents: Contents, options: H5adOptions) -> Dataset:
    """Read annotated data, however they are stored; see `read`."""
    report: FileReport = {}
    name, limits = contents.name, contents.limits
    matrices = contents.matrices()
    wanted = choose(name, matrices, options.array, report, limits)
    n, d = matrices[wanted].shape
    check_rows(wanted, (n, d), limits)
    features = None if wanted.startswith("obsm/") else contents.load(contents.index_path("var"))
    if features is not None and features.shape != (d,):
        raise contents.damaged(name)
    columns = None if features is None else _marked(contents, options, d, report)
    X = _values(contents, wanted, matrices[wanted], columns)
    report |= {"array": wanted, "dtype": str(matrices[wanted].dtype)}
    named = _named(contents, options, n, report)
    names = None
    if features is not None:
        names = (features if columns is None else features[columns]).astype(str).tolist()
    return build(name, X, named, names, options.missing, report, limits)


@contextmanager
def opened(name: str, file: File, limits: ReadLimits) -> Iterator[Contents]:
    """Open an .h5ad file; of what cannot be read in it nothing is said, for most is not needed."""
    with plain_file(name, file, limits) as stream, hdf5_contents.opened(name, stream) as root:
        items = hdf5_contents.arrays(name, root, {})
        yield Contents(
            name,
            {path: item.info for path, item in items.items()},
            lambda path: hdf5_contents.load(name, path, items[path], limits),
            lambda path: root[path].attrs,
            hdf5_contents.damaged,
            limits,
        )


def _values(
    contents: Contents, path: str, info: ArrayInfo, columns: np.ndarray | None
) -> np.ndarray:
    if contents.is_sparse(path):
        return filled(contents.name, contents.compressed(path), columns, contents.limits)
    check_array(path, info, contents.limits)
    values = native(contents.load(path))
    return values if columns is None else np.ascontiguousarray(values[:, columns])


def _marked(
    contents: Contents, options: H5adOptions, d: int, report: FileReport
) -> np.ndarray | None:
    """Return the places of the variables that are marked; None where all are read."""
    if options.mask_var is None:
        return None
    columns = contents.columns("var", d)
    if options.mask_var not in columns:
        if options.mask_var == HIGHLY_VARIABLE:
            return None
        error = unknown("column", options.mask_var, columns, f" in var of “{contents.name}”")
        raise error
    marks = contents.column(columns[options.mask_var])
    places = np.flatnonzero(marks if marks.dtype == bool else marks == "True")
    if len(places) < 2:
        msg = (
            f"“{shortened(options.mask_var)}” in var of “{contents.name}” marks {len(places)} of "
            f"{d:,} variables; at least 2 are needed, so read all by mask_var=null."
        )
        raise InputError(msg)
    report["marked"] = {"column": options.mask_var, "of": d}
    return places


def _named(contents: Contents, options: H5adOptions, n: int, report: FileReport) -> Beside:
    columns = contents.columns("obs", n)
    for key in [*filter(None, [options.ids]), *(options.labels or ())]:
        if key not in columns:
            error = unknown("column", key, columns, f" in obs of “{contents.name}”")
            raise error
    ids = contents.load(contents.index_path("obs")) if options.ids is None else None
    if ids is None:
        ids = contents.column(columns[str(options.ids)])
    if ids.shape != (n,):
        raise contents.damaged(contents.name)
    if options.labels is not None:
        chosen = {key: contents.column(columns[key]) for key in options.labels}
        return Beside(ids.astype(str), chosen)
    stated = np.ravel(contents.attribute("obs", "column-order")).tolist()
    place = {_text(name): i for i, name in enumerate(stated)}
    labels = {
        key: contents.column(columns[key])
        for key in sorted(columns, key=lambda key: place.get(key, len(place)))
        if key != options.ids
    }
    numbers = {key for key, column in labels.items() if column.dtype.kind in "uif"}
    kept = [key for key in labels if key not in numbers and _is_few(labels[key])]
    kept += [key for key in labels if key in numbers]
    report["obs"] = kept
    return Beside(ids.astype(str), {key: labels[key] for key in kept})


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _is_few(column: np.ndarray) -> bool:
    return len(np.unique(column)) <= MOST_CATEGORIES


def _plain(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return np.where(np.isfinite(values), values, np.nan)
    return values if values.dtype.kind in "uibU" else values.astype(str)


READER = Reader(H5adOptions, read)
