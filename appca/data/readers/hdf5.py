"""HDF5 files, among them netCDF and counts of 10x Genomics, and MATLAB files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, Reader, ReadLimits, note, plain_file
from appca.data.readers.arrays import (
    ArrayOptions,
    Beside,
    Item,
    build,
    of_type,
    or_damaged,
    read_items,
    values_of,
)
from appca.data.readers.intake import FileReport
from appca.words import InputError, shortened

_MOST_OBJECTS = 10_000
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}  # of HDF5 itself and h5py
_NETCDF_FILL = 9.969209968386869e36  # of numbers that were never written
_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
_PACKED = {"_FillValue", "missing_value", "scale_factor", "add_offset"}  # attributes of netCDF
_OF_10X = ("data", "indices", "indptr", "shape", "barcodes")  # counts of 10x Genomics
_DAMAGED = "“{}” is not an HDF5 file or is damaged; write it again."
_HDF5 = b"\x89HDF\r\n\x1a\n"  # the start of what follows the header in version 7.3 of MATLAB
_HEADER_OF_7_3 = 512
_NUMBERS = {"double": "f8", "single": "f4", "logical": "?"}  # by classes of MATLAB
_NUMBERS |= {f"{sign}int{n}": f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)}
_MIXED = "a cell array of different things; save one matrix, or one word a cell"
_OBJECT = "a table or object of MATLAB; save it by table2array, or as CSV"


class Hdf5:
    """The arrays of an open HDF5 file, by their paths. No link is followed.

    ``report["unused"]`` receives the paths of those that cannot be read, each with the reason.
    """

    def __init__(
        self, name: str, root: Any, report: FileReport, limits: ReadLimits, *, matlab: bool
    ) -> None:
        import h5py

        self.name, self.root, self.report, self.limits = name, root, report, limits
        self.items: dict[str, Item] = {}
        self.unused: dict[str, str] = report.setdefault("unused", {})
        describe = self._of_matlab if matlab else self._described

        def visit(path: str, node: Any) -> None:
            if len(self.items) + len(self.unused) > _MOST_OBJECTS:
                msg = f"“{name}” holds more than {_MOST_OBJECTS:,} arrays; save fewer."
                raise InputError(msg)
            plain = path.encode("utf-8", "replace").decode()
            item = describe(plain, node)
            if isinstance(item, Item):
                self.items[plain] = item
            elif item:
                self.unused[plain] = item

        def visit_link(path: str, link: Any) -> None:
            if not isinstance(link, h5py.HardLink):
                self.unused[path.encode("utf-8", "replace").decode()] = "a link"

        with or_damaged(_DAMAGED.format(name)):
            root.visititems(visit)
            root.visititems_links(visit_link)

    def attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group or array; a reference is the path that it leads to."""
        import h5py

        stated = dict(self.root[path].attrs)
        for key, value in stated.items():
            if isinstance(value, h5py.Reference) and value:
                stated[key] = self.root[value].name.strip("/")
        return stated

    def _described(self, path: str, node: Any) -> Item | str:
        """Return the array of an object, or say why it is none; "" for what nobody misses."""
        import h5py

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
        return Item(tuple(node.shape), dtype, partial(self._load, path, node, dtype))

    def _load(self, path: str, node: Any, dtype: np.dtype) -> np.ndarray:
        """Read numbers or texts, whose sizes may still be refused."""
        size, texts = node.size * dtype.itemsize, np.empty(0, object)
        with or_damaged(_DAMAGED.format(self.name)):
            if dtype.kind == "U" and size <= self.limits.n_bytes:
                texts = np.array(node.asstr("utf-8", "replace")[()], object)
                size = 4 * texts.size * max(map(len, texts.ravel().tolist()))
            if size > self.limits.n_bytes:
                msg = (
                    f"“{shortened(path)}” in “{self.name}” has {size / 1e6:,.0f} MB, more than "
                    f"{self.limits.most}; keep fewer rows or columns, and write the file again."
                )
                raise InputError(msg)
            return texts.astype(str) if dtype.kind == "U" else self._unpacked(path, node, dtype)

    def _unpacked(self, path: str, node: Any, dtype: np.dtype) -> np.ndarray:
        """Apply the attributes by which netCDF packs numbers and marks those that are missing."""
        stored = np.asarray(node[()])
        said = {key: np.ravel(node.attrs[key]) for key in _PACKED & set(node.attrs)}
        said = {key: values for key, values in said.items() if values.dtype.kind in "iuf"}
        fills = [*said.get("_FillValue", ()), *said.get("missing_value", ())]
        if stored.dtype.kind == "f" and "_NCProperties" in self.root.attrs:
            fills.append(stored.dtype.type(_NETCDF_FILL))
        gaps = np.isin(stored, np.array(fills, stored.dtype)) if fills else np.zeros(1, bool)
        if not said and not gaps.any():
            return stored
        factor, offset = said.get("scale_factor"), said.get("add_offset")
        values = stored.astype(dtype if factor is None and offset is None else np.float64)
        told = []
        if gaps.any():
            told.append(f"{np.count_nonzero(gaps):,} cells with the fill value are missing")
        if factor is not None:
            values *= factor[0]
            told.append(f"multiplied by scale_factor {factor[0]:g}")
        if offset is not None:
            values += offset[0]
            told.append(f"add_offset {offset[0]:g} added")
        if told:
            note(self.report, f"Packed “{shortened(path)}”", ", ".join(told))
        if gaps.any():
            values[gaps] = np.nan
        return values

    def _of_matlab(self, path: str, node: Any) -> Item | str:
        """Describe a variable of version 7.3, in which the sides of every matrix are reversed."""
        import h5py

        kind = node.attrs.get("MATLAB_class", b"")
        kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
        variable: Item | str = _OBJECT
        if path.startswith("#") or not kind:
            variable = ""
        elif "MATLAB_sparse" in node.attrs:
            variable = "empty"
            if {"data", "ir", "jc"} <= set(node):
                shape = (int(node.attrs["MATLAB_sparse"]), len(node["jc"]) - 1)
                parts = [node[part][()] for part in ("data", "ir", "jc")]
                variable = sparse_item(lambda: parts, shape, by_columns=True)
        elif not isinstance(node, h5py.Dataset):
            variable = "" if kind == "struct" else _OBJECT
        elif node.attrs.get("MATLAB_empty", 0):
            variable = "empty"
        elif kind == "cell":
            variable = _of_cells([_cell(node.file[cell]) for cell in np.ravel(node[()])])
        elif kind == "char":
            lines = ["".join(map(chr, line)) for line in np.atleast_2d(node[()].T)]
            variable = _stored(np.array([line.rstrip(" \0") for line in lines]))
        elif kind in _NUMBERS and isinstance(item := self._described(path, node), Item):
            variable = item._replace(shape=item.shape[::-1], load=lambda: np.transpose(item.load()))
        return variable


