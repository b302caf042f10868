"""Annotated data: H5AD files and Zarr stores."""

import json
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from appca.data.annotated import HIGHLY_VARIABLE, MOST_CATEGORIES
from appca.data.dataset import Dataset
from appca.data.files import (
    LIMITS,
    File,
    Reader,
    ReadLimits,
    chunks_of,
    content,
    file_stream,
    members,
    plain_file,
)
from appca.data.readers import hdf5
from appca.data.readers.arrays import (
    ArrayInfo,
    Beside,
    Compressed,
    build_sparse,
    check_array,
    check_rows,
    choose,
    filled,
    native,
    unique,
)
from appca.data.readers.intake import FileReport
from appca.words import InputError, is_text, shortened, unknown

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


def read_h5ad(name: str, file: File, options: H5adOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read X, a layer or a representation as rows, and columns of `obs` as labels.

    Row names are those of `obs`, features those of `var`. Sparse matrices are filled with their
    zeros.
    """
    with opened_h5ad(name, file, limits) as contents:
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
    return build_sparse(name, X, named, names, options.missing, report, limits)


@contextmanager
def opened_h5ad(name: str, file: File, limits: ReadLimits) -> Iterator[Contents]:
    """Open an .h5ad file; of what cannot be read in it nothing is said, for most is not needed."""
    with plain_file(name, file, limits) as stream, hdf5.opened_hdf5(name, stream) as root:
        items = hdf5.arrays_inside(name, root, {})
        yield Contents(
            name,
            {path: item.info for path, item in items.items()},
            lambda path: hdf5.load_array(name, path, items[path], limits),
            lambda path: root[path].attrs,
            hdf5.damaged,
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


H5AD_READER = Reader(H5adOptions, read_h5ad)


_DEEPEST = 16
_DESCRIPTIONS = (".zarray", ".zgroup", ".zmetadata", "zarr.json")
_PACKING = ("filters", "compressor", "codecs", "index_codecs")
_CODECS = {
    *("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd", "crc32", "crc32c", "shuffle"),
    *("bytes", "delta", "fixedscaleoffset", "sharding_indexed", "transpose", "vlen-utf8"),
}


def read_zarr(name: str, file: File, options: H5adOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read annotated data as from .h5ad, or the rows of an array."""
    import zarr

    with opened_zarr(name, file, limits) as root:
        if isinstance(root, zarr.Array):
            return _rows(name, root, options, limits)
        return read_contents(contents_of(name, root, limits), options)


def contents_of(name: str, root: Any, limits: ReadLimits) -> Contents:
    """Return the annotated data in a group that `opened` yields."""
    arrays = _arrays(name, root)
    if not any(path.startswith("obs/") for path in arrays):
        msg = f"“{name}” holds neither AnnData nor a single array; give the store of one array."
        raise InputError(msg)
    infos = {path: _info(array) for path, array in arrays.items()}
    return Contents(
        name,
        {path: info for path, info in infos.items() if info is not None},
        lambda path: _load(name, arrays[path], limits),
        lambda path: root[path].attrs,
        _damaged,
        limits,
    )


def packed(store: Path) -> BinaryIO:
    """Return a temporary file, a zip of a store in a folder; equal stores make equal files."""
    kept = TemporaryFile()  # noqa: SIM115 (the caller closes it)
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(path for path in store.rglob("*") if path.is_file()):
            named = zipfile.ZipInfo(path.relative_to(store).as_posix())  # without a date
            archive.writestr(named, path.read_bytes())
    return cast("BinaryIO", kept)


def _rows(name: str, array: Any, options: H5adOptions, limits: ReadLimits) -> Dataset:
    info = _info(array)
    if info is None or info.dtype.kind == "U":
        msg = f"“{name}” must hold numbers, but holds {array.dtype}; convert it first."
        raise InputError(msg)
    check_rows(name, info.shape, limits)
    check_array(name, info, limits)
    X = native(_load(name, array, limits))
    report: FileReport = {"dtype": str(info.dtype)}
    return build_sparse(name, X, Beside(None, {}), None, options.missing, report, limits)


@contextmanager
def opened_zarr(name: str, file: File, limits: ReadLimits) -> Iterator[Any]:
    """Open the group or array at the root of a zip or a folder, after checking what it claims."""
    import zarr

    if isinstance(file, (str, Path)) and Path(file).is_dir():
        paths = (path for path in Path(file).rglob("*") if path.name in _DESCRIPTIONS)
        _check_codecs(name, (path.read_bytes() for path in paths))
        yield zarr.open(file, mode="r", use_consolidated=False)
        return
    with file_stream(name, file, limits) as stream:
        archive, _ = members(name, stream, limits)
        folder = root_of(archive)
        texts = [item for item in archive.infolist() if _last(item.filename) in _DESCRIPTIONS]
        _check_codecs(name, (content(name, archive, item) for item in texts))
        stream.seek(0)
        path = str(file)
        if not isinstance(file, (str, Path)):  # the library opens nothing else
            kept = NamedTemporaryFile(dir=limits.scratch)  # noqa: SIM115 (it ends with the block)
            kept.writelines(chunks_of(stream))
            kept.flush()
            path = kept.name
        try:
            store = zarr.storage.ZipStore(path, mode="r")
            root = zarr.open(store=store, path=folder, mode="r", use_consolidated=False)
        except Exception as error:  # the library fails in as many ways as there are fields
            raise _damaged(name) from error
        try:
            yield root
        finally:
            store.close()


def root_of(archive: zipfile.ZipFile) -> str:
    """Return the folder of the store in a zip, "" where it is not in one."""
    names = [item for item in archive.namelist() if _last(item) in _DESCRIPTIONS]
    return min((item.rpartition("/")[0] for item in names), key=len, default="")


def _check_codecs(name: str, texts: Iterable[bytes]) -> None:
    """Refuse arrays packed by a codec that is not among the usual ones: "pickle" runs code."""
    for text in texts:
        try:
            codecs = set(_codecs(json.loads(text)))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(name) from error
        if not codecs <= _CODECS:
            codec = shortened(min(codecs - _CODECS))
            msg = f"“{name}” is packed by the codec “{codec}”; use Blosc, Zstandard or gzip."
            raise InputError(msg)


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _codecs(described: Any) -> Iterator[str]:
    """Yield the names of all codecs in a description of arrays, consolidated ones among them."""
    if isinstance(described, list):
        for part in described:
            yield from _codecs(part)
    elif isinstance(described, dict):
        for key, value in described.items():
            if key in _PACKING and value is not None:
                for codec in value if isinstance(value, list) else [value]:
                    yield str(codec.get("id") or codec.get("name"))
            yield from _codecs(value)


def _arrays(name: str, root: Any) -> dict[str, Any]:
    import zarr

    try:
        inside = dict(root.members(max_depth=_DEEPEST))
    except Exception as error:  # as above
        raise _damaged(name) from error
    return {path: item for path, item in inside.items() if isinstance(item, zarr.Array)}


def _info(array: Any) -> ArrayInfo | None:
    """Return shape and type of numbers or texts; None of anything else."""
    kind = array.dtype.kind
    if kind in "OTU":
        return ArrayInfo(tuple(array.shape), np.dtype("U1"))
    return ArrayInfo(tuple(array.shape), np.dtype(array.dtype)) if kind in "buif" else None


def _load(name: str, array: Any, limits: ReadLimits) -> np.ndarray:
    """Read an array whose sides were checked; texts become those of NumPy."""
    most = max(math.prod(array.shape), math.prod(array.chunks)) * max(1, array.dtype.itemsize)
    if most > limits.n_bytes:
        msg = (
            f"An array in “{name}” has {most / 1e6:,.0f} MB, or chunks of as many, more than "
            f"{limits.most}; keep fewer rows or columns, and write the store again."
        )
        raise InputError(msg)
    try:
        values = np.asarray(array[...])
        if values.dtype.kind in "OT":
            values = _texts(values, limits)
    except InputError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # as above
        raise _damaged(name) from error
    if not is_text(values):
        msg = f"“{shortened(array.path)}” in “{name}” contains invalid Unicode; save it again."
        raise InputError(msg)
    return values


def _texts(values: np.ndarray, limits: ReadLimits) -> np.ndarray:
    texts = [str(text) for text in values.ravel().tolist()]
    if len(texts) * max(map(len, texts), default=1) > limits.n_bytes // 8:
        msg = "The store holds texts that are too long; write shorter ones."
        raise InputError(msg)
    return np.array(texts, str).reshape(values.shape)


def _damaged(name: str) -> InputError:
    return InputError(f"“{name}” is not a Zarr store in a zip, or is damaged; save it again.")


ZARR_READER = Reader(H5adOptions, read_zarr)
