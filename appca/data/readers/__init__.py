"""Uploaded files as data sets, one module for each format."""

import gzip
import zlib
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import (
    ENDINGS,
    LIMITS,
    LONGEST_NAME,
    File,
    Files,
    Reader,
    ReadLimits,
    checksum,
    file_stream,
    members,
    total_bytes,
)
from appca.data.pixels import PixelShape, pixel_order
from appca.words import InputError, naming_extra, shortened

_TABLES = (".csv", ".tsv", ".tab", ".txt", ".dat")
_HOMES = {
    ".zarr.zip": "zarr",
    ".zarr": "zarr",  # a folder, packed by whoever opened it
    **{suffix + packing: "csv" for suffix in _TABLES for packing in ("", ".gz")},
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "sheet"),
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    ".npz": "npz",
    ".mat": "mat",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".h5ad": "h5ad",
    ".mtx": "mtx",
    ".mtx.gz": "mtx",
    **{suffix + packing: "idx" for suffix in (".idx", "-ubyte") for packing in ("", ".gz")},
    ".zip": "images",
    **dict.fromkeys(ENDINGS, "images"),
    ".nii": "nifti",
    ".nii.gz": "nifti",
}
SUFFIXES = tuple(_HOMES)
# kind -> the module that has its reader, and the reader's name
_READERS = {
    "csv": ("appca.data.readers.tables", "READER"),
    "sheet": ("appca.data.readers.tables", "SHEET_READER"),
    "parquet": ("appca.data.readers.parquet", "READER"),
    "npy": ("appca.data.readers.arrays", "NPY_READER"),
    "npz": ("appca.data.readers.arrays", "NPZ_READER"),
    "idx": ("appca.data.readers.arrays", "IDX_READER"),
    "mat": ("appca.data.readers.hdf5", "MAT_READER"),
    "hdf5": ("appca.data.readers.hdf5", "HDF5_READER"),
    "h5ad": ("appca.data.readers.annotated", "H5AD_READER"),
    "zarr": ("appca.data.readers.annotated", "ZARR_READER"),
    "mtx": ("appca.data.readers.mtx", "READER"),
    "images": ("appca.data.readers.images", "READER"),
    "nifti": ("appca.data.brain", "READER"),
}
_TITLES = {
    "csv": "tables",
    "sheet": "spreadsheets",
    "parquet": "Parquet",
    "h5ad": "annotated data",
    "mtx": "Matrix Market",
    "zarr": "Zarr",
    "images": "images",
    "nifti": "NIfTI",
}
# read by C code that a broken file can crash: see `process`
BY_LIBRARIES = {"sheet", "mat", "hdf5", "h5ad", "mtx", "zarr"}
_REMEDIES = {  # for endings that people try, beside the general one
    **dict.fromkeys((".rds", ".rdata", ".rda"), "write it in R by write.csv(x, 'x.csv')"),
    **dict.fromkeys((".pkl", ".pickle", ".feather"), "write it by frame.to_parquet('x.parquet')"),
    **dict.fromkeys((".sav", ".dta", ".sas7bdat"), "export it there as CSV"),
    **dict.fromkeys((".doc", ".docx", ".pdf", ".html"), "copy its table into a spreadsheet"),
    **dict.fromkeys((".dcm", ".svg", ".heic"), "save it as PNG"),
    **dict.fromkeys((".rar", ".7z", ".tar", ".tgz", ".zst"), "unpack it, and give what is in it"),
}
_STARTS = {
    b"\x93NUM": "npy",
    b"PAR1": "parquet",
    b"MATL": "mat",
    b"\x89HDF": "hdf5",
}  # first bytes of a file
_IDX_TYPES = b"\x08\x09\x0b\x0c\x0d\x0e"


def kind_of(name: str, file: File | None = None) -> str | None:
    """Name the module that reads a file: by the end of its name, else by its first bytes."""
    lower = name.lower()
    kind = next((home for end, home in _HOMES.items() if lower.endswith(end)), None)
    return kind or (None if file is None else _kind_by_content(name, file))


def by_libraries(files: Files, limits: ReadLimits = LIMITS) -> bool:
    """Whether files are to be read apart: see `process`."""
    if {kind_of(*named_file) for named_file in files} & BY_LIBRARIES:
        return True
    name, file = files[0]
    if len(files) > 1 or not name.lower().endswith((".zip", ".npz")):
        return False
    with file_stream(name, file, limits) as stream:
        _, items = members(name, stream, limits, may_be_inside=(".gz",))
    ends = (".mtx", ".mtx.gz", "indptr.npy")  # Matrix Market, and sparse matrices of SciPy
    return any(item.filename.lower().endswith(ends) for item in items)


@naming_extra()
def read(name: str, file: File, *, limits: ReadLimits = LIMITS, **options: object) -> Dataset:
    """Read a file by the reader its suffix, or failing that its content, asks for.

    Parameters
    ----------
    name : str
        The file's name; it is never used as a path.
    file : path or binary file object
    limits : ReadLimits
        What the file may ask of the machine.
    **options
        Fields of `CsvOptions` or `ParquetOptions` in `appca.data.readers.tables`, of `NpyOptions`,
        `NpzOptions`, `MatOptions`, `Hdf5Options` or `IdxOptions` in `appca.data.readers.arrays`, of
        `H5adOptions` or `MtxOptions` in `appca.data.readers.sparse`, of
        `appca.data.readers.images.ImageOptions` or `appca.data.brain.NiftiOptions`.
        With an ``image_shape``, ``by_column=True`` says that pixels run down the columns first.

    Returns
    -------
    Dataset
        ``provenance["report"]`` says what was found: rows, columns, roles, missing cells,
        constant columns, duplicate rows, and what was done about them; ``sha256`` is of the file,
        ``options`` are those given. Numbers of large files may stay on the disk until they are
        used.

    Raises
    ------
    InputError
        One sentence; its ``report`` holds what was found until then.
    """
    return read_many([(name, file)], limits=limits, **options)


