"""Counts and annotated data: H5AD files, Zarr stores and Matrix Market files."""

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from appca.data.annotated import HIGHLY_VARIABLE, MOST_CATEGORIES
from appca.data.dataset import Dataset
from appca.data.files import (
    LIMITS,
    LONGEST_NAME,
    File,
    Files,
    Reader,
    ReadLimits,
    content,
    file_bytes,
    file_stream,
    members,
    note,
    plain_file,
)
from appca.data.readers import hdf5
from appca.data.readers.arrays import (
    Beside,
    Item,
    check_array,
    check_rows,
    choose,
    dense,
    native,
    of_type,
    settled,
    unique,
)
from appca.data.readers.intake import FileReport
from appca.words import InputError, is_text, shortened, unknown

_SPARSE = ("data", "indices", "indptr")
_PLACES = ("layers", "obsm")  # of matrices with the rows of X
_OTHER = ("uns", "varm", "obsp", "varp", "raw")  # parts that describe no single row


class H5adOptions(NamedTuple):
    """How to read annotated data."""

    array: str | None = None  # X, layers/NAME or obsm/NAME; None takes X
    ids: str | None = None  # a column of obs; None takes its index
    labels: tuple[str, ...] | None = None  # columns of obs; None takes all that can be
    mask_var: str | None = HIGHLY_VARIABLE  # a column of var, where there is one; None takes all
    feature_type: str | None = None  # of var; None takes gene expression, "all" takes all
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN


class Contents(NamedTuple):
    """The arrays of annotated data of anndata 0.7 and newer, read when they are asked for."""

    name: str
    items: Mapping[str, Item]  # by path
    attributes: Callable[[str], Mapping[str, Any]]  # of a group or array
    limits: ReadLimits

    def damaged(self) -> InputError:
        """Return the sentence for a file that cannot be read."""
        return InputError(
            f"“{self.name}” is not a file of annotated data or is damaged; write it again."
        )

    def attribute(self, path: str, key: str) -> Any:
        """Return an attribute of a group or array; None where there is none."""
        try:
            return self.attributes(path).get(key)
        except Exception as error:  # libraries fail in as many ways as there are fields
            raise self.damaged() from error

    def load(self, path: str) -> np.ndarray:
        """Read an array by its path."""
        if path not in self.items:
            raise self.damaged()
        return self.items[path].load()

    def matrices(self) -> dict[str, Item]:
        """List what may be fitted: X, layers and representations, tables among them."""
        matrices: dict[str, Item] = {}
        n = len(self.column(self.index_path("obs")))
        for path, item in self.items.items():
            parts = path.split("/")
            place = "X" if parts[0] == "X" else "/".join(parts[:2])
            if place in matrices or not (place == "X" or (parts[0] in _PLACES and len(parts) > 1)):
                continue
            if path == place:
                matrices[place] = item
            elif all(f"{place}/{part}" in self.items for part in _SPARSE):
                matrices[place] = self._sparse(place)
            elif parts[0] == "obsm":
                columns = self._numbers(place, n)
                load = partial(self._joined, list(columns.values()))
                shape, dtype = (n, len(columns)), np.dtype(np.float64)
                matrices[place] = Item(shape, dtype, load, list(columns))
        return {path: item for path, item in matrices.items() if len(item.shape) == 2}

    def _numbers(self, table: str, n: int) -> dict[str, str]:
        paths = self.columns(table, n)
        return {key: path for key, path in paths.items() if self.column(path).dtype.kind in "uif"}

    def _joined(self, paths: list[str]) -> np.ndarray:
        return np.column_stack([self.column(path) for path in paths]).astype(np.float64)

    def _sparse(self, path: str) -> Item:
        stated = self.attribute(path, "shape")
        stated = self.attribute(path, "h5sparse_shape") if stated is None else stated
        sides = np.ravel([] if stated is None else stated)
        if sides.dtype.kind not in "ui" or sides.shape != (2,):
            raise self.damaged()
        shape = (int(sides[0]), int(sides[1]))
        load = partial(self.filled, path, shape, None)
        return Item(shape, self.items[f"{path}/data"].dtype, load)

    def filled(self, path: str, shape: tuple[int, int], places: np.ndarray | None) -> np.ndarray:
        """Read a sparse matrix, or some of its columns, with its zeros."""
        from scipy import sparse

        kind = str(self.attribute(path, "encoding-type") or self.attribute(path, "h5sparse_format"))
        make = sparse.csc_matrix if "csc" in kind else sparse.csr_matrix
        parts = tuple(self.load(f"{path}/{part}") for part in _SPARSE)
        return dense(self.name, lambda: make(parts, shape=shape), places, self.limits)

    def index_path(self, table: str) -> str:
        """Return the path of the names of rows of obs or var.

        Raises
        ------
        InputError
            When there is none, as in files of anndata before 0.7.
        """
        is_there = any(path.startswith(f"{table}/") for path in self.items)  # so it is no link
        key = _text((self.attribute(table, "_index") if is_there else None) or "_index")
        if not {f"{table}/{key}", f"{table}/{key}/values"} & self.items.keys():
            msg = (
                f"“{self.name}” has no names in {table}, so no file of anndata 0.7 or newer wrote "
                "it; read it with anndata and write it again."
            )
            raise InputError(msg)
        return f"{table}/{key}"

    def names(self, table: str) -> list[str]:
        """Return the names of the rows of obs or var, made unique as in a data set."""
        return unique(self.column(self.index_path(table)).astype(str).tolist())

    def columns(self, table: str, n: int) -> dict[str, str]:
        """List the columns of a table that have one value for each of n rows: name to path."""
        paths, index = {}, self.index_path(table)
        for path, item in self.items.items():
            if not path.startswith(f"{table}/") or item.shape != (n,):
                continue
            key, *rest = path.removeprefix(f"{table}/").split("/")
            is_column = f"{table}/{key}" != index and key != "__categories"
            if is_column and rest in ([], ["codes"], ["values"]):
                paths[key] = f"{table}/{key}"
        return paths

    def column(self, path: str) -> np.ndarray:
        """Read a column: numbers, NaN where missing, or texts, empty where missing."""
        categories = self.attribute(path, "categories") if path in self.items else None
        if categories is not None:  # of anndata 0.7
            listed = _text(categories)
            listed = listed if listed in self.items else f"{path.rpartition('/')[0]}/{listed}"
            return self._named(self.load(path), listed)
        if f"{path}/codes" in self.items:
            return self._named(self.load(f"{path}/codes"), f"{path}/categories")
        if f"{path}/values" not in self.items:
            return _plain(self.load(path))
        values = self.load(f"{path}/values")
        is_masked = f"{path}/mask" in self.items
        mask = self.load(f"{path}/mask") if is_masked else np.zeros(len(values), bool)
        if mask.shape != values.shape or mask.dtype != bool:
            raise self.damaged()
        is_number = values.dtype.kind in "uif"
        gap, kept = (np.nan, values) if is_number else ("", values.astype(str))
        return _plain(np.where(mask, gap, kept))

    def _named(self, codes: np.ndarray, path: str) -> np.ndarray:
        names = np.append(self.load(path).astype(str), "")
        if codes.dtype.kind not in "ui" or (codes >= len(names) - 1).any():
            raise self.damaged()
        return names[np.where(codes < 0, len(names) - 1, codes.astype(np.int64))]


