"""HDF5 files, among them netCDF, counts of 10x Genomics and stores of pandas, and MATLAB files."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, Reader, ReadLimits, note, plain_file
from appca.data.readers.arrays import (
    ArrayOptions,
    Beside,
    Item,
    dense,
    of_type,
    read_items,
    settled,
    unique,
)
from appca.data.readers.intake import FileReport
from appca.words import InputError, is_text, shortened

if TYPE_CHECKING:
    import h5py

_MOST_OBJECTS = 10_000
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}  # whose output is bounded
_PIECE = 64  # texts read at a time: each may be as long as the file
_NETCDF_FILL = 9.969209968386869e36  # of numbers that were never written
_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
_OF_10X = ("data", "indices", "indptr", "shape", "barcodes")  # counts of 10x Genomics


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


def items_inside(
    name: str,
    file: "h5py.File",
    report: FileReport,
    limits: ReadLimits,
    describe: "Callable[[_Node], Item | str]",
) -> dict[str, Item]:
    """List the arrays by their paths, as `describe` sees them, or says why they are not used.

    ``report["unused"]`` receives those reasons. No link is followed.
    """
    import h5py

    items: dict[str, Item] = {}
    unused: dict[str, str] = report.setdefault("unused", {})

    def visit(path: str, node: Any) -> None:
        if len(items) + len(unused) > _MOST_OBJECTS:
            msg = f"“{name}” holds more than {_MOST_OBJECTS:,} arrays; save fewer."
            raise InputError(msg)
        plain = path.encode("utf-8", "replace").decode()
        item = describe(_Node(name, plain, node, report, limits))
        if isinstance(item, Item):
            items[plain] = item
        elif item:
            unused[plain] = item

    def visit_link(path: str, link: Any) -> None:
        if not isinstance(link, h5py.HardLink):
            unused[path.encode("utf-8", "replace").decode()] = "a link"

    try:
        file.visititems(visit)
        file.visititems_links(visit_link)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # as above
        raise damaged(name) from error
    return items


class _Node(NamedTuple):
    """An object of a file."""

    file: str
    path: str
    node: Any  # of h5py
    report: FileReport
    limits: ReadLimits


def described(at: _Node) -> Item | str:
    """Return the array of an object, or say why it is none; "" for what nobody misses."""
    import h5py

    node = at.node
    if not isinstance(node, h5py.Dataset) or node.attrs.get("NAME", b"")[:52] == _DIMENSION:
        return ""
    plan = node.id.get_create_plist()
    used = [plan.get_filter(j)[0] for j in range(plan.get_nfilters())]
    odd = [code for code in used if code not in _FILTERS]
    if node.shape is None or not node.size:
        return "empty"
    if plan.get_layout() == h5py.h5d.VIRTUAL or plan.get_external_count():
        return "its numbers lie in other files"
    if odd:
        return f"packed by filter {odd[0]}; write it with gzip"
    try:
        dtype = np.dtype(node.dtype)
    except TypeError:  # a type that NumPy does not have
        dtype = np.dtype(object)
    if h5py.check_string_dtype(dtype) is not None:
        dtype = np.dtype(("U", max(1, 0 if dtype.hasobject else dtype.itemsize)))
    elif dtype.hasobject or dtype.kind not in "buifc":
        columns = f"a table of {len(dtype.names or ())} columns; save them as one matrix"
        return columns if dtype.names else "no numbers or texts"
    elif dtype.kind in "iuf" and _PACKED & set(node.attrs) and dtype != np.float32:
        dtype = np.dtype(np.float64)
    return Item(tuple(node.shape), dtype, partial(_load, at, dtype))


_PACKED = {"_FillValue", "missing_value", "scale_factor", "add_offset"}  # attributes of netCDF


def _load(at: _Node, dtype: np.dtype) -> np.ndarray:
    """Read an array, whose shape may still be refused: it, its chunks, or texts it refers to."""
    title, node, most = f"“{shortened(at.path)}” in “{at.file}”", at.node, at.limits.n_bytes
    for size, what in (
        (node.size * dtype.itemsize, "has {} MB, more than {}; keep fewer rows or columns"),
        (math.prod(node.chunks or ()) * dtype.itemsize, "has chunks of {} MB, more than {}"),
    ):
        if size > most:
            told = what.format(f"{size / 1e6:,.0f}", at.limits.most)
            msg = f"{title} {told}, and write the file again."
            raise InputError(msg)
    try:
        if dtype.kind != "U":
            return _unpacked(at, np.asarray(node[()]), dtype)
        values = _texts(node, most // 8)
    except MemoryError:
        raise
    except Exception as error:  # as above
        raise damaged(at.file) from error
    if values is None or not is_text(values):
        what = "texts that are too long" if values is None else "characters that do not exist"
        msg = f"{title} holds {what}; write it again."
        raise InputError(msg)
    return values


def _unpacked(at: _Node, stored: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Apply the attributes by which netCDF packs numbers and marks those that are missing."""
    said = {key: np.ravel(at.node.attrs[key]) for key in _PACKED & set(at.node.attrs)}
    said = {key: values for key, values in said.items() if values.dtype.kind in "iuf"}
    fills = [*said.get("_FillValue", ()), *said.get("missing_value", ())]
    if stored.dtype.kind == "f" and "_NCProperties" in at.node.file.attrs:
        fills.append(stored.dtype.type(_NETCDF_FILL))
    gaps = np.isin(stored, np.array(fills, stored.dtype)) if fills else np.zeros(1, bool)
    factor, offset = said.get("scale_factor"), said.get("add_offset")
    if not said and not gaps.any():
        return stored
    values = stored.astype(np.float64 if factor is not None or offset is not None else dtype)
    if factor is not None:
        values *= factor[0]
    if offset is not None:
        values += offset[0]
    if gaps.any():
        values[gaps] = np.nan
    parts = [
        f"{np.count_nonzero(gaps):,} cells with the fill value are missing" if gaps.any() else "",
        f"multiplied by scale_factor {factor[0]:g}" if factor is not None else "",
        f"add_offset {offset[0]:g} added" if offset is not None else "",
    ]
    if any(parts):
        note(at.report, f"Packed “{shortened(at.path)}”", ", ".join(filter(None, parts)))
    return values


