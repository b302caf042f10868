"""Readers of arrays: NPY, NPZ, IDX, HDF5 and MATLAB files, with their shared parts."""

import io
import math
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from appca.data import files as uploads
from appca.data.dataset import DTYPES, Dataset, NumberedNames
from appca.data.files import LIMITS, File, Files, Reader, ReadLimits
from appca.data.readers.intake import Beside, Upload, data_set
from appca.frames import distinct_names
from appca.storage.packed import npy_header
from appca.words import InputError, counted, refuse_if, refuse_unknown, shortened, unknown

Sides = tuple[int, ...]
_MOST_LISTED = 6
_FEWER = "take fewer rows or smaller images"
_EXACT, _EXACT_IN_FLOAT32 = 2.0**53, 1 << 24  # smaller whole numbers are exact in float64, float32
_ID_NAMES = ("ids", "id")
_FEW_NAMES = 4  # this many distinct strings are classes even if rows are few
_MASKS = ("mask", "missing", "{}_mask", "{}_missing")
_LABEL_NAMES = "label_names"
_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_NO_NPY = "is not an NPY file; save it with numpy.save"
_SPARSE = {"format", "shape"}  # arrays in every file of `scipy.sparse.save_npz`
GENES = "Gene Expression"


class Item(NamedTuple):
    """An array in a file, as the file describes it, and how to read it."""

    shape: tuple[int, ...]
    dtype: np.dtype
    load: Callable[[], Any]
    is_sparse: bool = False


class ArrayOptions(NamedTuple):
    """How to read a file of several arrays; arrays in groups have names like ``train/X``."""

    array: str | None = None  # array with the rows; None: X, or the only matrix
    transpose: bool = False
    ids: str | None = None  # array of row names; None: guess, "": none
    label: str | None = None  # single label to use; None: all, "": none
    missing: str = "refuse"  # or "model", "mean", "drop"
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images
    feature_type: str | None = None  # of 10x counts; None: gene expression, "all": all


class NpyOptions(NamedTuple):
    """How to read a single array: an NPY or IDX file."""

    missing: str = "refuse"  # or "model", "mean", "drop"
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


def read_items(upload: Upload, items: Mapping[str, Item], options: ArrayOptions) -> Dataset:
    """Read one array as rows, and vectors with one entry per row as ids and labels."""
    report, unused = upload.report, upload.report["unused"]
    wanted = choose(upload, items, options.array)
    item = items[wanted]
    turned = item.shape[-1:] + item.shape[:-1] if options.transpose else item.shape
    check_array(shortened(wanted), turned, item.dtype, upload.limits)
    values = values_of(upload, item)
    for key in (mask.format(wanted) for mask in _MASKS):
        if key in items and items[key].shape == item.shape and items[key].dtype == bool:
            values = np.where(items[key].load(), np.nan, values)
            uploads.note(report, "Masked", f"cells marked by “{key}” are missing")
            items = {other: kept for other, kept in items.items() if other != key}
    values = native(np.moveaxis(values, -1, 0) if options.transpose else values)
    report |= {"array": wanted, "dtype": str(item.dtype)}
    named = _beside(upload, items, wanted, values.shape, options)
    for key, other in items.items():
        if key != wanted and key not in unused and not _is_vector(other):
            choice = f"another matrix; read it with array={key}"
            is_matrix = _is_matrix(other, 1)
            unused[key] = choice if is_matrix else f"{sides_of(other.shape)}, not a numeric matrix"
    return build(upload, values, named, options.missing, options.image_shape)