@naming_extra()
def read_many(files: Files, *, limits: ReadLimits = LIMITS, **options: object) -> Dataset:
    """Read files that make one data set together; a single one is read as by `read`.

    They are images, with folders in their names if they have some, of which other files are left
    out and named in the report; Parquet files with the same columns; an array and a table; IDX
    files of images and of labels; or a NIfTI recording and its mask.
    """
    if not files:
        msg = "There is no file to read; give at least one."
        raise InputError(msg)
    limits = limits.within(total_bytes(files))
    kind = _kind_together(files, limits)
    reader = _reader(kind)
    down = kind != "mat" and options.get("image_shape") and options.get("by_column")
    passed = {key: value for key, value in options.items() if kind == "mat" or key != "by_column"}
    chosen = _checked_options(kind, reader, passed)
    if reader.read_many is not None:
        dataset = reader.read_many(files, chosen, limits)
    else:
        assert reader.read is not None  # one of the two is there
        name, file = files[0]
        dataset = reader.read(shortened(name, LONGEST_NAME), file, chosen, limits)
    if down:
        dataset = _down_first(dataset)
    dataset.provenance["sha256"] = checksum(files, limits)
    plain = {key: value for key, value in options.items() if key not in ("mask", "mask_name")}
    if plain:
        dataset.provenance["options"] = plain
    return dataset


def _down_first(dataset: Dataset) -> Dataset:
    """Bring pixels that run down the columns of images into the order of their rows."""
    h, w, *colour = dataset.image_shape or (1, dataset.n_features)
    places = pixel_order(PixelShape(h, w, colour[0] if colour else 1, by_column=True))
    names, gaps = dataset.feature_names, dataset.missing
    return replace(
        dataset,
        X=np.asarray(dataset.X[:, places]),
        feature_names=None if names is None else tuple(names[j] for j in places.tolist()),
        missing=None if gaps is None else gaps[:, places],
    )


def _kind_together(files: Files, limits: ReadLimits) -> str:
    names = [name for name, _ in files]
    if len(names) > 1 and any(".zarr/" in name for name in names):
        msg = "A folder of Zarr is opened as one file; zip it as NAME.zarr.zip, or name its path."
        raise InputError(msg)
    if any(name.lower().endswith((".mtx", ".mtx.gz", ".zip")) for name in names):
        from appca.data.readers import mtx

        zipped = len(names) == 1 and names[0].lower().endswith(".zip")
        if mtx.holds_market(*files[0], limits) if zipped else mtx.is_market(names):
            return "mtx"
    kinds = [kind_of(*named_file) for named_file in files]
    if sorted(map(str, kinds)) in (["csv", "npy"], ["npy", "parquet"]) and any(
        name.lower().endswith(".npy") for name in names
    ):
        return "npy"
    return _common_kind(names, kinds)


def _reader(kind: str) -> Reader[Any]:
    """Import the module for a kind; only then, for some bring pandas, SciPy or nibabel."""
    module, name = _READERS[kind]
    reader: Reader[Any] = getattr(import_module(module), name)
    return reader


def _common_kind(names: list[str], kinds: list[str | None]) -> str:
    """Return the reader for all files together, or say why there is none."""
    if len(names) == 1:
        if kinds[0] is None:
            name, ending = shortened(names[0], LONGEST_NAME), Path(names[0]).suffix.lower()
            remedy = _REMEDIES.get(
                ending, "save its table as CSV, XLSX or Parquet, or its array as NPY"
            )
            msg = f"“{name}” is of no known kind; {remedy}."
            raise InputError(msg)
        return kinds[0]
    if any(name.lower().endswith(ENDINGS) for name in names):
        return "images"
    if set(kinds) in ({"idx"}, {"parquet"}):
        return str(kinds[0])
    scans, tables = kinds.count("nifti"), kinds.count("csv")
    masks = sum("mask" in name.lower() for name in names)
    if scans + tables == len(kinds) and tables <= 1 and (scans, masks) in ((1, 0), (2, 1)):
        return "nifti"
    some = ", ".join(f"“{shortened(name)}”" for name in names[:3])
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    msg = (
        f"{some}{more} do not make one data set together; give one of them, or images, an NPY "
        "file and a table, Parquet files with the same columns, IDX files with their labels, or a "
        "NIfTI recording, a file with “mask” in its name and a table of its events."
    )
    raise InputError(msg)


def _checked_options(kind: str, reader: Reader[Any], options: dict[str, object]) -> Any:
    names = reader.options._fields
    unknown = sorted(set(options) - set(names))
    if unknown:
        title = _TITLES.get(kind, kind.upper())
        msg = f"Reading {title} has the options {', '.join(names)}; got {', '.join(unknown)}."
        raise InputError(msg)
    return reader.options(**options)


def _kind_by_content(name: str, file: File) -> str | None:
    with file_stream(name, file) as stream:
        start = stream.read(4)
        if start[:2] == b"\x1f\x8b":
            stream.seek(0)
            try:
                with gzip.open(stream) as inner:
                    start = inner.read(4)
            except (EOFError, OSError, zlib.error):
                return None
    is_idx = len(start) == 4 and start[:2] == b"\0\0" and start[2] in _IDX_TYPES
    return "idx" if is_idx and 1 <= start[3] <= 4 else _STARTS.get(start)
