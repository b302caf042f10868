"""Readers of uploaded files, one module per format."""

import gzip
import re
import zlib
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.data import files as uploads
from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, Files, Reader, ReadLimits
from appca.data.pixels import PixelShape, pixel_order
from appca.data.readers.annotated import is_market, side_of
from appca.data.readers.intake import names_beside
from appca.words import InputError, counted, naming_extra, refuse_if, shortened


class Kind(NamedTuple):
    """A kind of file and its reader."""

    endings: tuple[str, ...]  # file name endings
    module: str
    reader: str = "READER"  # name in the module
    title: str = ""


def _gz(*endings: str) -> tuple[str, ...]:
    return (*endings, *(f"{ending}.gz" for ending in endings))


_HERE = "appca.data.readers."
_TEXTS = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".asc", ".prn")
_SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
KINDS = {
    "zarr": Kind((".zarr.zip", ".zarr"), f"{_HERE}annotated", "ZARR_READER", "Zarr"),
    "csv": Kind(_gz(*_TEXTS), f"{_HERE}tables", title="tables"),
    "sheet": Kind(_SHEETS, f"{_HERE}tables", "SHEET_READER", "spreadsheets"),
    "parquet": Kind((".parquet", ".pq"), f"{_HERE}parquet", title="Parquet"),
    "npy": Kind((".npy",), f"{_HERE}arrays", "NPY_READER"),
    "npz": Kind((".npz",), f"{_HERE}arrays", "NPZ_READER"),
    "mat": Kind((".mat",), f"{_HERE}arrays", "MAT_READER"),
    "arff": Kind((".arff",), f"{_HERE}tables", "ARFF_READER"),
    "json": Kind(_gz(".json", ".jsonl", ".ndjson"), f"{_HERE}tables", "JSON_READER"),
    "hdf5": Kind((".h5", ".hdf5"), f"{_HERE}arrays", "HDF5_READER"),
    "h5ad": Kind((".h5ad",), f"{_HERE}annotated", "H5AD_READER", "annotated data"),
    "mtx": Kind(_gz(".mtx"), f"{_HERE}annotated", "MTX_READER", "Matrix Market"),
    "idx": Kind(_gz(".idx", "-ubyte"), f"{_HERE}arrays", "IDX_READER"),
    "images": Kind((".zip", *uploads.ENDINGS), f"{_HERE}images", title="images"),
    "nifti": Kind(_gz(".nii"), "appca.data.brain", title="NIfTI"),
}
# read by C libraries that a damaged file can crash: see `process`
BY_LIBRARIES = {"sheet", "mat", "hdf5", "h5ad", "mtx", "zarr"}
_REMEDIES = {
    **dict.fromkeys((".rds", ".rdata", ".rda"), "save it in R with write.csv(x, 'x.csv')"),
    **dict.fromkeys((".pkl", ".pickle", ".feather"), "save it with frame.to_parquet('x.parquet')"),
    **dict.fromkeys((".sav", ".dta", ".sas7bdat"), "export it as CSV"),
    **dict.fromkeys((".doc", ".docx", ".pdf", ".html"), "copy its table into a spreadsheet"),
    **dict.fromkeys((".dcm", ".svg", ".heic"), "save it as PNG"),
}
_PACKED = (".rar", ".7z", ".tar", ".tgz", ".zst", ".bz2", ".xz")
_REMEDIES |= dict.fromkeys(_PACKED, "unpack it, and open its contents")
_STARTS = {b"\x93NUM": "npy", b"PAR1": "parquet", b"MATL": "mat", b"\x89HDF": "hdf5"}
_STARTS |= {bytes([0, 0, k, n]): "idx" for k in b"\x08\x09\x0b\x0c\x0d\x0e" for n in range(1, 5)}
_ROW = re.compile(rb"\d[\s,;|]+[-+.]?\d")


def kind_of(name: str, file: File | None = None) -> str | None:
    """Return the kind of a file by its extension, else by its first bytes."""
    kind = next((key for key, kind in KINDS.items() if name.lower().endswith(kind.endings)), None)
    if kind is not None or file is None:
        return kind
    with uploads.file_stream(name, file) as stream:
        start = stream.read(4)
        if start[:2] == b"\x1f\x8b":
            stream.seek(0)
            try:
                with gzip.open(stream) as inner:
                    start = inner.read(4)
            except (EOFError, OSError, zlib.error):
                return None
    return _STARTS.get(start)