def choose(upload: Upload, items: Mapping[str, Item], wanted: str | None) -> str:
    """Return the array of rows: the `wanted` one, X, or the only matrix of enough rows."""
    name, report, possible = upload.name, upload.report, dict[str, Item]()
    for least in (LIMITS.least_rows, upload.limits.least_rows):
        possible = possible or {key: it for key, it in items.items() if _is_matrix(it, least)}
    report["arrays"] = {key: sides_of(item.shape) for key, item in possible.items()}
    if wanted is not None and wanted not in items:
        there = f"choose of {_listed(items) or 'none'}"
        error = unknown("array", wanted, items, f" in “{name}”", there)
        error.report = report
        raise error
    first = "X" if "X" in possible else next(iter(possible), None)
    if wanted is not None or (first is not None and (first == "X" or len(possible) == 1)):
        return str(wanted or first)
    arrays = [_listed(items)] if items else []
    unused = list(report["unused"].items())[:_MOST_LISTED]
    arrays += [f"“{shortened(key)}” ({why})" for key, why in unused]
    msg = f"“{name}” contains several arrays, {_listed(possible)}; choose the one with the rows."
    if possible:
        report["option"] = f"array={first}"  # an example
        raise InputError(msg, report)
    msg = f"“{name}” contains no matrix of numbers{', only ' * bool(arrays)}{', '.join(arrays)}; "
    msg += "save one with a row for each object and at least 2 columns."
    raise InputError(msg, report)


def check_array(
    name: str, shape: Sides, dtype: np.dtype, limits: ReadLimits, remedy: str = _FEWER
) -> None:
    """Raise InputError for arrays that are neither matrices nor stacks of images, or too large."""
    least = counted(limits.least_rows, "row")
    if dtype.hasobject or dtype.kind not in "buif":
        kinds = {"c": "complex numbers", "O": "Python objects"}
        kind = kinds.get("O" if dtype.hasobject else dtype.kind, f"values of type {dtype}")
        why = f"contains {kind}, not plain numbers; save it as an array of float or uint8"
    elif min(shape, default=0) < 0:
        why = f"declares the shape {shape}; sides are whole numbers; save it again"
    elif len(shape) not in (2, 3) and not (len(shape) == 4 and shape[3] in (1, 3)):
        why = f"has shape {shape}; give a matrix (rows, columns), grey images (n, height, width) "
        why += "or colour images (n, height, width, 3)"
    elif shape[0] < limits.least_rows or math.prod(shape[1:]) < 2:
        why = f"has shape {shape}; at least {least} and 2 values in each are needed"
    else:
        itemsize = max(4, kept_type(dtype).itemsize)  # uint8 is converted to float32 for fitting
        uploads.check_matrix(name, shape[0], math.prod(shape[1:]), itemsize, limits, remedy)
        why = ""
    refuse_if(why, f"“{name}” {why}.")


def native(values: np.ndarray) -> np.ndarray:
    """Return numbers in C order as one of `DTYPES`; copies only if needed."""
    return np.ascontiguousarray(values, dtype=kept_type(values.dtype))


def kept_type(dtype: np.dtype) -> np.dtype:
    """Return the type in which a data set stores this type."""
    kept = dtype.newbyteorder("=")
    if kept == np.float16:
        return np.dtype(np.float32)
    return kept if kept in DTYPES else np.dtype(np.float64)


def values_of(upload: Upload, item: Item, columns: np.ndarray | None = None) -> np.ndarray:
    """Return an array, or some of its columns; sparse matrices become dense."""
    if not item.is_sparse:
        values: np.ndarray = item.load()
        return values if columns is None else values[:, columns]
    why = "contains a sparse matrix whose values, indices and shape do not match"
    with upload.or_damaged(f"{why}; write it again"):
        matrix = item.load()
        matrix = matrix if matrix.format in ("csr", "csc") else matrix.tocsr()
        matrix.check_format(full_check=True)  # prevents compiled code from reading beyond an array
    stored = matrix.data
    exact = stored.dtype.kind in "bui" and np.abs(stored).max(initial=0) < _EXACT_IN_FLOAT32
    dtype = np.dtype(np.float32) if exact else kept_type(stored.dtype)
    dtype = np.dtype(np.float64) if dtype.kind in "bui" else dtype
    shape = (matrix.shape[0], matrix.shape[1] if columns is None else len(columns))
    remedy = "save fewer rows or columns, such as highly variable genes"
    kind = stored.dtype if stored.dtype.kind == "c" else dtype
    check_array(upload.name, shape, kind, upload.limits, remedy)
    part = matrix.astype(dtype)
    return np.asarray((part if columns is None else part[:, columns]).toarray(order="C"))