def sparse_item(
    parts: Callable[[], Any], shape: tuple[int, int], *, by_columns: bool = False
) -> Item:
    """Return a sparse matrix by its values, indices and bounds."""

    def load() -> Any:
        from scipy import sparse

        make = sparse.csc_matrix if by_columns else sparse.csr_matrix
        return make(tuple(parts()), shape=shape)

    return Item(shape, np.dtype(np.float64), load, is_sparse=True)


@contextmanager
def opened_hdf5(
    name: str, stream: BinaryIO, report: FileReport, limits: ReadLimits, *, matlab: bool = False
) -> Iterator[Hdf5]:
    """Open a file for reading."""
    import h5py

    with or_damaged(_DAMAGED.format(name)):
        root = h5py.File(stream, "r")
    with root:
        yield Hdf5(name, root, report, limits, matlab=matlab)


def read_hdf5(name: str, file: File, options: ArrayOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one array as rows, and those with one entry per row as ids and labels.

    Types are as from NPY. Counts of 10x Genomics become rows of cells. Attributes by which netCDF
    packs numbers are applied. Links, virtual data sets and numbers in other files are not followed.
    """
    report: FileReport = {}
    with (
        plain_file(name, file, limits) as stream,
        opened_hdf5(name, stream, report, limits) as tree,
    ):
        items, unused = tree.items, tree.unused
        groups = {path.rpartition("/")[0] for path in (*items, *unused)} - {""}
        able = [group for group in groups if {f"{group}/{part}" for part in _OF_10X} <= {*items}]
        if options.array is None and len(able) == 1:
            return _counts_of_10x(name, tree, f"{able[0]}/", options)
        for group in [group for group in groups if "pandas_type" in tree.root[group].attrs]:
            for path in [path for path in (*items, *unused) if path.startswith(f"{group}/")]:
                (items if path in items else unused).pop(path)
            unused[group] = "a table of pandas; write it by frame.to_parquet('x.parquet')"
        return read_items(name, items, options, report, limits)


def _counts_of_10x(name: str, tree: Hdf5, group: str, options: ArrayOptions) -> Dataset:
    """Read counts of genes in cells, which are the rows, as Cell Ranger 2 and newer write."""
    items, report, limits = tree.items, tree.report, tree.limits
    *parts, shape, barcodes = (items[group + part].load() for part in _OF_10X)
    genes, cells = (int(side) for side in (*np.ravel(shape)[:2], 0, 0)[:2])

    def of_features(*paths: str) -> np.ndarray | None:
        stored = [items[group + path].load() for path in paths if group + path in items]
        return stored[0] if stored and len(stored[0]) == genes else None

    names, types = of_features("features/name", "gene_names"), of_features("features/feature_type")
    places = of_type(name, types, options.feature_type, report)
    X = values_of(name, sparse_item(lambda: parts, (cells, genes)), limits, places)
    others = [path for path in items if not path.startswith(group)]
    report["unused"] |= dict.fromkeys(others, "not part of the counts")
    names = names if names is None or places is None else names[places]
    ids = barcodes.astype(str) if len(barcodes) == cells else None
    features = None if names is None else names.astype(str).tolist()
    return build(name, X, Beside(ids, {}, features), options.missing, report, limits)


def read_mat(name: str, file: File, options: ArrayOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one variable as rows, and vectors or cells of text with one entry per row as labels.

    Three sides are images: (n, h, w), or with `transpose` (h, w, n).
    """
    from scipy.io import loadmat, whosmat

    report: FileReport = {"unused": {}}
    with plain_file(name, file, limits) as stream:
        start = stream.read(_HEADER_OF_7_3 + len(_HDF5))
        stream.seek(0)
        if start.startswith((_HDF5, b"MATLAB 7.3")) or start.endswith(_HDF5):
            with opened_hdf5(name, stream, report, limits, matlab=True) as tree:
                return read_items(name, tree.items, options, report, limits)
        with or_damaged(f"“{name}” is damaged or no MAT file; save it again in MATLAB with '-v7'."):
            items: dict[str, Item] = {}
            kinds = {key: kind for key, _, kind in whosmat(stream)}
            stream.seek(0)
            for key, value in loadmat(stream, spmatrix=False).items():
                dtype = _NUMBERS.get(kinds.get(key, ""))  # whole ones are written in fewer bytes
                if not key.startswith("__"):
                    is_real = dtype is not None and value.dtype.kind in "biuf"
                    stored = value.astype(dtype) if is_real else value
                    _take(key, stored, items, report["unused"])
    return read_items(name, items, options, report, limits)


def _take(key: str, value: Any, items: dict[str, Item], unused: dict[str, str]) -> None:
    """List a variable of versions up to 7, or the fields of a struct."""
    from scipy.io.matlab import MatlabFunction, MatlabObject, MatlabOpaque

    variable: Item | str
    if hasattr(value, "tocsr"):
        variable = Item(value.shape, np.dtype(np.float64), lambda: value, is_sparse=True)
    elif isinstance(value, MatlabFunction | MatlabObject | MatlabOpaque):
        variable = _OBJECT
    elif value.dtype.names and value.size == 1:
        for field in value.dtype.names:
            _take(f"{key}/{field}", value[field].item(), items, unused)
        return
    elif value.dtype.names:
        variable = "several structs; save their fields as matrices"
    elif value.dtype.hasobject:
        cells = np.ravel(value).tolist()
        variable = _of_cells(
            [cell[0] if cell.dtype.kind == "U" and cell.size == 1 else cell for cell in cells]
        )
    else:
        values = np.char.rstrip(value, " \0") if value.dtype.kind == "U" else value
        variable = _stored(values) if value.size else "empty"
    if isinstance(variable, Item):
        items[key] = variable
    else:
        unused[key] = variable


def _stored(values: np.ndarray) -> Item:
    return Item(values.shape, values.dtype, lambda: values)


def _cell(node: Any) -> Any:
    """Return what a cell of version 7.3 holds."""
    if not hasattr(node, "shape"):
        return None
    if node.attrs.get("MATLAB_empty", 0):
        return ""
    values = node[()]
    is_text = node.attrs.get("MATLAB_class") == b"char"
    return "".join(map(chr, np.ravel(values))) if is_text else values


def _of_cells(cells: list[Any]) -> Item | str:
    """Return the texts or numbers of a cell array, one in each cell."""
    sizes = [getattr(cell, "size", 1) for cell in cells]
    is_text = [isinstance(cell, str) for cell in cells]
    if not cells:
        return "empty"
    if all(text or not size for text, size in zip(is_text, sizes, strict=True)):
        return _stored(np.array([cell if isinstance(cell, str) else "" for cell in cells]))
    if set(sizes) != {1} or any(is_text):
        return _MIXED
    values = np.array([np.ravel(cell)[0] for cell in cells])
    return _stored(values) if values.dtype.kind in "Ubuif" else _MIXED


HDF5_READER = Reader(ArrayOptions, read_hdf5)
MAT_READER = Reader(ArrayOptions, read_mat)