def by_libraries(files: Files) -> bool:
    """Whether files must be read in a separate process: see `process`."""
    kinds = {kind_of(*named_file) for named_file in files}
    return bool(kinds & BY_LIBRARIES) or files[0][0].lower().endswith(".zip")


@naming_extra()
def read(name: str, file: File, *, limits: ReadLimits = LIMITS, **options: object) -> Dataset:
    """Read a file of any supported format, detected from its extension or its first bytes.

    Parameters
    ----------
    name : str
        The file's name; it is never used as a path.
    file : path or binary file object
    limits : ReadLimits
        Limits of size and memory.
    **options
        Fields of the reader's options: of `CsvOptions`, `SheetOptions` or `TableOptions` (Parquet
        and ARFF) for tables, `NpyOptions` (NPY, IDX), `ArrayOptions` (NPZ, MAT, HDF5),
        `H5adOptions` (also for Zarr), `MtxOptions` or `ImageOptions`. With an ``image_shape``,
        ``by_column=True`` means that pixels are stored column by column.

    Returns
    -------
    Dataset
        ``provenance["report"]`` contains findings and remedies, ``sha256`` the checksum of the
        file, and ``options`` the given options. Values of large files may stay on disk until they
        are used.

    Raises
    ------
    InputError
        If the file cannot be read, with the reason in one sentence; ``report`` has the findings.
    """
    return read_many([(name, file)], limits=limits, **options)


@naming_extra()
def read_many(files: Files, *, limits: ReadLimits = LIMITS, **options: object) -> Dataset:
    """Read files that form one data set; a single file is read as by `read`.

    The files are images, with any folders in their names (other files are skipped and reported);
    Parquet files with the same columns; an array and a table; two text tables, one of them narrow;
    IDX files of images and of their labels; or a NIfTI recording and its mask.
    """
    refuse_if(not files, "There is no file to read; give at least one.")
    uploaded = files
    files, left_out = _unzipped(files, limits)
    temporary = () if files is uploaded else files
    if len(files) > 1 and not {kind_of(name) for name, _ in files} & {"npy", "images"}:
        texts = [named for named in files if named[0].endswith(".txt") and not side_of(named[0])]
        prose = [n[0] for n in texts if not _ROW.search(uploads.file_bytes(*n, limits))]
        files = [named for named in files if named[0] not in prose] or files
        left_out += prose
    kind = _kind_together(files)
    reader: Reader[Any] = getattr(import_module(KINDS[kind].module), KINDS[kind].reader)
    passed = {key: value for key, value in options.items() if key != "by_column"}
    fields = reader.options._fields
    unknown, title = sorted(set(passed) - set(fields)), KINDS[kind].title or kind.upper()
    has = f"the options {', '.join(fields)}" if fields else "no options"
    refuse_if(unknown, f"The reader of {title} has {has}; got {', '.join(unknown)}.")
    chosen = reader.options(**passed)
    with ExitStack() as ends:
        for _, file in temporary:
            if file is not uploaded[0][1]:
                ends.callback(getattr(file, "close", int))
        if reader.read_many is not None and (len(files) > 1 or reader.read is None):
            dataset = reader.read_many(files, chosen, limits)
        else:
            assert reader.read is not None  # every reader has this or `read_many`
            name, file = min(files, key=lambda named: kind_of(*named) != kind)
            dataset = reader.read(shortened(name, uploads.LONGEST_NAME), file, chosen, limits)
            if len(files) > 1:
                dataset = _named_by(dataset, *max(files, key=lambda n: kind_of(*n) != kind), limits)
    if len(files) > 1:
        dataset.provenance["files"] = [name for name, _ in files]
    if options.get("image_shape") and options.get("by_column", kind == "mat"):
        dataset = _down_first(dataset)
    if left_out:
        dataset.provenance["report"].setdefault("skipped", []).extend(left_out)
    dataset.provenance["sha256"] = uploads.checksum(uploaded, limits)
    if options:
        dataset.provenance["options"] = options
    return dataset