def _beside(
    upload: Upload, items: Mapping[str, Item], wanted: str, sides: Sides, options: ArrayOptions
) -> Beside:
    """Find ids, labels and column names among the other arrays."""
    report, n_rows, features = upload.report, sides[0], None
    unused, columns, named = report["unused"], dict[str, np.ndarray](), dict[str, str]()
    for key, item in items.items():
        if key in (wanted, _LABEL_NAMES) or not _is_vector(item):
            continue
        if (length := math.prod(item.shape)) == n_rows:
            columns[key] = _column(item)
        elif features is None and sides[1:] == (length,) and _names(column := _column(item)):
            features = [f"{x:.7g}" if isinstance(x, float) else str(x) for x in column.tolist()]
            uploads.note(report, "Names of features", key)
        else:
            unused[key] = f"{counted(length, 'value')} for {counted(n_rows, 'row')}"
    if _LABEL_NAMES in items and items[_LABEL_NAMES].dtype.kind == "U":
        titles = np.ravel(items[_LABEL_NAMES].load()).tolist()
        named = {f"label_{i}": str(title) for i, title in enumerate(titles)}
    distinct = {key: len(np.unique(column)) for key, column in columns.items()}
    most = max(_FEW_NAMES, n_rows / 2)  # maximum number of classes
    texts = [key for key in columns if columns[key].dtype.kind == "U" and distinct[key] > most]
    called = sorted(key for key in columns if key.rpartition("/")[2] in _ID_NAMES)
    able = [key for key in (*_ID_NAMES, *called, *texts) if distinct.get(key) == n_rows]
    able = [key for key in able if key != options.label]
    for key in filter(None, (options.ids, options.label)):
        refuse_unknown("array", key, columns, " with one entry a row")
    id_of = next((key for key in able if columns[key].dtype.kind in "Uiu"), None)
    id_of = id_of if options.ids is None else options.ids or None
    labels = {title: columns[key] for key, title in named.items() if key in columns}
    others = [key for key in texts if key not in (*named, id_of, options.label)]
    unused |= dict.fromkeys(others, "too many different values")
    labels |= {key: columns[key] for key in columns if key not in (*named, *others, id_of)}
    if options.label is not None:
        dropped = [key for key in labels if key != options.label]
        unused |= dict.fromkeys(dropped, "not the chosen label")
        labels = {key: column for key, column in labels.items() if key not in dropped}
    report |= {"ids": id_of or "", "entries": [*columns]}
    if id_of:
        uploads.note(report, "Row names", id_of)
    return Beside(None if id_of is None else columns[id_of].astype(str), labels, features)


def _is_vector(item: Item) -> bool:
    plain = item.dtype.kind in "USbiuf" and not item.dtype.hasobject
    return bool(item.shape) and math.prod(item.shape) == max(item.shape) > 0 and plain


def _is_matrix(item: Item, least_rows: int) -> bool:
    plain = item.dtype.kind in "buifc" and not item.dtype.hasobject
    large = len(item.shape) >= 2 and item.shape[0] >= least_rows and math.prod(item.shape[1:]) >= 2
    return plain and large


def _names(column: np.ndarray) -> bool:
    """Whether a vector may name features: strings, or ordered numbers such as wavelengths."""
    return column.dtype.kind in "US" or {*np.sign(np.diff(column * 1.0))} in ({1.0}, {-1.0})


def _column(item: Item) -> np.ndarray:
    values = np.ravel(item.load())
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8", "replace")
    if values.dtype.kind == "f" and (np.abs(values) < _EXACT).all():
        whole = values.astype(np.int64)
        return whole if (values == whole).all() else values
    return values