def _texts(node: Any, most: int) -> np.ndarray | None:
    """Read texts, a few at a time: any number of them can be one and the same long one."""
    texts: list[str] = []
    longest = 1
    for start in range(0, len(node) if node.shape else 1, _PIECE):
        part = np.ravel(node[start : start + _PIECE] if node.shape else node[()])
        some = [
            cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
            for cell in part
        ]
        longest, texts = max(longest, *map(len, some)), texts + some
        if longest * node.size > most:
            return None
    return np.array(texts, f"U{longest}").reshape(node.shape)


def read_hdf5(name: str, file: File, options: ArrayOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one array as rows, and those with one entry per row as ids and labels.

    Types are as from NPY. Counts of 10x Genomics become rows of cells. Attributes by which netCDF
    packs numbers are applied. Links, virtual data sets and numbers in other files are not followed.
    """
    report: FileReport = {}
    with plain_file(name, file, limits) as stream, opened_hdf5(name, stream) as opened:
        items = items_inside(name, opened, report, limits, described)
        groups = {path.rpartition("/")[0] for path in items if path.endswith("/barcodes")}
        able = [group for group in groups if all(f"{group}/{part}" in items for part in _OF_10X)]
        if options.array is None and len(able) == 1:
            return _counts_of_10x(name, items, f"{able[0]}/", options, report, limits)
        _join_frames(opened, items, report)
        return read_items(name, items, options, report, limits)


def _counts_of_10x(
    name: str,
    items: dict[str, Item],
    group: str,
    options: ArrayOptions,
    report: FileReport,
    limits: ReadLimits,
) -> Dataset:
    """Read counts of genes in cells, which are the rows, as Cell Ranger 2 and newer write."""
    from scipy.sparse import csr_matrix

    data, indices, indptr, shape, barcodes = (items[group + part].load() for part in _OF_10X)
    genes, cells = (int(side) for side in (*np.ravel(shape)[:2], 0, 0)[:2])

    def of_features(*paths: str) -> np.ndarray | None:
        stored = [items[group + path].load() for path in paths if group + path in items]
        return stored[0] if stored and len(stored[0]) == genes else None

    names, types = of_features("features/name", "gene_names"), of_features("features/feature_type")
    places = of_type(name, types, options.feature_type, report)
    parts = (data, indices, indptr)
    X = dense(name, lambda: csr_matrix(parts, shape=(cells, genes)), places, limits)
    others = [path for path in items if not path.startswith(group)]
    report["unused"] |= dict.fromkeys(others, "not part of the counts")
    ids = Beside(barcodes.astype(str) if len(barcodes) == cells else None)
    chosen = None
    if names is not None:
        chosen = unique((names if places is None else names[places]).astype(str).tolist())
    return settled(name, X, ids, chosen, options.missing, report, limits)


def _join_frames(file: "h5py.File", items: dict[str, Item], report: FileReport) -> None:
    """Put one array in the place of the parts of each table that pandas has written."""
    unused = report["unused"]
    folders = {path.rpartition("/")[0] for path in (*items, *unused)}
    for path in sorted(folder for folder in folders if folder in file):
        kind = file[path].attrs.get("pandas_type")
        if kind is None:
            continue
        parts = {key: items.pop(key) for key in [*items] if key.startswith(f"{path}/")}
        for key in [key for key in unused if key.startswith(f"{path}/")]:
            del unused[key]
        if kind not in ("frame", b"frame"):
            unused[path] = "a pandas table of another format; write it in the fixed one, or Parquet"
            continue
        blocks = [key for key in parts if key.endswith("_values")]
        blocks = [key for key in blocks if parts[key].dtype.kind in "buif"]
        columns = [parts[key.replace("_values", "_items")].load().astype(str) for key in blocks]
        named = [str(name) for names in columns for name in names]
        every = parts[f"{path}/axis0"].load().astype(str).tolist()
        unused |= {f"{path}/{name}": "a column of objects" for name in every if name not in named}
        if named:
            kept = [name for name in every if name in named]
            order, values = [named.index(name) for name in kept], [parts[key] for key in blocks]
            rows = parts[f"{path}/axis1"].load()
            items[path] = Item(
                (len(rows), len(named)),
                np.result_type(*(part.dtype for part in values)),
                partial(_joined, values, order),
                kept,
                rows.astype(str) if rows.dtype.kind in "SU" else None,
            )


def _joined(parts: list[Item], order: list[int]) -> np.ndarray:
    return np.hstack([part.load() for part in parts])[:, order]


HDF5_READER = Reader(ArrayOptions, read_hdf5)

_HDF5 = b"\x89HDF\r\n\x1a\n"  # the start of what follows the header in version 7.3
_HEADER_OF_7_3 = 512
_NUMBERS = {"double": "f8", "single": "f4", "logical": "?"}
_NUMBERS |= {f"{sign}int{n}": f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)}
_MIXED = "a cell array of different things; save one matrix, or one word a cell"
_OBJECT = "a table or object of MATLAB; save it by table2array, or as CSV"


def read_mat(name: str, file: File, options: ArrayOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one variable as rows, and vectors or cells of text with one entry per row as labels.

    Three sides are images: (n, h, w), or with `transpose` (h, w, n).
    """
    report: FileReport = {"unused": {}}
    with plain_file(name, file, limits) as stream:
        start = stream.read(_HEADER_OF_7_3 + len(_HDF5))
        stream.seek(0)
        if start.startswith((_HDF5, b"MATLAB 7.3")) or start.endswith(_HDF5):
            with opened_hdf5(name, stream) as opened:
                items = items_inside(name, opened, report, limits, _of_7_3)
                return read_items(name, items, options, report, limits)
        return read_items(name, _of_5(name, stream, report, limits), options, report, limits)


def _of_7_3(at: _Node) -> Item | str:
    """Describe a variable of version 7.3, in which the sides of every matrix stand in reverse."""
    import h5py

    kind = at.node.attrs.get("MATLAB_class", b"")
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
    variable: Item | str = _OBJECT
    if at.path.startswith("#") or not kind:
        variable = ""
    elif "MATLAB_sparse" in at.node.attrs:
        variable = _sparse_of_7_3(at)
    elif not isinstance(at.node, h5py.Dataset):
        variable = "" if kind == "struct" else _OBJECT
    elif at.node.attrs.get("MATLAB_empty", 0):
        variable = "empty"
    elif kind == "cell":
        variable = _of_cells([_cell_of_7_3(at.node.file[ref]) for ref in np.ravel(at.node[()])])
    elif kind == "char":
        lines = _lines(at.node[()])
        variable = Item(lines.shape, lines.dtype, lambda: lines)
    elif kind in _NUMBERS and isinstance(item := described(at), Item):
        variable = item._replace(shape=item.shape[::-1], load=lambda: np.transpose(item.load()))
    return variable


def _cell_of_7_3(node: Any) -> Any:
    if not hasattr(node, "shape"):
        return None
    if node.attrs.get("MATLAB_empty", 0):
        return ""
    values = node[()]
    is_text = node.attrs.get("MATLAB_class") == b"char"
    return "".join(map(chr, np.ravel(values))) if is_text else values


def _lines(codes: np.ndarray) -> np.ndarray:
    """Return the texts of a matrix of characters (width, n), one for each of its n lines."""
    return np.array(["".join(map(chr, line)).rstrip(" \0") for line in np.atleast_2d(codes.T)])


def _sparse_of_7_3(at: _Node) -> Item | str:
    from scipy.sparse import csc_matrix

    if not {"data", "ir", "jc"} <= set(at.node):
        return "empty"
    shape = (int(at.node.attrs["MATLAB_sparse"]), len(at.node["jc"]) - 1)
    parts = [at.node[part][()] for part in ("data", "ir", "jc")]
    load = partial(dense, at.file, lambda: csc_matrix(tuple(parts), shape=shape), None, at.limits)
    return Item(shape, np.dtype(np.float64), load)


def _of_5(name: str, stream: BinaryIO, report: FileReport, limits: ReadLimits) -> dict[str, Item]:
    """List the variables of versions up to 7, by the sizes that the file states."""
    from scipy.io import loadmat, whosmat

    def load(key: str) -> Any:
        stream.seek(0)
        try:
            return loadmat(stream, variable_names=[key], spmatrix=False)[key]
        except Exception as error:  # SciPy fails in as many ways as there are fields
            raise _damaged_mat(name) from error

    def numbers(key: str, dtype: np.dtype) -> np.ndarray:
        values = np.asarray(load(key))
        if values.dtype.kind == "c":
            msg = f"“{shortened(key)}” in “{name}” holds complex numbers; save real ones."
            raise InputError(msg)
        return np.char.rstrip(values, " \0") if dtype.kind == "U" else values.astype(dtype)

    try:
        variables = whosmat(stream)
    except Exception as error:  # as above
        raise _damaged_mat(name) from error
    items: dict[str, Item] = {}
    for key, shape, kind in variables:
        if kind in _NUMBERS or kind == "char":
            dtype = np.dtype(_NUMBERS.get(kind, "U1"))
            items[key] = Item(shape, dtype, partial(numbers, key, dtype))
        elif kind in ("cell", "struct", "sparse"):
            _take(name, key, load(key), items, report["unused"], limits)
        else:
            report["unused"][key] = _OBJECT
    return items


def _take(
    name: str,
    key: str,
    value: Any,
    items: dict[str, Item],
    unused: dict[str, str],
    limits: ReadLimits,
) -> None:
    """List a value of MATLAB that was read: a sparse matrix, cells, or the fields of a struct."""
    variable: Item | str
    if hasattr(value, "tocsr"):
        load = partial(dense, name, lambda: value, None, limits)
        variable = Item(value.shape, np.dtype(np.float64), load)
    elif value.dtype.names:
        if value.size == 1:
            for field in value.dtype.names:
                _take(name, f"{key}/{field}", value[field].item(), items, unused, limits)
            return
        variable = "several structs; save their fields as matrices"
    elif value.dtype.hasobject:
        variable = _of_cells(
            [
                cell[0] if cell.dtype.kind == "U" and cell.size == 1 else cell
                for cell in np.ravel(value)
            ]
        )
    else:
        variable = Item(value.shape, value.dtype, lambda: value) if value.size else "empty"
    if isinstance(variable, Item):
        items[key] = variable
    else:
        unused[key] = variable


def _of_cells(cells: list[Any]) -> Item | str:
    """Return the texts or numbers of a cell array, one in each cell."""
    sizes = {getattr(cell, "size", 1) for cell in cells}
    empty = [not getattr(cell, "size", 1) for cell in cells]
    texts = [isinstance(cell, str) or none for cell, none in zip(cells, empty, strict=True)]
    if cells and all(texts):
        words = ["" if none else str(cell) for cell, none in zip(cells, empty, strict=True)]
        values = np.array(words)
    elif cells and sizes == {1} and not any(isinstance(cell, str) for cell in cells):
        values = np.array([np.ravel(cell)[0] for cell in cells])
    else:
        return _MIXED if cells else "empty"
    return (
        Item(values.shape, values.dtype, lambda: values) if values.dtype.kind in "Ubuif" else _MIXED
    )


def _damaged_mat(name: str) -> InputError:
    return InputError(f"“{name}” is damaged or no MAT file; save it again in MATLAB with '-v7'.")


MAT_READER = Reader(ArrayOptions, read_mat)