def read_h5ad(name: str, file: File, options: H5adOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read X, a layer or a representation as rows, and columns of `obs` as labels.

    Row names are those of `obs`, features those of `var`. Sparse matrices are filled with their
    zeros.
    """
    with opened_h5ad(name, file, limits) as contents:
        return read_contents(contents, options)


def read_contents(contents: Contents, options: H5adOptions) -> Dataset:
    """Read annotated data, however they are stored; see `read_h5ad`."""
    report: FileReport = {"unused": {}}
    name, limits = contents.name, contents.limits
    matrices = contents.matrices()
    wanted = choose(name, matrices, options.array, report, limits)
    item = matrices[wanted]
    n, d = item.shape
    check_rows(wanted, (n, d), limits)
    is_obsm = wanted.startswith("obsm/")
    features = item.columns if is_obsm else contents.names("var")
    if features is not None and len(features) != d:
        raise contents.damaged()
    places = None if is_obsm else _places(contents, options, d, report)
    if f"{wanted}/indptr" in contents.items:
        X = contents.filled(wanted, (n, d), places)
    else:
        check_array(wanted, item.shape, item.dtype, limits)
        X = native(item.load())
        X = X if places is None else np.ascontiguousarray(X[:, places])
    report |= {"array": wanted, "dtype": str(item.dtype)}
    for path in matrices.keys() - {wanted}:
        report["unused"][path] = f"another matrix; array={path} reads it"
    for part in _OTHER:
        if any(path.startswith(f"{part}/") for path in contents.items):
            report["unused"][part] = (
                "not about single rows" if part != "raw" else "before filtering"
            )
    named = _rows_named(contents, options, n, report)
    if features is not None and places is not None:
        features = [features[j] for j in places.tolist()]
    return settled(name, X, named, features, options.missing, report, limits)


@contextmanager
def opened_h5ad(name: str, file: File, limits: ReadLimits) -> Iterator[Contents]:
    """Open an .h5ad file."""
    import h5py

    with plain_file(name, file, limits) as stream, hdf5.opened_hdf5(name, stream) as root:
        items = hdf5.items_inside(name, root, {}, limits, hdf5.described)

        def attributes(path: str) -> dict[str, Any]:
            stated = dict(root[path].attrs)
            references = {key: value for key, value in stated.items() if key == "categories"}
            for key, value in references.items():
                if isinstance(value, h5py.Reference):
                    stated[key] = root[value].name.strip("/")
            return stated

        yield Contents(name, items, attributes, limits)


def _places(
    contents: Contents, options: H5adOptions, d: int, report: FileReport
) -> np.ndarray | None:
    """Return the places of the variables that are read; None where all are."""
    columns = contents.columns("var", d)
    types = contents.column(columns["feature_types"]) if "feature_types" in columns else None
    places = of_type(contents.name, types, options.feature_type, report)
    marked = options.mask_var
    if marked is None or (marked == HIGHLY_VARIABLE and marked not in columns):
        return places
    if marked not in columns:
        error = unknown("column", marked, columns, f" in var of “{contents.name}”")
        raise error
    marks = contents.column(columns[marked])
    is_marked = marks if marks.dtype == bool else marks == "True"
    is_read = np.isin(np.arange(d), np.arange(d) if places is None else places)
    places = np.flatnonzero(is_marked & is_read)
    if len(places) < 2:
        msg = (
            f"“{shortened(marked)}” in var of “{contents.name}” marks {len(places)} of {d:,} "
            "variables; at least 2 are needed, so read all by mask_var=null."
        )
        raise InputError(msg)
    report["marked"] = {"column": marked, "of": d}
    return places


def _rows_named(contents: Contents, options: H5adOptions, n: int, report: FileReport) -> Beside:
    columns = contents.columns("obs", n)
    for key in [*filter(None, [options.ids]), *(options.labels or ())]:
        if key not in columns:
            error = unknown("column", key, columns, f" in obs of “{contents.name}”")
            raise error
    path = contents.index_path("obs") if options.ids is None else columns[options.ids]
    ids = contents.column(path)
    if ids.shape != (n,):
        raise contents.damaged()
    if options.labels is not None:
        chosen = {key: contents.column(columns[key]) for key in options.labels}
        return Beside(ids.astype(str), chosen)
    stated = np.ravel(contents.attribute("obs", "column-order")).tolist()
    place = {_text(name): i for i, name in enumerate(stated)}
    order = sorted(columns, key=lambda key: place.get(key, len(place)))
    labels = {key: contents.column(columns[key]) for key in order if key != options.ids}
    numbers = [key for key, column in labels.items() if column.dtype.kind in "uif"]
    words = [key for key in labels if key not in numbers]
    many = {key for key in words if len(np.unique(labels[key])) > MOST_CATEGORIES}
    reason = f"more than {MOST_CATEGORIES:,} classes"
    report["unused"] |= {f"obs/{key}": reason for key in words if key in many}
    kept = [key for key in words if key not in many] + numbers
    report["obs"] = kept
    return Beside(ids.astype(str), {key: labels[key] for key in kept})


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _plain(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return np.where(np.isfinite(values), values, np.nan)
    return values if values.dtype.kind in "uibU" else values.astype(str)


H5AD_READER = Reader(H5adOptions, read_h5ad)


# Zarr stores of versions 2 and 3, without the library

_DESCRIPTIONS = (".zarray", ".zgroup", "zarr.json")
_BLOSC = {1: "lz4_raw", 3: "zlib", 4: "zstd"}  # codecs inside, by number
_MOST_SPLITS, _LEAST_SPLIT = 16, 128


class ZarrArray(NamedTuple):
    """An array of a store."""

    title: str  # for sentences
    shape: tuple[int, ...]
    dtype: np.dtype  # object for texts of any length
    chunks: tuple[int, ...]
    fill: Any
    codecs: list[tuple[str, dict[str, Any]]]  # in the order in which chunks are unpacked
    order: str  # "C" or "F"
    chunk: Callable[[tuple[int, ...]], bytes | None]  # packed, by its place; None is all fill

    def read(self) -> np.ndarray:
        """Return all of its values."""
        made = np.full(self.shape, self.fill, self.dtype)
        sides = [-(-side // chunk) for side, chunk in zip(self.shape, self.chunks, strict=True)]
        for place in np.ndindex(*sides):
            packed = self.chunk(place)
            if packed is not None:
                within = tuple(
                    slice(j * chunk, min((j + 1) * chunk, side))
                    for j, chunk, side in zip(place, self.chunks, self.shape, strict=True)
                )
                part = tuple(slice(each.stop - each.start) for each in within)
                made[within] = self._unpacked(packed)[part]
        return made

    def _unpacked(self, data: bytes) -> np.ndarray:
        size = math.prod(self.chunks) * max(1, self.dtype.itemsize)
        most = size if self.dtype != object else LIMITS.n_bytes
        for codec, how in self.codecs:
            if codec == "vlen-utf8":
                return _strings(data).reshape(self.chunks)
            data = _decoded(self.title, codec, how, data, most)
        values = np.frombuffer(data[:size], self.dtype)
        if self.order == "F":
            return values.reshape(self.chunks[::-1]).transpose()
        return values.reshape(self.chunks)


def _decoded(title: str, codec: str, how: Mapping[str, Any], data: bytes, most: int) -> bytes:
    if codec in ("zlib", "gzip"):
        return zlib.decompressobj(47 if codec == "gzip" else 15).decompress(data, most)
    if codec == "crc32c":
        return data[:-4]
    if codec == "blosc":
        return _from_blosc(data, most)
    if codec in ("zstd", "lz4", "lz4_raw"):
        import pyarrow as pa

        if codec == "zstd":  # its size is not stated, so no more than allowed is unpacked
            with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
                return bytes(stream.read(most))
        data = data[4:] if codec == "lz4" else data
        return bytes(pa.decompress(data, most, "lz4_raw", asbytes=True))
    msg = f"{title} is packed by the codec “{shortened(codec)}”; use Blosc, Zstandard or gzip."
    raise InputError(msg)


def _from_blosc(data: bytes, most: int) -> bytes:
    """Unpack a chunk of c-blosc 1: blocks, each of one or of `width` streams, shuffled or not."""
    flags, width = data[2], data[3]
    size, block_size = struct.unpack_from("<2I", data, 4)
    if size > most or (size and not block_size):
        msg = "a chunk is larger than it may be"
        raise ValueError(msg)
    if flags & 2:  # not packed
        return data[16 : 16 + size]
    made = bytearray()
    starts = struct.unpack_from(f"<{-(-size // block_size)}I", data, 16)
    for i, at in enumerate(starts):
        length = min(block_size, size - i * block_size)
        split = not flags & 16 and width <= _MOST_SPLITS and length == block_size
        n = width if split and block_size // width >= _LEAST_SPLIT else 1
        block = bytearray()
        for _ in range(n):
            (packed,) = struct.unpack_from("<I", data, at)
            piece, at = data[at + 4 : at + 4 + packed], at + 4 + packed  # noqa: PLW2901
            whole = packed == length // n
            block += piece if whole else _decoded("", _BLOSC[flags >> 5], {}, piece, length // n)
        made += _unshuffled(bytes(block), width, flags)
    return bytes(made)


def _unshuffled(block: bytes, width: int, flags: int) -> bytes:
    """Undo the transposition of the bytes (1) or bits (4) of elements of some width."""
    n = len(block) // width
    codes, rest = np.frombuffer(block, np.uint8, n * width), block[n * width :]
    if flags & 1 and width > 1:
        return codes.reshape(width, n).T.tobytes() + rest
    if flags & 4 and n % 8 == 0:
        bits = np.unpackbits(codes.reshape(8 * width, n // 8), axis=1, bitorder="little")
        return np.packbits(bits.T, axis=1, bitorder="little").tobytes() + rest
    return block


def _strings(data: bytes) -> np.ndarray:
    texts, at = [], 4
    for _ in range(int.from_bytes(data[:4], "little")):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        texts.append(data[at + 4 : end].decode("utf-8", "replace"))
        at = end
    return np.array(texts, object)


class ZarrStore:
    """The arrays and attributes of a store in a folder or a zip, by path; "" is the root."""

    def __init__(
        self, name: str, names: list[str], read: Callable[[str], bytes | None], limits: ReadLimits
    ) -> None:
        self.name, self.limits = name, limits
        self._read = read
        self.root = root_of(names)
        self.arrays: dict[str, ZarrArray] = {}
        self._attributes: dict[str, Any] = {}
        for path in names:
            folder, _, last = path.rpartition("/")
            if last not in _DESCRIPTIONS:
                continue
            place = folder.removeprefix(self.root).strip("/")
            try:
                about = self._json(path)
                extra = self._json(f"{folder}/.zattrs".lstrip("/")) if last[0] == "." else {}
                self._attributes[place] = about.get("attributes", extra)
                if last == ".zarray" or about.get("node_type") == "array":
                    self.arrays[place] = self._array(place, folder, about)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise self.damaged() from error
        if not self._attributes:
            raise self.damaged()

    def attributes(self, path: str) -> Mapping[str, Any]:
        """Return the attributes of a group or array."""
        attributes: Mapping[str, Any] = self._attributes.get(path, {})
        return attributes

    def damaged(self) -> InputError:
        """Return the sentence for a store that cannot be read."""
        return InputError(f"“{self.name}” is not a Zarr store, or is damaged; save it again.")

    def _json(self, path: str) -> dict[str, Any]:
        text = self._read(path)
        about = {} if text is None else json.loads(text)
        if not isinstance(about, dict):
            raise self.damaged()
        return about

    def _array(self, place: str, folder: str, about: dict[str, Any]) -> ZarrArray:
        is_old = about["zarr_format"] == 2
        order = about.get("order", "C")
        if is_old:
            kind = about["dtype"]
            packing = [about["compressor"], *reversed(about["filters"] or [])]
            codecs = [(codec["id"], codec) for codec in packing if codec]
            chunks, key = about["chunks"], about.get("dimension_separator", ".")
        else:
            kind = about["data_type"]
            steps = [(step["name"], step.get("configuration", {})) for step in about["codecs"]]
            endian = next((how.get("endian") for step, how in steps if step == "bytes"), None)
            codecs = [step for step in reversed(steps) if step[0] != "bytes"]
            chunks = about["chunk_grid"]["configuration"]["chunk_shape"]
            encoding = about["chunk_key_encoding"]
            default = "." if encoding["name"] == "v2" else "/"
            key = encoding.get("configuration", {}).get("separator", default)
            if isinstance(kind, dict):
                kind = f"<U{kind['configuration']['length_bytes'] // 4}"
            elif kind == "string":
                kind = "|O"
            kind = np.dtype(kind).newbyteorder(">") if endian == "big" else kind
        prefix = f"{folder}/" if folder else ""
        first = "" if is_old or about["chunk_key_encoding"]["name"] == "v2" else f"c{key}"
        read = self._read
        dtype = np.dtype(object if kind == "|O" else kind)
        fill = about.get("fill_value")
        shape = tuple(int(side) for side in about["shape"])
        if len(shape) != len(chunks) or min([*shape, *chunks, 1]) < 0 or 0 in chunks:
            raise self.damaged()
        return ZarrArray(
            f"“{place or self.name}” in “{self.name}”",
            shape,
            dtype,
            tuple(int(side) for side in chunks),
            ("" if dtype.kind in "OU" else 0) if fill is None else fill,
            codecs,
            order,
            lambda at: read(prefix + first + (key.join(map(str, at)) or "0")),
        )

    def items(self) -> dict[str, Item]:
        """List the arrays of numbers and texts."""
        items = {}
        for path, array in self.arrays.items():
            dtype = np.dtype("U1") if array.dtype.kind in "OU" else array.dtype
            if dtype.kind in "buifU":
                items[path] = Item(array.shape, dtype, partial(self._load, array))
        return items

    def _load(self, array: ZarrArray) -> np.ndarray:
        """Read an array whose sides were checked; texts become those of NumPy."""
        most = max(math.prod(array.shape), math.prod(array.chunks)) * max(1, array.dtype.itemsize)
        if most > self.limits.n_bytes:
            msg = (
                f"{array.title} has {most / 1e6:,.0f} MB, or chunks of as many, more than "
                f"{self.limits.most}; keep fewer rows or columns, and write the store again."
            )
            raise InputError(msg)
        try:
            values = array.read()
            if values.dtype == object:
                texts = [str(text) for text in values.ravel().tolist()]
                if len(texts) * max(map(len, texts), default=1) > self.limits.n_bytes // 8:
                    msg = f"{array.title} holds texts that are too long; write shorter ones."
                    raise InputError(msg)
                values = np.array(texts, str).reshape(values.shape)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # of lengths and places, each of which may be wrong
            raise self.damaged() from error
        if not is_text(values):
            msg = f"{array.title} contains invalid Unicode; save it again."
            raise InputError(msg)
        return values


@contextmanager
def opened_zarr(name: str, file: File, limits: ReadLimits) -> Iterator[ZarrStore]:
    """Open a store in a zip or a folder."""
    if isinstance(file, (str, Path)) and Path(file).is_dir():
        folder = Path(file)

        def from_folder(path: str) -> bytes | None:
            place = folder / path
            return place.read_bytes() if place.is_file() else None

        paths = (path for path in folder.rglob("*") if path.name in _DESCRIPTIONS)
        names = [path.relative_to(folder).as_posix() for path in paths]
        yield ZarrStore(name, names, from_folder, limits)
        return
    with file_stream(name, file, limits) as stream:
        archive, _ = members(name, stream, limits)
        by_name = {item.filename: item for item in archive.infolist()}

        def from_zip(path: str) -> bytes | None:
            return content(name, archive, by_name[path]) if path in by_name else None

        yield ZarrStore(name, list(by_name), from_zip, limits)


def root_of(names: list[str]) -> str:
    """Return the folder of the store among the files of a zip, "" where it is not in one."""
    places = [path.rpartition("/") for path in names]
    return min((place[0] for place in places if place[2] in _DESCRIPTIONS), key=len, default="")


def annotated_in(store: ZarrStore) -> Contents:
    """Return the annotated data in a store."""
    items = store.items()
    if not any(path.startswith("obs/") for path in items):
        msg = f"“{store.name}” holds neither AnnData nor a single array; give one array's store."
        raise InputError(msg)
    return Contents(store.name, items, store.attributes, store.limits)


def read_zarr(name: str, file: File, options: H5adOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read annotated data as from .h5ad, or the rows of an array."""
    with opened_zarr(name, file, limits) as store:
        if set(store.arrays) != {""}:
            return read_contents(annotated_in(store), options)
        item = store.items().get("")
        if item is None or item.dtype.kind == "U":
            msg = f"“{name}” must hold numbers, but holds {store.arrays[''].dtype}; convert it."
            raise InputError(msg)
        check_rows(name, item.shape, limits)
        check_array(name, item.shape, item.dtype, limits)
        X = native(item.load())
    report: FileReport = {"dtype": str(item.dtype)}
    return settled(name, X, Beside(), None, options.missing, report, limits)


def packed(store: Path) -> BinaryIO:
    """Return a temporary file, a zip of a store in a folder; equal stores make equal files."""
    kept = TemporaryFile()  # noqa: SIM115 (the caller closes it)
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(path for path in store.rglob("*") if path.is_file()):
            named = zipfile.ZipInfo(path.relative_to(store).as_posix())  # without a date
            archive.writestr(named, path.read_bytes())
    return cast("BinaryIO", kept)


ZARR_READER = Reader(H5adOptions, read_zarr)

MARKETS = (".mtx", ".mtx.gz")
_ROWS, _COLUMNS = ("barcodes", "rows", "cells", "docs"), ("features", "genes", "cols", "terms")
_LEAST_ENTRY = {"coordinate": 4, "array": 2}  # bytes of a line: "1 1\n" of a pattern, "0\n"


class MtxOptions(NamedTuple):
    """How to read a Matrix Market file."""

    transpose: bool | None = None  # each column is a row; None decides by the names beside it
    feature_type: str | None = None  # of 10x counts; None takes gene expression, "all" takes all
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN


def is_market(names: list[str]) -> bool:
    """Whether files are one matrix, with names beside it or not."""
    matrices = [name for name in names if name.lower().endswith(MARKETS)]
    return len(matrices) == 1 and all(side_of(name) for name in names if name not in matrices)


def read_market(files: Files, options: MtxOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a matrix, and the names of its rows and columns from files beside it.

    Barcodes or documents are rows; features, genes or terms are columns.
    """
    files = _with_neighbours(files)
    name, file = next(named for named in files if named[0].lower().endswith(MARKETS))
    title = shortened(name, LONGEST_NAME)
    text = file_bytes(title, file, limits)
    _check_sizes(title, text, limits)
    tables = {
        side_of(other): _table(file_bytes(shortened(other), data, limits))
        for other, data in files
        if other != name
    }
    from scipy.io import mmread
    from scipy.sparse import coo_matrix

    try:
        matrix = coo_matrix(mmread(io.BytesIO(text), spmatrix=False))
    except Exception as error:  # the parser fails in as many ways as there are lines
        raise _damaged_market(title) from error
    for side, lines in tables.items():
        if len(lines) - 1 in matrix.shape and len(lines) not in matrix.shape:
            tables[side] = lines[1:]  # the first is a heading
    sizes = {side: len(lines) for side, lines in tables.items()}
    turn = options.transpose
    if turn is None:
        turn = any(
            sizes.get(side) == matrix.shape[1 - axis] != matrix.shape[axis]
            for axis, side in enumerate(("rows", "columns"))
        ) or (len(set(matrix.shape)) == 1 and "rows" in tables)
    matrix = matrix.T if turn else matrix
    for axis, (side, what) in enumerate((("rows", "names"), ("columns", "names"))):
        if sizes.get(side, matrix.shape[axis]) != matrix.shape[axis]:
            msg = (
                f"“{title}” has {matrix.shape[axis]:,} {side}, but {sizes[side]:,} {what} of "
                f"{side} are beside it; give the files that belong together."
            )
            raise InputError(msg)
    report: FileReport = {"unused": {}, "turned": turn}
    note(report, "Rows", "the columns of the matrix" if turn else "the rows of the matrix")
    table = tables.get("columns", [])
    types = np.array([line[2] for line in table]) if table and min(map(len, table)) > 2 else None
    places = of_type(title, types, options.feature_type, report)
    X = dense(title, matrix.tocsr, places, limits)
    names = [line[1] if len(line) > 1 else line[0] for line in table]
    kept = names if places is None else [names[j] for j in places.tolist()]
    ids = np.array([line[0] for line in tables["rows"]]) if "rows" in tables else None
    features = unique(kept) if kept else None
    return settled(title, X, Beside(ids), features, options.missing, report, limits)


def _with_neighbours(files: Files) -> Files:
    """Return a matrix on this machine with the files of names that lie beside it."""
    name, file = files[0]
    if len(files) > 1 or not isinstance(file, (str, Path)) or Path(file).name != name:
        return files
    stem = name.lower().removesuffix(".gz").removesuffix(".mtx")
    neighbours: dict[str, Path] = {}
    for path in sorted(Path(file).parent.iterdir()):
        lower, side = path.name.lower(), side_of(path.name)
        belongs = stem == "matrix" or lower.startswith(stem.removesuffix("matrix"))
        if side and belongs and path.is_file():
            neighbours.setdefault(side, path)
    return [*files, *((path.name, path) for path in neighbours.values())]


def side_of(name: str) -> str:
    """Return "rows" or "columns" for a table of their names, else nothing."""
    file = PurePosixPath(name.lower().replace("\\", "/")).name.removesuffix(".gz")
    stem, _, ending = file.rpartition(".")
    if ending in ("tsv", "txt", "csv"):
        words = stem
    elif ending in (*_ROWS, *_COLUMNS):
        words = ending
    else:
        return ""
    sides = {"rows": _ROWS, "columns": _COLUMNS}
    return next((side for side in sides if any(word in words for word in sides[side])), "")


def _table(text: bytes) -> list[list[str]]:
    """Return the cells of each line; of features the second is the symbol, the third the type."""
    lines = text.decode("utf-8-sig", "replace").splitlines()
    return [[cell.strip() for cell in line.split("\t")] for line in lines if line.strip()]


def _check_sizes(name: str, text: bytes, limits: ReadLimits) -> None:
    """Refuse what the first lines claim, where there is not text enough for it."""
    start = text[: 1 << 16].decode("latin-1")
    banner = re.match(r"%%MatrixMarket\s+matrix\s+(coordinate|array)\s", start, re.I)
    sizes = re.search(r"^[ \t]*(\d+)[ \t]+(\d+)(?:[ \t]+(\d+))?[ \t]*\r?$", start, re.M)
    if banner is None or sizes is None:
        raise _damaged_market(name)
    rows, columns, form = int(sizes[1]), int(sizes[2]), banner[1].lower()
    is_listed = form == "coordinate"
    symmetric = 1 if re.match(r".*\bgeneral\b", start, re.I) else 2
    entries = int(sizes[3] or 0) if is_listed else rows * columns // symmetric
    if (is_listed and sizes[3] is None) or entries * _LEAST_ENTRY[form] > len(text):
        raise _damaged_market(name)
    if max(rows, columns) * 8 > limits.n_bytes:
        msg = f"“{name}” states {rows:,} x {columns:,} numbers, more than {limits.most} can hold."
        raise InputError(msg)


def _damaged_market(name: str) -> InputError:
    return InputError(f"“{name}” is not a Matrix Market file or is damaged; save it again.")


MTX_READER = Reader(MtxOptions, None, read_market)
