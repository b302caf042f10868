"""Readers of counts and annotated data: H5AD files, Zarr stores and Matrix Market files."""

import io
import math
import operator
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from appca.data import files as uploads
from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, Files, Reader, ReadLimits
from appca.data.readers import arrays
from appca.data.readers.arrays import Hdf5, Item, build, of_type, values_of
from appca.data.readers.intake import Beside, Upload
from appca.frames import HIGHLY_VARIABLE, MOST_CATEGORIES, distinct_names
from appca.words import refuse_if, refuse_unknown, shortened

_PLACES = ("layers", "obsm")  # groups of matrices with the same rows as X
_OTHER = {"raw": "before filtering"}
_OTHER |= dict.fromkeys(("uns", "varm", "obsp", "varp"), "not about single rows")
_NO_STORE = "is not a Zarr store, or is damaged; save it again"
_DESCRIPTIONS = (".zarray", ".zgroup", "zarr.json")  # files of a Zarr store


class H5adOptions(NamedTuple):
    """How to read annotated data."""

    array: str | None = None  # X, layers/NAME or obsm/NAME; None: X
    mask_var: str | None = HIGHLY_VARIABLE  # boolean column of var, if present; None: all variables
    feature_type: str | None = None  # feature type; None: gene expression, "all": every type
    missing: str = "refuse"  # or "model", "mean", "drop"


class ZarrStore:
    """The arrays and attributes of a store in a folder, by path; "" is the root."""

    def __init__(self, upload: Upload, folder: Path) -> None:
        import zarr

        self.upload, self.items = upload, dict[str, Item]()
        with upload.or_damaged(_NO_STORE):
            root: Any = zarr.open(folder, mode="r")
            inside = [] if isinstance(root, zarr.Array) else root.members(max_depth=None)
            self._nodes: dict[str, Any] = {"": root, **dict(inside)}
            nodes = {path: n for path, n in self._nodes.items() if isinstance(n, zarr.Array)}
            for path, node in nodes.items():
                steps = (*node.filters, *node.compressors)
                msg = f"“{upload.name}” contains pickled objects, which can run code; remove them."
                refuse_if(any(getattr(step, "codec_id", "") == "pickle" for step in steps), msg)
                dtype = np.dtype("U1") if node.dtype.kind in "OTU" else node.dtype
                if dtype.kind in "buifU":
                    self.items[path] = Item(node.shape, dtype, partial(self._load, path, node))
                else:
                    upload.report["unused"][path] = f"values of type {dtype}"

    def attributes(self, path: str) -> Mapping[str, Any]:
        """Return the attributes of a group or array."""
        return dict(self._nodes[path].attrs) if path in self._nodes else {}

    def _load(self, path: str, node: Any) -> np.ndarray:
        most = max(node.size, math.prod(node.shards or node.chunks)) * node.dtype.itemsize
        self.upload.check_size(path, most)
        with self.upload.or_damaged(_NO_STORE):
            values = np.asarray(node[...])
            return self.upload.texts(path, values) if values.dtype.kind in "OTU" else values


