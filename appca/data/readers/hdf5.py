"""HDF5 files and MATLAB files.

Those of version 7.3 are HDF5 files, in which the sides of every matrix stand in reverse.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, Reader, ReadLimits, plain_file
from appca.data.pixels import PixelShape, check_length, pixel_order
from appca.data.readers.arrays import (
    ArrayInfo,
    Beside,
    Compressed,
    RowNames,
    beside,
    build,
    check_array,
    choose,
    filled,
    native,
)
from appca.data.readers.arrays import build_sparse as sparse_build
from appca.data.readers.intake import FileReport
from appca.words import InputError, is_text, shortened

if TYPE_CHECKING:
    import h5py

_MOST_OBJECTS, _DEEPEST = 10_000, 16
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}  # whose output is bounded
_PIECE = 64  # texts read at a time: each may be as long as the file


class Hdf5Array(NamedTuple):
    """An array as the file states it."""

    info: ArrayInfo
    dataset: Any  # of h5py
    chunk_bytes: int  # that are unpacked at a time


def opened_hdf5(name: str, stream: BinaryIO) -> "h5py.File":
    """Open a file for reading."""
    import h5py

    try:
        return h5py.File(stream, "r")
    except Exception as error:  # the library fails in as many ways as there are fields
        raise damaged(name) from error


def damaged(name: str) -> InputError:
    """Return the sentence for a file that cannot be read."""
    return InputError(f"“{name}” is not an HDF5 file or is damaged; write it again.")


def arrays_inside(name: str, file: "h5py.File", report: FileReport) -> dict[str, Hdf5Array]:
    """List the arrays by their paths; ``report["unused"]`` says what was left out, and why."""
    usable: dict[str, Hdf5Array] = {}
    unused: dict[str, str] = {}
    try:
        for path, dataset, why in _walk(name, file):
            described = None if why else _described(dataset)
            if described is None or isinstance(described, str):
                unused[path] = why or described or "no numbers or texts"
            else:
                usable[path] = described
    except InputError:
        raise
    except Exception as error:  # as above
        raise damaged(name) from error
    report["unused"] = unused
    return usable


def load_array(name: str, path: str, item: Hdf5Array, limits: ReadLimits) -> np.ndarray:
    """Read an array whose size was checked.

    Raises InputError when it, its chunks, or the texts it refers to are larger than allowed.
    """
    size = math.prod(item.info.shape) * item.info.dtype.itemsize
    if size > limits.n_bytes:
        msg = (
            f"“{shortened(path)}” in “{name}” has {size / 1e6:,.0f} MB, more than {limits.most}; "
            "keep fewer rows or columns, and write the file again."
        )
        raise InputError(msg)
    if item.chunk_bytes > limits.n_bytes:
        msg = (
            f"The chunks of “{shortened(path)}” in “{name}” unpack to {item.chunk_bytes / 1e6:,.0f}"
            f" MB each, more than {limits.most}; write it in smaller ones."
        )
        raise InputError(msg)
    try:
        if item.info.dtype.kind != "U":
            return np.asarray(item.dataset[()])
        values = _texts(item.dataset, limits.n_bytes // 8)
    except Exception as error:  # as above
        raise damaged(name) from error
    if values is None or not is_text(values):
        what = "texts that are too long" if values is None else "characters that do not exist"
        msg = f"“{shortened(path)}” in “{name}” holds {what}; write it again."
        raise InputError(msg)
    return values


def _walk(name: str, file: "h5py.File") -> Iterator[tuple[str, Any, str]]:
    """Yield path, data set and why it is left out, if it is; each object once."""
    import h5py

    waiting: list[tuple[str, Any, int]] = [("", file["/"], 0)]
    seen = {h5py.h5o.get_info(file["/"].id).addr}
    while waiting:
        above, group, depth = waiting.pop()
        for key in group:
            link = group.get(key, getlink=True)
            text = key if isinstance(key, str) else key.decode("utf-8", "replace")
            path = f"{above}{text}".encode("utf-8", "replace").decode()
            if not isinstance(link, h5py.HardLink):
                yield path, None, "a link"
                continue
            about = h5py.h5o.get_info(group.id, key.encode("utf-8", "surrogateescape"))
            if about.addr in seen:
                continue
            seen.add(about.addr)
            if len(seen) > _MOST_OBJECTS:
                msg = f"“{name}” holds more than {_MOST_OBJECTS:,} arrays and groups; save fewer."
                raise InputError(msg)
            if about.type == h5py.h5o.TYPE_GROUP and depth < _DEEPEST:
                waiting.append((f"{path}/", group[key], depth + 1))
            elif about.type == h5py.h5o.TYPE_DATASET:
                dataset = group[key]
                yield path, dataset, _elsewhere(dataset)


def _elsewhere(dataset: Any) -> str:
    """Say why a data set must not be looked into; nothing where its numbers lie in the file."""
    import h5py

    plan = dataset.id.get_create_plist()
    if plan.get_layout() == h5py.h5d.VIRTUAL or plan.get_external_count():
        return "its numbers lie in other files"
    used = [plan.get_filter(j)[0] for j in range(plan.get_nfilters())]
    unknown = [code for code in used if code not in _FILTERS]
    return f"packed by filter {unknown[0]}; write it with gzip" if unknown else ""


def _described(dataset: Any) -> Hdf5Array | str:
    import h5py

    if dataset.shape is None:
        return "empty"
    try:
        dtype = np.dtype(dataset.dtype)
    except TypeError:  # a type that NumPy does not have
        return "no numbers or texts"
    if h5py.check_string_dtype(dtype) is not None:
        dtype = np.dtype(("U", max(1, 0 if dtype.hasobject else dtype.itemsize)))
    elif dtype.hasobject or dtype.kind not in "buif":
        return "no numbers or texts"
    chunk = math.prod(dataset.chunks or ()) * dtype.itemsize
    return Hdf5Array(ArrayInfo(tuple(dataset.shape), dtype), dataset, chunk)


def _texts(dataset: Any, most: int) -> np.ndarray | None:
    """Read texts, a few at a time: any number of them can be one and the same long one."""
    texts_read: list[str] = []
    longest = 1
    for start in range(0, math.prod(dataset.shape), _PIECE):
        part = np.ravel(dataset[start : start + _PIECE])
        texts = [
            cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
            for cell in part
        ]
        longest = max(longest, *map(len, texts))
        texts_read += texts
        if longest * len(dataset) > most:
            return None
    return np.array(texts_read, f"U{longest}").reshape(dataset.shape)


_OF_10X = ("data", "indices", "indptr", "shape", "barcodes")  # counts of 10x Genomics


class Hdf5Options(NamedTuple):
    """How to read an HDF5 file; arrays are named by their paths, such as ``train/X``."""

    array: str | None = None  # the one with the rows; None takes X, or the only one it can be
    ids: str | None = None  # the array that names the rows; None looks for one
    labels: tuple[str, ...] | None = None  # arrays with one entry a row; None looks for them
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


def read_hdf5(name: str, file: File, options: Hdf5Options, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one array as rows, and those with one entry per row as ids and labels.

    Types are as from NPY. Counts of 10x Genomics become rows of cells. Links, virtual data sets and
    numbers kept in other files are not followed.
    """
    report: FileReport = {}
    with plain_file(name, file, limits) as stream, opened_hdf5(name, stream) as opened:
        inside = arrays_inside(name, opened, report)
        arrays = {path: item.info for path, item in inside.items()}

        def load(path: str) -> np.ndarray:
            return load_array(name, path, inside[path], limits)

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


