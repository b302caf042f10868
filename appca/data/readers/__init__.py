"""Uploaded files as data sets, one module for each format."""

from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from appca.data.dataset import Dataset
from appca.data.errors import InputError
from appca.data.readers.source import LIMITS, Limits
from appca.data.wording import shortened

_TABLES = (".csv", ".tsv", ".tab", ".txt", ".dat")
_LONGEST_NAME = 80  # characters that a sentence, and the data set, keep of a file's name
_HOMES = {
    **{suffix + packing: "csv" for suffix in _TABLES for packing in ("", ".gz")},
    ".npy": "npy",
    ".zip": "images",
    ".nii": "nifti",
    ".nii.gz": "nifti",
}
SUFFIXES = tuple(_HOMES)


def read(
    name: str, file: Path | str | BinaryIO, *, limits: Limits = LIMITS, **options: object
) -> Dataset:
    """
    Read a file by the reader its suffix asks for.

    Parameters
    ----------
    name : str
        The file's name; only its suffix decides, and it is never used as a path.
    file : path or binary file object
    limits : Limits
        What the file may ask of the machine.
    **options
        ``Options`` of the reader: `appca.data.readers.csv`, ``npy``, ``images`` or ``nifti``.

    Returns
    -------
    Dataset
        ``provenance["report"]`` says what was found: rows, columns, roles, missing cells,
        constant columns, duplicate rows, and what was done about them.

    Raises
    ------
    InputError
        One sentence; its ``report`` holds what was found until then.
    """
    suffix = next((end for end in SUFFIXES if name.lower().endswith(end)), None)
    name = shortened(name, _LONGEST_NAME)
    if suffix is None:
        msg = f"“{name}” is of no known kind; give a file that ends in {', '.join(SUFFIXES)}."
        raise InputError(msg)
    reader = import_module(f"appca.data.readers.{_HOMES[suffix]}")
    unknown = sorted(set(options) - set(reader.Options._fields))
    if unknown:
        known = ", ".join(reader.Options._fields)
        msg = f"Reading “{suffix}” has the options {known}; got {', '.join(unknown)}."
        raise InputError(msg)
    return reader.read(name, file, reader.Options(**options), limits)