def _named_by(dataset: Dataset, name: str, file: File, limits: ReadLimits) -> Dataset:
    from appca.data.readers.tables import table_beside

    n, title = dataset.n_rows, shortened(name, uploads.LONGEST_NAME)
    msg = f"“{dataset.name}” lost its rows with missing values, so the lines of “{title}” no "
    msg += "longer match; keep those rows (missing=model)."
    refuse_if(dataset.provenance["report"].get("dropped"), msg)
    table = table_beside(str(kind_of(name, file)), title, file, n, limits)
    msg = f"“{title}” has {counted(len(table.frame), 'line')} for the {counted(n, 'row')} of the "
    msg += "array; give a table with one line for each row."
    refuse_if(len(table.frame) != n, msg)
    ids, labels, unused = names_beside(table, limits)
    dataset.provenance["report"].setdefault("unused", {}).update(unused)
    return replace(dataset, ids=dataset.ids if ids is None else ids, labels=labels)


def _down_first(dataset: Dataset) -> Dataset:
    """Reorder pixels that are stored column by column to row-major order."""
    h, w, *colour = dataset.image_shape or (1, dataset.n_features)
    places = pixel_order(PixelShape(h, w, colour[0] if colour else 1, by_column=True))
    names, gaps = dataset.feature_names, dataset.missing
    return replace(
        dataset,
        X=np.asarray(dataset.X[:, places]),
        feature_names=None if names is None else tuple(names[j] for j in places.tolist()),
        missing=None if gaps is None else gaps[:, places],
    )


def _unzipped(files: Files, limits: ReadLimits) -> tuple[Files, list[str]]:
    name, file = files[0]
    if len(files) > 1 or not name.lower().endswith(".zip") or kind_of(name) == "zarr":
        return files, []
    with uploads.file_stream(name, file, limits) as stream:
        archive, items = uploads.members(name, stream, limits, may_be_inside=(".gz", ".npz"))
        if any(item.filename.lower().endswith(uploads.ENDINGS) for item in items):
            return files, []
        if {Path(path).name for path in archive.namelist()} & {".zgroup", ".zarray", "zarr.json"}:
            return ((f"{name[:-4]}.zarr.zip", file),), []
        inside, others = list[tuple[str, File]](), list[str]()
        for item in items:
            if side_of(item.filename) or kind_of(item.filename):
                packed = uploads.unpacked(name, archive, item)
                content = uploads.temporary_file(name, packed, limits)
                inside.append(("/".join(uploads.parts(item.filename)), content))
            else:
                others.append(item.filename)
    return (inside, sorted(others)) if inside else (files, [])


def _kind_together(files: Files) -> str:
    """Return the kind whose reader reads all files together, or raise InputError."""
    names = [name for name, _ in files]
    zarr = "A Zarr folder is opened as one file; zip it as NAME.zarr.zip, or give its path."
    refuse_if(len(names) > 1 and any(".zarr/" in name for name in names), zarr)
    kinds = [kind_of(*named_file) for named_file in files]
    together, scans, tables = {*kinds}, kinds.count("nifti"), kinds.count("csv")
    masks = sum("mask" in name.lower() for name in names)
    is_scan = scans + tables == len(kinds) and tables <= 1 and (scans, masks) in ((1, 0), (2, 1))
    is_named = len(names) == 2 and together in ({"csv", "npy"}, {"npy", "parquet"})
    has_images = len(names) > 1 and any(name.lower().endswith(uploads.ENDINGS) for name in names)
    rules = (
        (is_market(names), "mtx"),
        (len(names) == 1 or together in ({"csv"}, {"idx"}, {"parquet"}), kinds[0]),
        (is_named, "npy"),
        (has_images, "images"),
        (is_scan, "nifti"),
    )
    if kind := next((kind for holds, kind in rules if holds and kind), None):
        return kind
    if len(names) == 1:
        general = "save its table as CSV, XLSX or Parquet, or its array as NPY"
        remedy = _REMEDIES.get(Path(names[0]).suffix.lower(), general)
        msg = f"“{shortened(names[0], uploads.LONGEST_NAME)}” has an unknown format; {remedy}."
        raise InputError(msg)
    some = ", ".join(f"“{shortened(name)}”" for name in names[:3])
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    msg = (
        f"{some}{more} cannot be combined into one data set; give one of them, or images, an NPY "
        "file and a table, two CSV files, Parquet files with the same columns, an IDX file and its "
        "labels, or a NIfTI recording, a file with “mask” in its name and a table of its events."
    )
    raise InputError(msg)