HDF5_READER = Reader(Hdf5Options, read_hdf5)


_HDF5 = b"\x89HDF\r\n\x1a\n"  # the start of what follows the header in version 7.3
_HEADER, _HEADER_OF_7_3 = 128, 512
_NUMBERS = {"double": "f8", "single": "f4", "logical": "?"}
_NUMBERS |= {
    f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


class MatVariables(NamedTuple):
    """What is in a file, and how to get at it."""

    arrays: dict[str, ArrayInfo]
    load: Callable[[str], np.ndarray]


class MatOptions(NamedTuple):
    """How to read a MAT file."""

    array: str | None = None  # the variable with the rows; None takes X, or the only one it can be
    transpose: bool = False  # each column of the variable is a row, as MATLAB's tools often have it
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) when rows are images
    by_column: bool = True  # pixels run down the columns of the image, as in MATLAB's img(:)


def read_mat(name: str, file: File, options: MatOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one variable as rows, and vectors with one entry per row as labels.

    Three sides are images: (n, h, w), or with `transpose` (h, w, n). With `image_shape`, pixels are
    put in row-major order.
    """
    report: FileReport = {}
    with (
        plain_file(name, file, limits) as stream,
        _opened(name, stream, report, limits) as (arrays, load),
    ):
        wanted = choose(name, arrays, options.array, report, limits)
        *front, last = arrays[wanted].shape
        turned = arrays[wanted]._replace(shape=(last, *front))
        check_array(shortened(wanted), turned if options.transpose else arrays[wanted], limits)
        report |= {"array": wanted, "dtype": str(arrays[wanted].dtype)}
        rows = load(wanted)
        matrix = native(np.moveaxis(rows, -1, 0) if options.transpose else rows)
        named = RowNames(name, wanted, len(matrix))
        named_rows = beside(named, arrays, load, report, limits)
    matrix = _row_major(matrix, options)
    return build(name, matrix, named_rows, options.missing, options.image_shape, report, limits)


@contextmanager
def _opened(
    name: str, stream: BinaryIO, report: FileReport, limits: ReadLimits
) -> Iterator[MatVariables]:
    """Open a file of either kind."""
    start = stream.read(_HEADER_OF_7_3 + len(_HDF5))
    if start.startswith((_HDF5, b"MATLAB 7.3")) or start.endswith(_HDF5):
        stream.seek(0)
        with opened_hdf5(name, stream) as file:
            yield _of_7_3(name, arrays_inside(name, file, report), limits)
        return
    if len(start) < _HEADER or start[126:128] not in (b"IM", b"MI"):
        msg = f"“{name}” is not a MAT file of version 5 or later; save it in MATLAB with '-v7'."
        raise InputError(msg)
    inside = _contents(name, stream)
    yield MatVariables(inside, lambda key: _load(name, stream, key, inside[key].dtype))


def _of_7_3(name: str, inside: dict[str, Hdf5Array], limits: ReadLimits) -> MatVariables:
    arrays = {}
    for key, array in inside.items():
        kind = array.dataset.attrs.get("MATLAB_class", b"")
        kind = kind.decode("latin-1") if isinstance(kind, bytes) else kind
        if not key.startswith("#") and kind in _NUMBERS:
            arrays[key] = array.info._replace(shape=array.info.shape[::-1])
    return MatVariables(
        arrays, lambda key: np.transpose(load_array(name, key, inside[key], limits))
    )


def _contents(name: str, stream: BinaryIO) -> dict[str, ArrayInfo]:
    """List the variables that are numbers or text, by the sizes that the file states."""
    from scipy.io import whosmat

    stream.seek(0)
    try:
        variables = whosmat(stream)
    except Exception as error:  # SciPy fails in as many ways as there are fields
        raise _damaged(name) from error
    arrays = {}
    for key, shape, kind in variables:
        if kind in _NUMBERS or kind == "char":
            arrays[key] = ArrayInfo(shape, np.dtype(_NUMBERS.get(kind, "U1")))
    return arrays


def _load(name: str, stream: BinaryIO, key: str, dtype: np.dtype) -> np.ndarray:
    from scipy.io import loadmat

    stream.seek(0)
    try:
        values = np.asarray(loadmat(stream, variable_names=[key])[key])
    except Exception as error:  # as above
        raise _damaged(name) from error
    if values.dtype.kind == "c":
        msg = f"“{shortened(key)}” in “{name}” holds complex numbers; save real ones."
        raise InputError(msg)
    return np.char.rstrip(values, " \0") if dtype.kind == "U" else values.astype(dtype)


def _damaged(name: str) -> InputError:
    return InputError(f"“{name}” is damaged or no MAT file; save it again in MATLAB with '-v7'.")


def _row_major(values: np.ndarray, options: MatOptions) -> np.ndarray:
    """Bring pixels that run down an image's columns into the order of its rows."""
    if not (options.image_shape and options.by_column and values.ndim == 2):
        return values
    h, w, *colour = options.image_shape
    shape = PixelShape(h, w, int(np.prod(colour)), by_column=True)
    check_length(shape, values.shape[1])
    return np.ascontiguousarray(values[:, pixel_order(shape)])


MAT_READER = Reader(MatOptions, read_mat)