def sides_of(shape: tuple[int, ...]) -> str:
    """Return the shape of an array in words."""
    return " x ".join(f"{side:,}" for side in shape) or "one value"


def _listed(items: Mapping[str, Item]) -> str:
    shown = [f"“{shortened(key)}” ({sides_of(item.shape)})" for key, item in items.items()]
    more = len(shown) - _MOST_LISTED
    return ", ".join(shown[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def build(
    upload: Upload, array: np.ndarray, named: Beside, missing: str, image_shape: Sides | None = None
) -> Dataset:
    """Build a data set from a checked array (N, ...); further dimensions are pixels."""
    limits, report = upload.limits, upload.report
    sides = tuple(image_shape) if image_shape else None
    if sides is None and array.ndim > 2:
        sides = array.shape[1:3] if array.ndim == 3 or array.shape[3] == 1 else array.shape[1:]
    X = array.reshape(len(array), -1)
    report.setdefault("dtype", str(array.dtype))
    names = None
    if named.features is not None and len(named.features) <= limits.columns:
        names = tuple(map(str, distinct_names(named.features)))
    features: Sequence[str] = names or NumberedNames("pixel" if sides else "column", X.shape[1])
    empty = np.zeros(0, int)
    if sides is None and limits.least_rows > 1 and X.dtype.kind == "f" and np.isnan(X.min()):
        empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if 0 < len(empty) <= X.shape[1] - 2:
        left_out = uploads.few([features[j] for j in empty[:6].tolist()], len(empty))
        n_empty = counted(len(empty), "feature")
        uploads.note(report, "Left out", f"{n_empty} without a number: {left_out}")
        keep = np.setdiff1d(np.arange(X.shape[1]), empty)
        features, X = [features[j] for j in keep.tolist()], X[:, keep]
    report |= {"image_shape": sides, "rows": len(X), "columns": X.shape[1]}
    is_named = not isinstance(features, NumberedNames) and len(features) <= limits.columns
    ids = None if named.ids is None else distinct_names(named.ids).astype(str)
    beside = Beside(ids, named.labels, features if is_named else None)
    return data_set(upload, X, features, missing, beside, sides)


def of_type(upload: Upload, types: np.ndarray | None, wanted: str | None) -> np.ndarray | None:
    """Return the indices of features whose type in `types` (D,) is `wanted`; None for all."""
    counts = Counter([] if types is None else types.tolist())
    if wanted not in (None, "all", *counts):
        error = unknown("feature type", wanted, sorted(counts), f" in “{upload.name}”")
        raise error
    if types is None or len(counts) < 2:
        return None
    chosen = wanted or (GENES if GENES in counts else "all")
    upload.report.update(feature_types=dict(counts), feature_type=chosen)
    unread = {kind: "" if chosen in (kind, "all") else ", not read" for kind in sorted(counts)}
    sizes = ", ".join(f"{kind} ({counts[kind]:,}{words})" for kind, words in unread.items())
    example = next(kind for kind in ("all", *unread) if kind != chosen)
    uploads.note(upload.report, "Feature types", f"{sizes}; choose by feature_type={example}")
    return None if chosen == "all" else np.flatnonzero(types == chosen)


def _mapped(
    upload: Upload, stream: BinaryIO, dtype: np.dtype, shape: tuple[int, ...], order: Any = "C"
) -> np.ndarray:
    """Memory-map an array from the current position of a stream."""
    begin = stream.tell()
    present, expected = stream.seek(0, io.SEEK_END) - begin, math.prod(shape) * dtype.itemsize
    msg = f"“{upload.name}” must contain {' x '.join(map(str, shape))} numbers in {expected:,} "
    msg += f"bytes after its header; it has {present:,}, so copy or save it again."
    refuse_if(present != expected or not expected, msg)
    return np.memmap(stream, dtype, "r", begin, shape, order)


def read_npy(name: str, file: File, options: NpyOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read an array (N, D), or images (N, h, w) or (N, h, w, 3); values may stay on disk."""
    upload = Upload(name, limits)
    with uploads.plain_file(name, file, limits) as stream, upload.or_damaged(_NO_NPY):
        shape, by_columns, dtype = npy_header(stream)
        if dtype.hasobject or min(shape, default=0) <= 0:
            check_array(name, shape, dtype, limits)
        X = _mapped(upload, stream, dtype, shape, "F" if by_columns else "C")
        check_array(name, shape, dtype, limits)
        X = native(X)
    return build(upload, X, Beside(), options.missing, options.image_shape)


def read_npz(name: str, file: File, options: ArrayOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one array, or a SciPy sparse matrix, as rows, and others as ids and labels."""
    upload, items = Upload(name, limits), dict[str, Item]()
    unused = upload.report["unused"]
    with uploads.file_stream(name, file, limits) as stream:
        archive, members_in = uploads.members(name, stream, limits)
        inside = {item.filename.removesuffix(".npy"): item for item in members_in}
        if options.array is None and inside.keys() >= _SPARSE:
            from scipy import sparse

            stream.seek(0)
            item = Item((), np.dtype(float), partial(sparse.load_npz, stream), is_sparse=True)
            return build(upload, values_of(upload, item), Beside(), options.missing)
        for key, member in inside.items():
            if not member.filename.endswith(".npy"):
                unused[key] = "not an NPY file"
                continue
            start = io.BytesIO(next(uploads.unpacked(name, archive, member), b""))  # up to 1 MB
            inner = Upload(shortened(member.filename), limits)
            with inner.or_damaged(_NO_NPY):
                shape, _, dtype = npy_header(start)
            if dtype.hasobject and key != options.array:
                unused[key] = "Python objects; save it with dtype float or str"
                continue
            items[key] = Item(shape, dtype, partial(_from_npz, inner, archive, member))
        return read_items(upload, items, options)


def _from_npz(inner: Upload, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with inner.or_damaged("is truncated or damaged; save it again"), archive.open(member) as stream:
        values = np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
        return inner.texts(inner.name, values) if values.dtype.kind == "U" else values


def read_idx_files(files: Files, options: NpyOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read images, and their labels from a file with one number per image."""
    titles = [shortened(name, uploads.LONGEST_NAME) for name, _ in files]
    arrays = [(name, _idx(*named, limits)) for name, named in zip(titles, files, strict=True)]
    *columns, (name, images) = sorted(arrays, key=lambda array: array[1].ndim)
    refuse_if(images.ndim == 1, f"“{name}” contains only labels; add the file of images.")
    sizes = [f"“{title}” ({sides_of(values.shape)})" for title, values in arrays]
    msg = f"{', '.join(sizes)} are not images with their labels; give one file of each."
    unlike = any(values.shape != images.shape[:1] for _, values in columns)
    refuse_if(len(columns) > 1 or unlike, msg)
    labels = [values.astype(values.dtype.newbyteorder("=")) for _, values in columns]
    named = Beside(None, dict(zip(["class"], labels, strict=False)))
    upload = Upload(name, limits)
    dataset = build(upload, native(images), named, options.missing, options.image_shape)
    dataset.provenance["files"] = [name for name, _ in files]
    return dataset


def _idx(name: str, file: File, limits: ReadLimits) -> np.ndarray:
    """Map an IDX file: two zero bytes, type, number of dimensions, dimensions, values."""
    with uploads.plain_file(name, file, limits) as stream:
        start = stream.read(4)
        odd = len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _IDX_TYPES or start[3] > 4
        begin = start.hex() or "nothing"
        msg = f"“{name}” is not an IDX file (it starts with {begin}); choose another file."
        refuse_if(odd, msg)
        sides = stream.read(4 * start[3])
        shape = struct.unpack(f">{len(sides) // 4}I", sides[: len(sides) // 4 * 4])
        dtype = np.dtype(_IDX_TYPES[start[2]])
        values = _mapped(Upload(name, limits), stream, dtype, shape)
        if len(shape) > 1:
            check_array(name, shape, dtype, limits)
        return values


_MOST_OBJECTS = 10_000
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}  # filters by number
_NETCDF_FILL = 9.969209968386869e36  # fill value of unwritten numbers
_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
_PACKED = {"_FillValue", "missing_value", "scale_factor", "add_offset"}  # netCDF attributes
_OF_10X = ("data", "indices", "indptr", "shape", "barcodes")  # arrays of 10x Genomics counts
_OF_FEATURES = {"name": "features/name", "old": "gene_names", "type": "features/feature_type"}
_DAMAGED = "is not an HDF5 file or is damaged; write it again"
_HDF5 = b"\x89HDF\r\n\x1a\n"  # follows the header of MATLAB 7.3 files
_HEADER_OF_7_3 = 512
_NUMBERS = {"double": "f8", "single": "f4", "logical": "?"}  # by MATLAB class
_NUMBERS |= {f"{sign}int{n}": f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)}
_MIXED = "a cell array of different types; save one matrix, or one word per cell"
_OBJECT = "a MATLAB table or object; save it with table2array, or as CSV"


class Hdf5:
    """The arrays of an open HDF5 file, by path; links are not followed."""

    def __init__(self, upload: Upload, root: Any, *, matlab: bool) -> None:
        import h5py

        self.upload, self.root, self.items = upload, root, dict[str, Item]()
        self.tables: dict[str, Any] = {}  # datasets whose entries have named fields
        self.unused: dict[str, str] = upload.report["unused"]
        describe = self._of_matlab if matlab else self._described

        def visit(path: str, node: Any) -> None:
            msg = f"“{upload.name}” contains more than {_MOST_OBJECTS:,} arrays; save fewer."
            refuse_if(len(self.items) + len(self.unused) > _MOST_OBJECTS, msg)
            plain = path.encode("utf-8", "replace").decode()
            if isinstance(item := describe(plain, node), Item):
                self.items[plain] = item
            elif item:
                self.unused[plain] = item

        def visit_link(path: str, link: Any) -> None:
            if not isinstance(link, h5py.HardLink):
                self.unused[path.encode("utf-8", "replace").decode()] = "a link"

        with upload.or_damaged(_DAMAGED):
            root.visititems(visit)
            root.visititems_links(visit_link)

    def attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group or array; references become paths."""
        import h5py

        stated = dict(self.root[path].attrs) if path in self.root else {}
        for key, value in stated.items():
            if isinstance(value, h5py.Reference) and value:
                stated[key] = self.root[value].name.strip("/")
        return stated

    def _described(self, path: str, node: Any) -> Item | str:
        """Return the array of an object, or the reason to skip it ("" if not worth reporting)."""
        import h5py

        if not isinstance(node, h5py.Dataset) or node.attrs.get("NAME", b"")[:52] == _DIMENSION:
            return ""
        plan = node.id.get_create_plist()
        used = [plan.get_filter(j)[0] for j in range(plan.get_nfilters())]
        odd = [code for code in used if code not in _FILTERS]
        if node.shape is None or not node.size:
            return "empty"
        if plan.get_layout() == h5py.h5d.VIRTUAL or plan.get_external_count():
            return "its numbers are in other files"
        if odd:
            return f"compressed with {odd[0]}; save it with gzip"
        try:
            dtype = np.dtype(node.dtype)
        except TypeError:
            dtype = np.dtype(object)
        if h5py.check_string_dtype(dtype) is not None:
            dtype = np.dtype(("U", max(1, 0 if dtype.hasobject else dtype.itemsize)))
        elif dtype.hasobject or dtype.kind not in "buifc":
            self.tables |= {path: node} if dtype.names else {}
            columns = f"a table of {len(dtype.names or ())} columns; save them as one matrix"
            return columns if dtype.names else "no numbers or text"
        elif dtype.kind in "iuf" and _PACKED & set(node.attrs) and dtype != np.float32:
            dtype = np.dtype(np.float64)
        return Item(tuple(node.shape), dtype, partial(self._load, path, node, dtype))

    def _load(self, path: str, node: Any, dtype: np.dtype) -> np.ndarray:
        self.upload.check_size(path, node.size * dtype.itemsize)
        with self.upload.or_damaged(_DAMAGED):
            if dtype.kind == "U":
                return self.upload.texts(path, np.array(node.asstr("utf-8", "replace")[()], object))
            stored = np.asarray(node[()])
            said = {key: np.ravel(node.attrs[key]) for key in _PACKED & set(node.attrs)}
        said = {key: values for key, values in said.items() if values.dtype.kind in "iuf"}
        fills = [*said.get("_FillValue", ()), *said.get("missing_value", ())]
        if stored.dtype.kind == "f" and "_NCProperties" in self.root.attrs:
            fills.append(stored.dtype.type(_NETCDF_FILL))
        gaps = np.isin(stored, np.array(fills, stored.dtype)) if fills else np.zeros(1, bool)
        if not said and not gaps.any():
            return stored
        scaled = bool(said.keys() & {"scale_factor", "add_offset"})
        factor, offset = said.get("scale_factor", [1])[0], said.get("add_offset", [0])[0]
        values = stored.astype(np.float64 if scaled else dtype)
        values = values * factor + offset if scaled else values
        said_gaps = f"fill value in {counted(int(gaps.sum()), 'cell')} read as missing"
        told = [said_gaps] * bool(gaps.any())
        told += [f"multiplied by scale_factor {factor:g}"] * ("scale_factor" in said)
        told += [f"add_offset {offset:g} added"] * ("add_offset" in said)
        if told:
            uploads.note(self.upload.report, f"Packed “{shortened(path)}”", ", ".join(told))
        if gaps.any():
            values[gaps] = np.nan
        return values

    def _of_matlab(self, path: str, node: Any) -> Item | str:
        """Describe a MATLAB 7.3 variable, whose dimensions are stored in reverse."""
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
            variable = _of_cells([_cell(self.root[cell]) for cell in np.ravel(node[()])])
        elif kind == "char":
            lines = ["".join(map(chr, line)) for line in np.atleast_2d(node[()].T)]
            variable = _stored(np.array([line.rstrip(" \0") for line in lines]))
        elif kind in _NUMBERS and isinstance(item := self._described(path, node), Item):
            variable = item._replace(shape=item.shape[::-1], load=lambda: np.transpose(item.load()))
        return variable


def _cell(node: Any) -> Any:
    if not hasattr(node, "shape") or node.attrs.get("MATLAB_empty", 0):
        return "" if hasattr(node, "shape") else None
    is_text = node.attrs.get("MATLAB_class") == b"char"
    return "".join(map(chr, np.ravel(node[()]))) if is_text else node[()]


def sparse_item(
    parts: Callable[[], Any], shape: tuple[int, int], *, by_columns: bool = False
) -> Item:
    """Return a sparse matrix from its values, indices and row (or column) bounds."""

    def load() -> Any:
        from scipy import sparse

        make = sparse.csc_matrix if by_columns else sparse.csr_matrix
        return make(tuple(parts()), shape=shape)

    return Item(shape, np.dtype(np.float64), load, is_sparse=True)


@contextmanager
def opened_hdf5(upload: Upload, stream: BinaryIO, *, matlab: bool = False) -> Iterator[Hdf5]:
    """Open a file for reading."""
    import h5py

    with upload.or_damaged(_DAMAGED):
        root = h5py.File(stream, "r")
    with root:
        yield Hdf5(upload, root, matlab=matlab)


def read_hdf5(name: str, file: File, options: ArrayOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one array, or 10x Genomics counts, as rows; other arrays are ids and labels."""
    upload = Upload(name, limits)
    with uploads.plain_file(name, file, limits) as stream, opened_hdf5(upload, stream) as tree:
        items, unused = tree.items, tree.unused
        groups = {path.rpartition("/")[0] for path in (*items, *unused)} - {""}
        able = [group for group in groups if {f"{group}/{part}" for part in _OF_10X} <= {*items}]
        for group in [group for group in groups if "pandas_type" in tree.root[group].attrs]:
            for path in [path for path in (*items, *unused) if path.startswith(f"{group}/")]:
                (items if path in items else unused).pop(path)
            unused[group] = "a pandas table; save it with frame.to_parquet('x.parquet')"
        if options.array is not None or len(able) != 1:
            return read_items(upload, items, options)
        group = f"{able[0]}/"
        *parts, shape, barcodes = (items[group + part].load() for part in _OF_10X)
        genes, cells = (int(side) for side in (*np.ravel(shape)[:2], 0, 0)[:2])
        named = {title: items.get(group + path) for title, path in _OF_FEATURES.items()}
        stated = {key: it.load() for key, it in named.items() if it and it.shape == (genes,)}
        places = of_type(upload, stated.get("type"), options.feature_type)
        X = values_of(upload, sparse_item(lambda: parts, (cells, genes)), places)
        unused |= {path: "not part of the counts" for path in items if path[: len(group)] != group}
        names = stated.get("name", stated.get("old"))
        ids = barcodes.astype(str) if len(barcodes) == cells else None
        kept = slice(None) if places is None else places
        features = None if names is None else names[kept].astype(str).tolist()
        return build(upload, X, Beside(ids, {}, features), options.missing)


def read_mat(name: str, file: File, options: ArrayOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a variable as rows, and vectors or cells of text with one entry per row as labels."""
    from scipy.io import loadmat, whosmat

    upload, items = Upload(name, limits), dict[str, Item]()
    with uploads.plain_file(name, file, limits) as stream:
        start = stream.read(_HEADER_OF_7_3 + len(_HDF5))
        stream.seek(0)
        if start.startswith((_HDF5, b"MATLAB 7.3")) or start.endswith(_HDF5):
            with opened_hdf5(upload, stream, matlab=True) as tree:
                return read_items(upload, tree.items, options)
        with upload.or_damaged("is damaged or not a MAT file; save it again in MATLAB with '-v7'"):
            kinds = {key: _NUMBERS.get(kind) for key, _, kind in whosmat(stream)}
            stream.seek(0)
            for key, value in loadmat(stream, spmatrix=False).items():
                if not key.startswith("__"):
                    dtype = kinds.get(key) if value.dtype.kind in "biuf" else None
                    stored = value if dtype is None else value.astype(dtype)
                    _take(key, stored, items, upload.report["unused"])
    return read_items(upload, items, options)


def _take(key: str, value: Any, items: dict[str, Item], unused: dict[str, str]) -> None:
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
        is_word = [getattr(c, "dtype", value.dtype).kind == "U" and c.size == 1 for c in cells]
        variable = _of_cells([c[0] if word else c for c, word in zip(cells, is_word, strict=True)])
    else:
        values = np.char.rstrip(value, " \0") if value.dtype.kind == "U" else value
        variable = _stored(values) if value.size else "empty"
    (items if isinstance(variable, Item) else unused)[key] = variable  # type: ignore[assignment]


def _stored(values: np.ndarray) -> Item:
    return Item(values.shape, values.dtype, lambda: values)


def _of_cells(cells: list[Any]) -> Item | str:
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


NPY_READER, NPZ_READER = Reader(NpyOptions, read_npy), Reader(ArrayOptions, read_npz)
IDX_READER, HDF5_READER = Reader(NpyOptions, None, read_idx_files), Reader(ArrayOptions, read_hdf5)
MAT_READER = Reader(ArrayOptions, read_mat)
