"""Matrix Market files, alone or with the names of barcodes and features that 10x writes beside."""

import io
import re
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

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
)
from appca.data.readers.arrays import Beside, Compressed, build_sparse, check_rows, filled
from appca.words import InputError, shortened

ENDINGS = (".mtx", ".mtx.gz")
_BARCODES, _FEATURES = ("barcodes",), ("features", "genes")
_MOST_BANNER = 1 << 16  # bytes of comments before the sizes
_LEAST_ENTRY = {"coordinate": 4, "array": 2}  # bytes of a line: "1 1\n" of a pattern, "0\n"


class MtxOptions(NamedTuple):
    """How to read a Matrix Market file."""

    transpose: bool | None = None  # each column is a row; None: where barcodes name the columns
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN


def is_market(names: list[str]) -> bool:
    """Whether files are one matrix, with names beside it or not."""
    matrices = [name for name in names if name.lower().endswith(ENDINGS)]
    others = [name for name in names if name not in matrices]
    return len(matrices) == 1 and all(_stem(name) for name in others)


def holds_market(name: str, file: File, limits: ReadLimits) -> bool:
    """Whether a zip holds a Matrix Market file."""
    with file_stream(name, file, limits) as stream:
        archive, items = members(name, stream, limits, may_be_inside=(".gz",))
        archive.close()
    return any(item.filename.lower().endswith(ENDINGS) for item in items)


def read_many(files: Files, options: MtxOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a matrix, and names of its rows and columns, from files or one zip of them.

    Barcodes are rows, features are columns.
    """
    title = shortened(files[0][0], LONGEST_NAME)
    texts = _unpacked(files, limits)
    name = next((name for name in texts if name.lower().endswith(ENDINGS)), None)
    if name is None:
        msg = f"“{title}” holds no Matrix Market file; its name ends in .mtx or .mtx.gz."
        raise InputError(msg)
    matrix = _matrix(shortened(name), texts[name], limits)
    names = {_stem(key): _names(text) for key, text in texts.items() if key != name}
    cells, genes = names.get("barcodes"), names.get("features")
    turn = options.transpose
    if turn is None:
        turn = cells is not None and len(cells) == matrix.shape[1]
    matrix = matrix.turned() if turn else matrix
    check_rows(name, matrix.shape, limits)
    X = filled(title, matrix, None, limits)
    for what, labels, side in (("barcodes", cells, 0), ("features", genes, 1)):
        if labels is not None and len(labels) != matrix.shape[side]:
            msg = (
                f"“{title}” has {len(labels):,} {what} for {matrix.shape[side]:,} "
                f"{('rows', 'columns')[side]}; give the files that belong together."
            )
            raise InputError(msg)
    named = Beside(None if cells is None else np.array(cells), {})
    return build_sparse(title, X, named, genes, options.missing, {"dtype": str(X.dtype)}, limits)


def _unpacked(files: Files, limits: ReadLimits) -> dict[str, bytes]:
    """Return the texts of all files by their names; of a zip, of what is inside."""
    name, file = files[0]
    if len(files) > 1 or not name.lower().endswith(".zip"):
        return {name: file_bytes(shortened(name), file, limits) for name, file in files}
    with file_stream(name, file, limits) as stream:
        archive, items = members(name, stream, limits, may_be_inside=(".gz",))
        wanted = [item for item in items if is_market([item.filename]) or _stem(item.filename)]
        packed = {item.filename: content(name, archive, item) for item in wanted}
    return {
        key: file_bytes(shortened(key), io.BytesIO(data), limits) for key, data in packed.items()
    }


def _stem(name: str) -> str:
    """Return "barcodes" or "features" for a table of their names, else nothing."""
    file = PurePosixPath(name.lower().replace("\\", "/")).name
    if not file.endswith((".tsv", ".tsv.gz", ".txt", ".txt.gz", ".csv", ".csv.gz")):
        return ""
    if any(word in file for word in _BARCODES):
        return "barcodes"
    return "features" if any(word in file for word in _FEATURES) else ""


def _names(text: bytes) -> list[str]:
    """Return the name in each line: of features the second column, their symbol."""
    lines = [line.split("\t") for line in text.decode("utf-8", "replace").splitlines() if line]
    return [(cells[1] if len(cells) > 1 else cells[0]).strip() for cells in lines]


def _matrix(name: str, text: bytes, limits: ReadLimits) -> Compressed:
    _check_sizes(name, text, limits)
    from scipy.io import mmread
    from scipy.sparse import coo_matrix, csr_matrix

    try:
        values = csr_matrix(coo_matrix(mmread(io.BytesIO(text), spmatrix=False)))
    except Exception as error:  # the parser fails in as many ways as there are lines
        raise _damaged(name) from error
    if values.dtype.kind not in "buif":
        msg = f"“{name}” holds complex numbers; save their real parts."
        raise InputError(msg)
    return Compressed(values.shape, values.data, values.indices, values.indptr)


def _check_sizes(name: str, text: bytes, limits: ReadLimits) -> None:
    """Refuse what the first lines claim, where there is not text enough for it."""
    start = text[:_MOST_BANNER].decode("latin-1")
    banner = re.match(r"%%MatrixMarket\s+matrix\s+(coordinate|array)\s", start, re.I)
    sizes = re.search(r"^[ \t]*(\d+)[ \t]+(\d+)(?:[ \t]+(\d+))?[ \t]*$", start, re.M)
    if banner is None or sizes is None:
        raise _damaged(name)
    rows, columns = int(sizes[1]), int(sizes[2])
    listed = banner[1].lower() == "coordinate"
    symmetric = 1 if re.match(r".*\bgeneral\b", start, re.I) else 2
    entries = int(sizes[3] or 0) if listed else rows * columns // symmetric
    if (listed and sizes[3] is None) or entries * _LEAST_ENTRY[banner[1].lower()] > len(text):
        raise _damaged(name)
    if max(rows, columns) * 8 > limits.n_bytes:
        msg = f"“{name}” states {rows:,} x {columns:,} numbers, more than {limits.most} can hold."
        raise InputError(msg)


def _damaged(name: str) -> InputError:
    return InputError(f"“{name}” is not a Matrix Market file or is damaged; save it again.")


READER = Reader(MtxOptions, None, read_many)