class Contents:
    """Annotated data in a file or store."""

    def __init__(self, tree: Hdf5 | ZarrStore) -> None:
        self.upload, self.items, self.attributes = tree.upload, tree.items, tree.attributes

    def matrices(self) -> dict[str, Item]:
        """Return matrices that can be fitted: X, layers, representations; tables are reported."""
        matrices: dict[str, Item] = {}
        for path, item in self.items.items():
            parts = path.split("/")
            place = "X" if parts[0] == "X" else "/".join(parts[:2])
            if place != "X" and (parts[0] not in _PLACES or len(parts) < 2):
                continue
            if path == place and len(item.shape) == 2:
                matrices[place] = item
            elif f"{place}/indptr" in self.items:
                about = self.attributes(place)
                sides = np.ravel(about.get("shape", about.get("h5sparse_shape"))).tolist()
                kind = str(about.get("encoding-type", about.get("h5sparse_format")))
                stored = [self.items[f"{place}/{part}"] for part in ("data", "indices", "indptr")]
                load = partial(lambda stored: [part.load() for part in stored], stored)
                rows, columns = map(operator.index, sides)
                matrix = arrays.sparse_item(load, (rows, columns), by_columns="csc" in kind)
                matrices[place] = matrix._replace(dtype=stored[0].dtype)
            elif path != place:
                self.upload.report["unused"][place] = "a table; store it as an array"
        return matrices

    def index_path(self, table: str) -> str:
        """Return the path of the row names of obs or var; or raise InputError."""
        is_there = any(path.startswith(f"{table}/") for path in self.items)  # excludes links
        key = _text((self.attributes(table).get("_index") if is_there else None) or "_index")
        msg = f"“{self.upload.name}” has no names in {table}; save it again with anndata."
        refuse_if(not {f"{table}/{key}", f"{table}/{key}/values"} & self.items.keys(), msg)
        return f"{table}/{key}"

    def names(self, table: str) -> list[str]:
        """Return the row names of obs or var, made unique as in a data set."""
        return list(map(str, distinct_names(self.column(self.index_path(table)))))

    def columns(self, table: str, n: int) -> dict[str, str]:
        """Return the columns of a table with one value per row (n): name to path."""
        paths, index = {}, self.index_path(table)
        for path, item in self.items.items():
            if path.startswith(f"{table}/") and item.shape == (n,):
                key, *rest = path.removeprefix(f"{table}/").split("/")
                is_column = f"{table}/{key}" != index and key != "__categories"
                if is_column and rest in ([], ["codes"], ["values"]):
                    paths[key] = f"{table}/{key}"
        return paths

    def column(self, path: str) -> np.ndarray:
        """Read a column: numbers (NaN if missing) or texts (empty if missing)."""
        named = self.attributes(path).get("categories") if path in self.items else None
        if named is not None or f"{path}/codes" in self.items:
            codes = self.items[path if named is not None else f"{path}/codes"].load()
            of = f"{path}/categories" if named is None else _text(named)
            of = of if of in self.items else f"{path.rpartition('/')[0]}/{of}"  # anndata 0.7
            names = self.items[of].load().astype(str)
            places = codes.astype(np.int64, casting="same_kind")
            texts: np.ndarray = np.append([""], names)[np.maximum(places, -1) + 1]
            return texts  # the indexing raises IndexError for a code without a text
        values: np.ndarray = self.items[path if path in self.items else f"{path}/values"].load()
        if f"{path}/mask" in self.items:
            mask, is_number = self.items[f"{path}/mask"].load(), values.dtype.kind in "uif"
            values = np.array(values, float if is_number else str)
            values[mask.astype(bool, casting="no")] = np.nan if is_number else ""
        if values.dtype.kind == "f":
            return np.where(np.isfinite(values), values, np.nan)
        return values if values.dtype.kind in "uibU" else values.astype(str)

    def marked(self, options: H5adOptions, d: int) -> np.ndarray | None:
        """Return the indices of the variables to read; None for all."""
        columns = self.columns("var", d)
        types = self.column(columns["feature_types"]) if "feature_types" in columns else None
        name, marked = self.upload.name, options.mask_var
        places = of_type(self.upload, types, options.feature_type)
        if marked is None or (marked == HIGHLY_VARIABLE and marked not in columns):
            return places
        refuse_unknown("column", marked, columns, f" in var of “{name}”")
        marks = self.column(columns[marked])
        chosen = np.flatnonzero(marks if marks.dtype == bool else marks == "True")
        chosen = chosen if places is None else np.intersect1d(chosen, places)
        msg = f"“{shortened(marked)}” in var of “{name}” marks {len(chosen)} of {d:,} variables; "
        msg += "at least 2 are needed, so read all by mask_var=null."
        refuse_if(len(chosen) < 2, msg)
        self.upload.report["marked"] = {"column": marked, "of": d}
        return chosen

    def beside(self, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the names and the labels of the rows; text labels come before numeric ones."""
        columns, report = self.columns("obs", n), self.upload.report
        ids = self.column(self.index_path("obs")).astype(str)
        stated = np.ravel(self.attributes("obs").get("column-order", ())).tolist()
        place = {_text(name): i for i, name in enumerate(stated)}
        labels: dict[str, np.ndarray] = {}
        for key in sorted(columns, key=lambda key: place.get(key, len(place))):
            column = self.column(columns[key])
            n_values, is_number = len(np.unique(column)), column.dtype.kind in "uif"
            if n_values == 1 and str(column[0]) in ("", "nan"):
                report["unused"][f"obs/{key}"] = "empty"
            elif n_values > MOST_CATEGORIES and not is_number:
                report["unused"][f"obs/{key}"] = f"more than {MOST_CATEGORIES:,} classes"
            else:
                labels[key] = column
        report["obs"] = sorted(labels, key=lambda key: labels[key].dtype.kind in "uif")
        return ids, {key: labels[key] for key in report["obs"]}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@contextmanager
def opened_h5ad(name: str, file: File, limits: ReadLimits) -> Iterator[Contents]:
    """Open an .h5ad file."""
    with (
        uploads.plain_file(name, file, limits) as stream,
        arrays.opened_hdf5(Upload(name, limits), stream) as tree,
    ):
        _split_tables(tree)
        yield Contents(tree)


def _split_tables(tree: Hdf5) -> None:
    """Add the columns of the tables of anndata before 0.7 as arrays, named as in newer files."""
    for table in {"obs", "var", "obsm"} & tree.tables.keys():
        tree.upload.check_size(table, tree.tables[table].nbytes)
        with tree.upload.or_damaged("is damaged; write it again"):
            values = tree.tables[table][()]
        del tree.unused[table]
        for j, key in enumerate(values.dtype.names):
            path = f"{table}/{'_index' if j == 0 and table != 'obsm' else key}"
            column, names = values[key], tree.items.get(f"uns/{key}_categories")
            if column.dtype.kind in "SO":
                column = np.char.decode(column.astype("S"), "utf-8", "replace")
            if names is not None and column.dtype.kind in "iu":
                tree.items[f"{path}/categories"] = names
                path += "/codes"
            tree.items[path] = Item(column.shape, column.dtype, partial(np.copy, column))


@contextmanager
def opened_zarr(name: str, file: File, limits: ReadLimits) -> Iterator[Contents]:
    """Open a zipped store, which is unpacked on disk."""
    upload = Upload(name, limits)
    with (
        uploads.file_stream(name, file, limits) as stream,
        TemporaryDirectory(dir=limits.scratch) as made,
    ):
        archive, folder = uploads.members(name, stream, limits)[0], Path(made)
        with upload.or_damaged(_NO_STORE):
            archive.extractall(folder)
        yield Contents(ZarrStore(upload, folder / root_of(archive.namelist())))


def root_of(names: list[str]) -> str:
    """Return the folder of the store inside a zip, "" if it is at the top."""
    places = [path.rpartition("/") for path in names]
    return min((place[0] for place in places if place[2] in _DESCRIPTIONS), key=len, default="")


def packed(store: Path) -> BinaryIO:
    """Return a temporary zip of a store in a folder; equal stores give equal files."""
    kept = TemporaryFile()  # noqa: SIM115 (the caller closes it)
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(path for path in store.rglob("*") if path.is_file()):
            named = zipfile.ZipInfo(path.relative_to(store).as_posix())  # no date
            archive.writestr(named, path.read_bytes())
    return cast("BinaryIO", kept)


def read(
    opened: Any, name: str, file: File, options: H5adOptions, limits: ReadLimits = LIMITS
) -> Dataset:
    """Read X, a layer or a representation; columns of `obs` are labels. Other Zarr is like HDF5."""
    with opened(name, file, limits) as contents:
        upload, unused = contents.upload, contents.upload.report["unused"]
        if opened is opened_zarr and not any(path[:4] == "obs/" for path in contents.items):
            items = {path or "array": item for path, item in contents.items.items()}
            how = arrays.ArrayOptions(options.array, missing=options.missing)
            return arrays.read_items(upload, items, how)
        with upload.or_damaged("is not a file of annotated data or is damaged; write it again"):
            matrices = contents.matrices()
            wanted = arrays.choose(upload, matrices, options.array)
            item = matrices[wanted]
            n, d = item.shape
            if not item.is_sparse:
                arrays.check_array(wanted, item.shape, item.dtype, upload.limits)
            ids, labels = contents.beside(n)
            features, places = None, None
            if not wanted.startswith("obsm/"):
                features, places = contents.names("var"), contents.marked(options, d)
            if len(ids) != n or (features is not None and len(features) != d):
                msg = "has another number of names"
                raise ValueError(msg)
            X = arrays.native(values_of(upload, item, places))
        if features is not None and places is not None:
            features = [features[j] for j in places.tolist()]
        upload.report.update(array=wanted, dtype=str(item.dtype))
        del matrices[wanted]
        unused |= {path: f"another matrix; read it with array={path}" for path in matrices}
        tops = {path: re.split("[/.]", path)[0] for path in (*contents.items, *unused)}
        for path in [path for path in unused if tops[path] in _OTHER]:
            del unused[path]
        unused |= {part: why for part, why in _OTHER.items() if part in tops.values()}
        return build(upload, X, Beside(ids, labels, features), options.missing)


MARKETS = (".mtx", ".mtx.gz")
_SIDES = {
    "rows": ("barcodes", "rows", "cells", "docs"),
    "columns": ("features", "genes", "cols", "terms"),
}


class MtxOptions(NamedTuple):
    """How to read a Matrix Market file."""

    transpose: bool | None = None
    feature_type: str | None = None  # feature type; None: gene expression, "all": every type
    missing: str = "refuse"  # or "model", "mean", "drop"


def is_market(names: list[str]) -> bool:
    """Whether files are a Matrix Market file, with or without files of names."""
    matrices = [name for name in names if name.lower().endswith(MARKETS)]
    return len(matrices) == 1 and all(side_of(name) for name in names if name not in matrices)


def read_market(files: Files, options: MtxOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a matrix, and the names of its rows and columns from other files."""
    from scipy.io import mminfo, mmread
    from scipy.sparse import coo_matrix

    name, file = next(named for named in files if named[0].lower().endswith(MARKETS))
    upload = Upload(shortened(name, uploads.LONGEST_NAME), limits)
    text = uploads.file_bytes(name, file, limits)
    with upload.or_damaged("is not a Matrix Market file or is damaged; save it again"):
        rows, columns, entries, *_ = mminfo(io.BytesIO(text))
        msg = f"“{upload.name}” declares {rows:,} x {columns:,} numbers, more than it contains or "
        msg += f"more than {limits.most}; save it again."
        refuse_if(entries > len(text) or max(rows, columns) * 8 > limits.n_bytes, msg)
        matrix = coo_matrix(mmread(io.BytesIO(text), spmatrix=False))
    tables: dict[str, list[list[str]]] = {}  # the second cell of a feature is its symbol
    for other, data in _with_neighbours(files):
        if other != name:
            beside = uploads.file_bytes(shortened(other), data, limits)
            told = beside.decode("utf-8-sig", "replace").splitlines()
            cells = [line.split("\t") for line in told if line.strip()]
            has_heading = len(cells) - 1 in matrix.shape and len(cells) not in matrix.shape
            tables[side_of(other)] = [[*map(str.strip, line)] for line in cells[has_heading:]]
    sizes = {side: len(lines) for side, lines in tables.items()}
    if (turn := options.transpose) is None:
        turn = any(
            sizes.get(side) == matrix.shape[1 - axis] != matrix.shape[axis]
            for axis, side in enumerate(_SIDES)
        ) or (len(set(matrix.shape)) == 1 and "rows" in tables)
    matrix = matrix.T if turn else matrix
    for n, side in zip(matrix.shape, _SIDES, strict=True):
        msg = f"“{upload.name}” has {n:,} {side}, but the file of names has "
        msg += f"{sizes.get(side, n):,}; give the files that belong together."
        refuse_if(sizes.get(side, n) != n, msg)
    upload.report["turned"] = turn
    uploads.note(upload.report, "Rows", f"the {'columns' if turn else 'rows'} of the matrix")
    table = tables.get("columns", [])
    types = np.array([line[2] for line in table]) if table and min(map(len, table)) > 2 else None
    places = of_type(upload, types, options.feature_type)
    X = values_of(upload, Item(matrix.shape, matrix.dtype, matrix.tocsr, is_sparse=True), places)
    names = [line[min(1, len(line) - 1)] for line in table]
    names = names if places is None else [names[j] for j in places.tolist()]
    ids = np.array([line[0] for line in tables["rows"]]) if "rows" in tables else None
    return build(upload, X, Beside(ids, {}, names or None), options.missing)


def _with_neighbours(files: Files) -> Files:
    name, file = files[0]
    if len(files) > 1 or not isinstance(file, (str, Path)) or Path(file).name != name:
        return files
    stem = name.lower().removesuffix(".gz").removesuffix(".mtx")
    neighbours: dict[str, Path] = {}
    for path in sorted(Path(file).parent.iterdir()):
        side = side_of(path.name)
        belongs = stem == "matrix" or path.name.lower().startswith(stem.removesuffix("matrix"))
        if side and belongs and path.is_file():
            neighbours.setdefault(side, path)
    return [*files, *((path.name, path) for path in neighbours.values())]


def side_of(name: str) -> str:
    """Return the side that a file names: "rows", "columns", or "" for neither."""
    file = PurePosixPath(name.lower().replace("\\", "/")).name.removesuffix(".gz")
    stem, _, ending = file.rpartition(".")
    is_table = ending in ("tsv", "txt", "csv")
    for side, titles in _SIDES.items():
        if any(title in stem if is_table else title == ending for title in titles):
            return side
    return ""


H5AD_READER = Reader(H5adOptions, partial(read, opened_h5ad))
ZARR_READER = Reader(H5adOptions, partial(read, opened_zarr))
MTX_READER = Reader(MtxOptions, None, read_market)
