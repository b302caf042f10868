"""Tests of array files: the expected values, facts and errors for each format.

Files are written by other libraries than the readers use, or byte by byte. A readable file is
compared with its original array, the error of an unreadable file with a part of the message. Then
come several files at once, single rows, and reading in another process.
"""

import gzip
import hashlib
import io
import json
import os
import signal
import time
import zipfile
import zlib
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import h5py
import numcodecs
import numpy as np
import pandas as pd
import pytest
import zarr
from PIL import Image
from scipy import sparse

from appca.data.files import ONE_IS_ENOUGH, ReadLimits, checksum, facts, in_one_line, plain_file
from appca.data.readers import BY_LIBRARIES, kind_of, process, read, read_many
from appca.data.readers import KINDS as ALL_KINDS
from appca.data.readers.process import read_apart, warm
from appca.words import InputError
from tests.data.file_makers import (
    changed,
    counts,
    encoded,
    h5ad,
    hdf5,
    idx,
    market,
    mat,
    nifti,
    noise,
    npz,
    packed,
    packed_store,
    paged,
    store,
    stored,
    tenx,
    tiff,
)
from tests.memory import needs_proc
from tests.sentences import faults_of

X, C = np.random.default_rng(0).normal(size=(6, 4)), counts(0)
IMAGES, KINDS = noise(1, 5, 4, 3), ["a", "b", "a", "b", "c", "c"]


class Case(NamedTuple):
    """A file, how it is read, and what comes of it."""

    name: str
    data: Any  # bytes, or a function that makes them of the folder
    expected: Any  # the matrix, or a part of the refusal
    labels: Any = MappingProxyType({})
    ids: list[str] | None = None
    features: list[str] | None = None
    facts: str = ""  # a part of what the report says
    options: Any = MappingProxyType({})


def cell(values: list[Any]) -> np.ndarray:
    made = np.empty((len(values), 1), object)
    made[:, 0] = values
    return made


def packed_numbers(values: np.ndarray) -> bytes:
    raw = np.round((values - 10) / 0.5).astype(np.int16)
    raw[1, 2] = -99
    return hdf5({"t": raw}, about={"t": {"scale_factor": 0.5, "add_offset": 10.0,
                                        "_FillValue": np.int16(-99)}})  # fmt: skip


def old_h5ad(file: Any) -> None:
    """Categories as anndata 0.7 wrote them: codes with a reference to their names."""
    names = file.create_dataset("obs/__categories/kind", data=["B", "NK", "T"])
    codes = file.create_dataset("obs/kind", data=np.array([0, 1, 2] * 2 + [-1] * 3, np.int8))
    codes.attrs["categories"] = names.ref


def oldest_h5ad(file: Any) -> None:
    """Tables and categories as anndata wrote them before 0.7."""
    names, kinds = np.array(CELLS, "S8"), np.array([0, 1, 2] * 2 + [-1] * 3, np.int8)
    genes = np.array([f"g{j}" for j in range(7)], object)
    tables = {
        "obs": {"index": names, "kind": kinds, "depth": np.arange(9) / 2},
        "var": {"index": genes},
        "obsm": {"X_pca": np.eye(9, 2)},
        "raw.var": {"index": genes},
    }
    for table, columns in tables.items():
        kind = [
            (key, h5py.string_dtype() if column.dtype == object else column.dtype, column.shape[1:])
            for key, column in columns.items()
        ]
        values = np.empty(len(next(iter(columns.values()))), kind)
        for key, column in columns.items():
            values[key] = column
        if table in file:
            del file[table]
        file[table] = values
    file["uns/kind_categories"] = np.array(["B", "NK", "T"], "S2")


def cells_of_7_3(file: Any) -> None:
    refs = np.empty((1, 6), h5py.ref_dtype)
    for i, word in enumerate(KINDS):
        made = file.create_dataset(f"#refs#/{i}", data=np.array([[ord(word)]], np.uint16))
        made.attrs["MATLAB_class"] = np.bytes_("char")
        refs[0, i] = made.ref
    file.create_dataset("kind", data=refs).attrs["MATLAB_class"] = np.bytes_("cell")
    empty = file.create_dataset("label", data=np.array([0, 0], np.uint64))
    empty.attrs.update(MATLAB_class=np.bytes_("double"), MATLAB_empty=1)
    file.create_dataset("t", data=np.arange(3)).attrs["MATLAB_class"] = np.bytes_("table")


def frame(file: Any) -> None:
    """A table in the place of `DataFrame.to_hdf`."""
    file.create_group("df").attrs["pandas_type"] = "frame"
    file["df/block0_values"], file["df/axis0"] = X, list("abcd")


def links(file: Any) -> None:
    file["far"] = h5py.ExternalLink("/etc/passwd", "X")
    file["loop/up"] = file["/"]
    layout = h5py.VirtualLayout((9, 9), "f8")
    layout[:] = h5py.VirtualSource("/etc/hostname", "X", (9, 9))
    file.create_virtual_dataset("virtual", layout)
    file["points"] = np.zeros(6, [("x", float), ("y", float)])


ARFF = """% comment
@relation iris
@attribute length numeric
@attribute 'petal width' real
@attribute kind {a, 'b c'}
@data
1,2,a
?,4,'b c'
5,6,?
"""
NPY, BANNER = stored(np.save, X), b"%%MatrixMarket matrix coordinate real "
FULL = h5ad(
    sparse.csr_matrix(C.astype("f4")),
    layers={"twice": sparse.csc_matrix(2.0 * C)},
    obsm={"X_two": C[:, :2].astype(float)},
    kind=["B", "T", None] * 3,
    depth=np.r_[np.inf, np.arange(8) / 3],
    fine=np.arange(9) > 2,
)
GENES, CELLS = [f"gene{j}" for j in range(7)], [f"cell{i}" for i in range(9)]
TYPES = ["Gene Expression"] * 5 + ["Antibody Capture"] * 2
WIDE = {"name": [f"G{j}" for j in range(7)], "feature_type": TYPES}
READ = [
    # good
    Case("a.npy", NPY, X),
    Case("order.npy", stored(np.save, np.asfortranarray(X)), X),
    Case("half.npy", stored(np.save, X.astype("f2")), X.astype("f2")),
    Case("big.npy", stored(np.save, X.astype(">f4")), X.astype("f4")),
    Case("images.npy", stored(np.save, IMAGES[..., None]), IMAGES, facts="4 × 3 pixels"),
    Case("side.npy", stored(np.save, IMAGES.reshape(5, 12)), IMAGES,
         options={"image_shape": (4, 3)}),
    Case("a.npz", npz(values=X, ids=list("fedcba"), kind=KINDS, age=np.arange(6) // 2,
                      weights=X[:, 0], other=np.arange(5)), X,
         {"kind": KINDS, "age": [0, 0, 1, 1, 2, 2], "weights": X[:, 0]}, list("fedcba"),
         facts="other (5 values for 6 rows)"),
    Case("two.npz", npz(X=X, X_test=X[:3], labels=np.arange(3)), X,
         facts="labels (3 values for 6 rows), X_test (another matrix; read it with array=X_test)"),
    Case("other.npz", npz(X=X, y=np.arange(5) % 2), X, facts="y (5 values for 6 rows)"),
    Case("chosen.npz", npz(a=X[:3], X=X), X[:3], options={"array": "a"}),
    Case("repeated.npz", npz(X=X, ids=np.ones(6, int)), X, ids=[f"row-{i}" for i in range(1, 7)]),
    Case("names.npz", npz(X=X, plant=list("fedcba"), more=list("abcdef")), X, ids=list("fedcba"),
         facts="more (too many different values)"),
    Case("sparse.npz", stored(sparse.save_npz, sparse.coo_array(C)), C),
    Case("a.idx", idx(IMAGES), IMAGES, facts="4 × 3 pixels"),
    Case("reals.idx", idx(X.astype(">f8"), 0x0E), X),
    Case("shorts.idx", idx((300 * X).astype(">i2"), 0x0B), (300 * X).astype("i2")),
    Case("my digits.gz", gzip.compress(idx(IMAGES)), IMAGES),
    Case("a.mat", mat(fea=X, gnd=np.array([[1.0, 1, 2, 2, 3, 3]]).T, s=5), X,
         {"gnd": [1, 1, 2, 2, 3, 3]}, facts="s (1 value for 6 rows)"),
    Case("turned.mat", mat(img=np.moveaxis(IMAGES, 0, 2), y=np.arange(5)), IMAGES,
         {"y": [0, 1, 2, 3, 4]}, options={"transpose": True}),
    Case("down.mat", mat(X=np.stack([image.ravel("F") for image in IMAGES])), IMAGES,
         options={"image_shape": (4, 3)}),
    Case("v73.mat", hdf5({"X": X, "gnd": np.array([[1.0, 1, 2, 2, 3, 3]])}, "double"), X,
         {"gnd": [1, 1, 2, 2, 3, 3]}),
    Case("a.h5", hdf5({"set/values": X, "set/id": list("abcdef"), "kind": np.array(KINDS, "S1")},
                      ), X, {"kind": KINDS}, list("abcdef")),
    Case("shuffled.h5", hdf5({"X": IMAGES}, compression="gzip", shuffle=True), IMAGES),
    Case("chosen.h5", hdf5({"a": X, "b": X[:, :2], "names": list("uvwxyz"), "age": X[:, 0]}),
         X[:, :2], {"age": X[:, 0].tolist()}, list("uvwxyz"),
         facts="a (another matrix; read it with array=a)", options={"array": "b"}),
    Case("a.h5ad", FULL, C, {"kind": ["B", "T", ""] * 3, "fine": [False] * 3 + [True] * 6},
         CELLS, GENES, "layers/twice (another matrix; read it with array=layers/twice), "
         "obsm/X_two (another matrix; read it with array=obsm/X_two)"),
    Case("layer.h5ad", FULL, 2 * C, options={"array": "layers/twice"}),
    Case("marked.h5ad", h5ad(C.astype("f4"), highly_variable=np.arange(7) % 3 == 0), C[:, ::3],
         features=GENES[::3], facts="3 of 7 variables, those marked by “highly_variable”"),
    Case("all.h5ad", h5ad(C.astype("f4"), highly_variable=np.arange(7) % 3 == 0), C,
         options={"mask_var": None}),
    Case("tenx.h5", tenx(C, name=WIDE["name"]), C, ids=[f"AAA{i}-1" for i in range(9)],
         features=WIDE["name"]),
    Case("a.mtx", market(sparse.coo_matrix(C)), C, facts="the rows of the matrix"),
    Case("turned.mtx.gz", gzip.compress(market(sparse.coo_matrix(C.T))), C,
         options={"transpose": True}, facts="the columns of the matrix"),
    Case("a.arff", ARFF.replace("?,4", "3,4").encode(), [[1, 2], [3, 4], [5, 6]],
         {"kind": ["a", "b c", ""]}, features=["length", "petal width"]),
    # gaps
    Case("gaps.npy", stored(np.save, np.where(X > 1, np.nan, X)), np.where(X > 1, np.nan, X)),
    Case("masked.npz", npz(X=X, mask=X > 1), np.where(X > 1, np.nan, X),
         facts="cells marked by “mask” are missing"),
    Case("gaps.arff", ARFF.encode(), [[1, 2], [np.nan, 4], [5, 6]], {"kind": ["a", "b c", ""]}),
    Case("sparse.arff", b"@relation a\n@attribute x real\n@attribute y real\n"
         b"@attribute c {u,'v w'}\n@data\n{0 1, 2 'v w'}\n{1 2.5}\n{0 3, 1 4}\n",
         [[1, 0], [0, 2.5], [3, 4]], {"c": ["v w", "u", "u"]}),
    Case("packed.h5", packed_numbers(np.arange(12.0).reshape(4, 3)),
         [[0, 1, 2], [3, 4, np.nan], [6, 7, 8], [9, 10, 11]],
         facts="fill value in 1 cell read as missing, multiplied by scale_factor 0.5"),
    Case("missing.h5", hdf5({"t": np.where(X > 1, 1e20, X)}, about={"t": {"missing_value": 1e20}}),
         np.where(X > 1, np.nan, X)),
    Case("nullable.h5ad", changed(h5ad(C.astype("f4")), lambda file: (
        file.create_dataset("obs/age/values", data=np.arange(9)),
        file.create_dataset("obs/age/mask", data=np.arange(9) == 2))), C,
         {"age": [0, 1, np.nan, 3, 4, 5, 6, 7, 8]}),
    Case("nan.mtx", BANNER + b"general\n3 3 3\n1 1 nan\n2 3 2\n3 1 1\n",
         [[np.nan, 0, 0], [0, 0, 2], [1, 0, 0]]),
    # unusual
    Case("named.npz", npz(X=X, columns=np.array(list("abcd")), who=np.array(list("uvwxyz"))), X,
         ids=list("uvwxyz"), features=list("abcd"), facts="columns"),
    Case("spectra.mat", mat(absorbance=X, nm=np.linspace(400, 401, 4)), X, facts="nm",
         features=["400", "400.3333", "400.6667", "401"]),
    Case("weights.npz", npz(X=X, w=np.array([1.0, 3, 2, 4])), X, facts="w (4 values for 6 rows)"),
    Case("chosen.npz", npz(X=X, who=np.array(list("uvwxyz")), y=np.arange(6), z=np.ones(6)), X,
         {"y": [*range(6)]}, options={"ids": "", "label": "y"}, facts="z (not the chosen label)"),
    Case("cells.mat", mat(meas=X, kind=cell(KINDS), many=cell([1, "b", X, 2, 3, 4])), X,
         {"kind": KINDS}, facts="many (a cell array of different types"),
    Case("numbers.mat", mat(meas=X, code=cell([1, 2, 2, 1, 1, 1])), X,
         {"code": [1, 2, 2, 1, 1, 1]}),
    Case("struct.mat", mat(data={"X": X, "y": np.arange(6) % 2}, s=np.array([{"a": 1}] * 2)), X,
         {"data/y": [0, 1] * 3}),
    Case("sparse.mat", mat(A=sparse.csc_matrix(C), text="words"), C,
         facts="text (1 value for 9 rows)"),
    Case("cells73.mat", changed(hdf5({"X": X}, "double"), cells_of_7_3), X, {"kind": KINDS},
         facts="label (empty), t (a MATLAB table or object"),
    Case("objects.npz", npz(X=X, y=np.array([None, "a"] * 3, object)), X,
         facts="y (Python objects; save it with dtype float or str)"),
    Case("gap.npy", stored(np.save, X * [1, 1, 1, np.nan]), X[:, :3],
         features=["column 1", "column 2", "column 3"],
         facts="1 feature without a number: column 4"),
    Case("links.h5", changed(hdf5({"X": X}), links), X,
         facts="virtual (its numbers are in other files), far (a link)"),
    Case("frame.h5", changed(hdf5({"X": X}), frame), X,
         facts="df (a pandas table; save it with frame.to_parquet('x.parquet'))"),
    Case("old.h5ad", changed(h5ad(C.astype("f4")), old_h5ad), C,
         {"kind": ["B", "NK", "T"] * 2 + [""] * 3}),
    Case("oldest.h5ad", changed(h5ad(C.astype("f4")), oldest_h5ad), C,
         {"kind": ["B", "NK", "T"] * 2 + [""] * 3, "depth": np.arange(9) / 2}, CELLS,
         [f"g{j}" for j in range(7)], "obsm/X_pca (another matrix"),
    Case("protein.h5ad", changed(h5ad(C.astype("f4")), lambda file: (
        file.create_dataset("obsm/p/_index", data=CELLS),
        file.create_dataset("obsm/p/CD3", data=np.arange(9.0)))),
         C, facts="obsm/p (a table; store it as an array)"),
    Case("parts.h5ad", changed(h5ad(C.astype("f4")), lambda file: [
        file.__setitem__(path, np.eye(3)) for path in ("uns/a/b", "varm/PCs", "obsp/near", "raw/X")
    ]), C, facts="raw (before filtering), uns (not about single rows), varm (not"),
    Case("twice.h5ad", changed(h5ad(C.astype("f4")), lambda file: file["var/_index"].write_direct(
        np.array(["a", "b", "a", "a-1", "a", "c", "d"], object))), C,
         features=["a", "b", "a-1", "a-1-1", "a-2", "c", "d"]),
    Case("types.h5", tenx(C, **WIDE), C[:, :5], features=WIDE["name"][:5],
         facts="Antibody Capture (2, not read), Gene Expression (5); choose by feature_type=all"),
    Case("antibodies.h5", tenx(C, **WIDE), C[:, 5:], options={"feature_type": TYPES[-1]}),
    Case("both.h5", tenx(C, **WIDE), C, options={"feature_type": "all"}),
    Case("empty.h5ad", h5ad(C.astype("f4"), depth=np.full(9, np.nan)), C,
         facts="obs/depth (empty)"),
    Case("types.h5ad", h5ad(C.astype("f4"), feature_types=TYPES), C[:, :5]),
    Case("symmetric.mtx", BANNER + b"symmetric\n% note\n3 3 3\n1 1 1\n2 1 2\n3 2 5\n",
         [[1, 2, 0], [2, 0, 5], [0, 5, 0]]),
    Case("duplicates.mtx", BANNER + b"general\n3 3 4\n1 1 1\n1 1 2\n2 3 7\n3 2 1\n",
         [[3, 0, 0], [0, 0, 7], [0, 1, 0]]),
    Case("market.zip", packed({
        "run/matrix.mtx": market(sparse.coo_matrix(C.T)), "run/notes.pdf": b"x",
        "run/barcodes.tsv": "\n".join(CELLS).encode(),
        "run/features.tsv": "\n".join(f"E{j}\tG{j}\t{TYPES[j]}" for j in range(7)).encode()}),
         C[:, :5], ids=CELLS, features=WIDE["name"][:5], facts="run/notes.pdf"),
    Case("table.zip", packed({"in/t.csv": b"id,a,b\nu,1,2\nv,3,4\nw,5,7\n", "README": b"x"}),
         [[1, 2], [3, 4], [5, 7]], ids=list("uvw"), features=["a", "b"], facts="README"),
    Case("array.zip", packed({"a.npy": NPY}), X),
]  # fmt: skip
DAMAGED = changed(
    h5ad(sparse.csr_matrix(C.astype("f4"))), lambda f: f["X/indices"].__setitem__(0, 99)
)
REFUSED = [
    # truncated
    *(Case(name, data[:-9], words) for name, data, words in [
        ("a.npy", NPY, "must contain 6 x 4 numbers in 192 bytes after its header; it has 183"),
        ("a.idx", idx(IMAGES), "must contain 5 x 4 x 3 numbers in 60 bytes"),
        ("a.mat", mat(X=X), "is damaged or not a MAT file"),
        ("a.npz", npz(X=X), "not a zip file or is damaged"),
        ("a.mtx", market(sparse.coo_matrix(C)), "not a Matrix Market file or is damaged"),
        ("a.npy.gz", gzip.compress(NPY), "damaged inside the gzip archive"),
    ]),
    Case("a.h5", hdf5({"X": X})[:-200], "is not an HDF5 file or is damaged"),
    Case("a.h5ad", FULL[:-500], "is not an HDF5 file or is damaged"),
    *(Case(f"empty.{end}", b"", "is empty|damaged|not a")
      for end in ["npy", "npz", "idx", "mat", "h5", "h5ad", "mtx", "arff", "zip", "zarr.zip"]),
    *(Case(f"words{end}", b"a,b\n1,2\n", words) for end, words in [
        (".npy", "is not an NPY file; save it with numpy.save"),
        (".idx", r"is not an IDX file \(it starts with 612c620a\)"),
        (".mat", "is damaged or not a MAT file"),
        (".npz", "not a zip file"),
        (".h5", "is not an HDF5 file"),
        (".arff", "not an ARFF file or is damaged"),
        (".zarr.zip", "not a zip file"),
    ]),
    # wrong type
    Case("objects.npy", stored(np.save, np.array([[None, 1]] * 2, object)), "Python objects"),
    Case("complex.npy", stored(np.save, X * 1j), "contains complex numbers"),
    Case("texts.npy", stored(np.save, np.array([["a", "b"]] * 3)), "values of type <U1"),
    Case("vector.npy", stored(np.save, X[0]), r"shape \(4,\); give a matrix"),
    Case("five.npy", stored(np.save, np.zeros((2,) * 5)), "give a matrix"),
    Case("row.npy", stored(np.save, X[:1]), "at least 2 rows and 2 values"),
    Case("same.npy", stored(np.save, np.ones((5, 4))), "All 5 rows are the same"),
    Case("infinite.npy", stored(np.save, np.r_[X, [[np.inf] * 4]]), "is infinite in row 7"),
    Case("none.npy", stored(np.save, X * [1, *[np.nan] * 3]), "no number in column “column 2”"),
    Case("no.npz", npz(a=np.arange(9)), r"no matrix of numbers, only “a” \(9\)"),
    Case("pickle.npz", npz(X=np.array([{}, []], object)), r"only “X” \(Python objects; save"),
    Case("many.npz", npz(a=X, b=X[:5]), r"several arrays, “a” \(6 x 4\), “b” \(5 x 4\)"),
    Case("other.npz", npz(a=X), "no array “z”", options={"array": "z"}),
    Case("lots.npz", npz(**{f"m{i}": X for i in range(8)}), r"“m5” \(6 x 4\) and 2 more; choose"),
    Case("labels.idx", idx(IMAGES[:, 0, 0]), "contains only labels"),
    Case("complex.mat", mat(Z=X * 1j), "“Z” contains complex numbers"),
    Case("text.mat", mat(a="words"), "contains no matrix of numbers"),
    Case("sides.npy", stored(np.save, X), "with 4 values in all", options={"image_shape": (3, 2)}),
    Case("complex.h5", hdf5({"X": X * 1j}), "contains complex numbers"),
    Case("noobs.h5ad", changed(FULL, lambda file: file.__delitem__("obs")), "has no names in obs"),
    Case("shape.h5ad", changed(FULL, lambda file: file["X"].attrs.__setitem__("shape", [9, 70])),
         "damaged"),
    Case("index.h5ad", DAMAGED, "“index.h5ad” contains a sparse matrix whose"),
    Case("code.h5ad", changed(FULL, lambda file: file["obs/kind/codes"].__setitem__(0, 9)),
         "is damaged"),
    Case("mask.h5ad", FULL, "no column “best” in var", options={"mask_var": "best"}),
    Case("type.h5", tenx(C, **WIDE), "no feature type “RNA”", options={"feature_type": "RNA"}),
    Case("complex.mtx", BANNER.replace(b"real", b"complex") + b"general\n3 3 1\n1 1 1 2\n",
         "“complex.mtx” contains complex numbers"),
    Case("out.mtx", BANNER + b"general\n3 3 2\n1 1 1\n9 9 1\n", "is damaged"),
    Case("text.arff", ARFF.replace("4,", "x,").encode(), "has 1 feature column of 3"),
    # too large
    Case("world.npy", stored(np.lib.format.write_array_header_1_0, {
        "descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)}), "contain 10000000 x"),
    Case("sides.npy", stored(np.lib.format.write_array_header_1_0, {
        "descr": "<f8", "fortran_order": False, "shape": (-5, 4)}), "sides are whole numbers"),
    Case("world.idx", idx(IMAGES)[:4] + b"\xff" * 12 + b"few", "must contain 4294967295 x"),
    Case("world.mtx", BANNER + b"general\n3 3 1000000000\n1 1 1\n", "declares 3 x 3 numbers"),
    Case("zeros.mat", mat(X=np.zeros((1000, 1000))), "1,000 numbers in 8 MB, more than 1 MB"),
    Case("zeros.npz", npz(X=np.zeros((1000, 1000))), "unpacks to 8 MB, more than 1 MB"),
    Case("wide.h5ad", h5ad(sparse.random(200, 2000, 1e-3, "csr", random_state=0)),
         "become 200 x 2,000 numbers .* highly variable"),
    Case("chunk.h5", hdf5({"X": np.zeros((20, 10))}, chunks=(20, 10), maxshape=(None, None)),
         "All 20 rows are the same"),
]  # fmt: skip


def load(case: Case) -> Any:
    limits = ReadLimits(n_bytes=1_000_000)
    return read(case.name, io.BytesIO(case.data), limits=limits, **case.options)


@pytest.mark.parametrize("case", READ, ids=[case.name for case in READ])
def test_values_names_and_facts_are_those_of_the_file(case):
    dataset = load(case._replace(options={"missing": "model", **case.options}))
    expected = np.asarray(case.expected)
    np.testing.assert_allclose(dataset.with_gaps(), expected.reshape(len(expected), -1))
    for name, column in case.labels.items():
        np.testing.assert_array_equal(dataset.labels[name], column)
    assert case.ids is None or dataset.ids.tolist() == case.ids
    assert case.features is None or list(dataset.feature_names) == case.features
    assert case.facts in "; ".join(facts(dataset.provenance["report"], dataset).values())
    assert in_one_line(dataset.provenance["report"], dataset).endswith(".")


@pytest.mark.parametrize("case", REFUSED, ids=[case.name for case in REFUSED])
def test_what_cannot_be_read_is_refused_in_one_sentence(case):
    with pytest.raises(InputError, match=case.expected) as refused:
        load(case)
    assert faults_of(str(refused.value)) == ""


def load_many(files: dict[str, bytes], **options: Any) -> Any:
    return read_many([(name, io.BytesIO(data)) for name, data in files.items()], **options)


def test_idx_images_and_labels_find_each_other():
    label = np.arange(5, dtype=np.uint8) % 3
    dataset = load_many({"train-labels.idx": idx(label), "train-images.idx": idx(IMAGES)})
    np.testing.assert_array_equal(dataset.X, IMAGES.reshape(5, 12))
    assert dataset.labels["class"].tolist() == label.tolist()
    image, one = idx(IMAGES), idx(label)
    for files, words in [
        ({"a.idx": image, "b.idx": one[:-1] + one[-1:] * 2}, "must contain 5"),
        ({"a.idx": image, "b.idx": idx(label[:4])}, r"“b.idx” \(4\) are not images with their"),
        ({"a.idx": image, "b.idx": image}, "give one file of each"),
        ({"a.idx": image, "b.idx": one, "c.idx": one}, "give one file of each"),
    ]:
        with pytest.raises(InputError, match=words):
            load_many(files)


@pytest.mark.parametrize("ends", [("barcodes.tsv", "genes.tsv"), ("m.docs", "m.terms")])
def test_names_beside_a_matrix_are_found_and_turn_it(ends, tmp_path):
    matrix = tmp_path / ("m.mtx" if ends[0][0] == "m" else "matrix.mtx")
    matrix.write_bytes(market(sparse.coo_matrix(C.T)))
    (tmp_path / ends[1]).write_text("\n".join(GENES))
    (tmp_path / "other.txt").write_text("x")
    for head in ("", "name\n"):
        (tmp_path / ends[0]).write_text(head + "\n".join(CELLS))
        dataset = read(matrix.name, matrix)
        np.testing.assert_array_equal(dataset.X, C)
        assert (dataset.ids.tolist(), list(dataset.feature_names)) == (CELLS, GENES)
    (tmp_path / ends[0]).write_text("one\ntwo\nthree\n")
    with pytest.raises(InputError, match=r"has [79] rows, but the file of names has 3"):
        read(matrix.name, matrix)


def test_every_page_is_an_image_and_photographs_are_upright_and_grey_or_in_colour():
    pages = list(noise(3, 4, 8, 8))
    dataset = load_many({"a.gif": paged(pages, "GIF"), "b.gif": paged(pages[:1], "GIF")})
    np.testing.assert_array_equal(dataset.X, np.reshape([*pages, pages[0]], (5, 64)))
    assert dataset.ids.tolist() == ["a_1", "a_2", "a_3", "a_4", "b"]
    turned = Image.fromarray(np.kron([[255, 0], [0, 0]], np.ones((8, 16))).astype(np.uint8))
    exif = turned.getexif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    files = {"a.jpg": encoded(turned, "JPEG", exif=exif), "b.png": encoded(noise(0, 32, 16))}
    assert load_many(files).images([0])[0][:14, 9:].min() > 200
    red = np.zeros((3, 4, 3), np.uint8)
    red[..., 0] = np.arange(12).reshape(3, 4) * 20
    files = {"a.png": encoded(red), "b.png": encoded(noise(1, 3, 4))}
    grey, kept = load_many(files), load_many(files, colour="keep")
    np.testing.assert_allclose(grey.images([0])[0], 0.299 * red[..., 0], atol=1)
    np.testing.assert_array_equal(kept.images([0])[0], red)
    np.testing.assert_array_equal(kept.images([1])[0], np.repeat(noise(1, 3, 4)[..., None], 3, 2))


@pytest.mark.parametrize("how", ["blosc", "none", "shared"])
def test_a_store_is_read_as_the_same_h5ad_file(how, tmp_path):
    packings = {"blosc": numcodecs.Blosc(), "none": None,
                "shared": zarr.codecs.BloscCodec(cname="zstd", shuffle="shuffle")}  # fmt: skip
    wide = np.random.default_rng(0).integers(0, 9, (60, 40)).astype("f4")
    data = h5ad(sparse.csr_matrix(wide), {"twice": 2 * wide}, kind=["B", "T", None] * 20,
                depth=np.arange(60) / 3)  # fmt: skip
    form = 3 if how == "shared" else 2
    folder = store(tmp_path / "c.zarr", data, form, 53, compressors=packings[how])
    packed = packed_store(folder, "c.zarr/" if form == 2 else "")
    for options in ({}, {"array": "layers/twice"}):
        known = read("c.h5ad", io.BytesIO(data), **options)
        dataset = read("c.zarr.zip", io.BytesIO(packed), **options)
        np.testing.assert_array_equal(dataset.X, known.X)
        assert dataset.ids.tolist() == known.ids.tolist()
        assert dataset.feature_names == known.feature_names
        assert dataset.labels["kind"].tolist() == known.labels["kind"].tolist()


def test_a_single_array_is_read_and_none_is_unpickled(tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 20))
    for name, values in [("a", rows), ("b", rows.astype(str).astype(np.dtypes.StringDType()))]:
        zarr.create_array(tmp_path / name, data=values, zarr_format=2)
    data = io.BytesIO(packed_store(tmp_path / "a"))
    np.testing.assert_array_equal(read("a.zarr.zip", data).X, rows)
    about = tmp_path / "b" / ".zarray"
    words = about.read_text()
    about.write_text(words.replace('"filters": [', '"filters": [{"id": "pickle"},'))
    assert about.read_text() != words
    with pytest.raises(InputError, match=r"is not a Zarr store|contains pickled objects"):
        read("b.zarr.zip", io.BytesIO(packed_store(tmp_path / "b")))
    folder = store(tmp_path / "c.zarr", FULL)
    place = folder / "layers" / "twice" / "data" / "zarr.json"
    text = place.read_text()
    for change, words in [
        (lambda about: about["codecs"].append({"name": "pickle"}), "or is damaged"),
        (lambda about: about.update(shape=[1 << 40]), "more than"),
        (lambda about: about.update(chunk_grid=0), "is not a Zarr store, or is damaged"),
    ]:
        change(about := json.loads(text))
        place.write_text(json.dumps(about))
        with pytest.raises(InputError, match=words):
            read("c.zarr.zip", io.BytesIO(packed_store(folder)), array="layers/twice")
    with pytest.raises(InputError, match=r"zip it as NAME\.zarr\.zip"):
        read_many([("c.zarr/zarr.json", place), ("c.zarr/a", place)])


INK = np.zeros((6, 6), np.uint8)
INK[2, 1:5] = INK[1:5, 3] = 255
LEVELS = np.arange(36, dtype=np.uint16).reshape(6, 6) * 100
CLEAR = Image.fromarray((INK == 0).astype(np.uint8), "P")
CLEAR.putpalette([0, 0, 0, 255, 255, 255])


@pytest.mark.parametrize(
    ("first", "second", "expected", "scale"),
    [
        (encoded(LEVELS), encoded(LEVELS.T.copy()), LEVELS, (0, 3500)),
        (encoded(LEVELS.astype("f4") / 3500, "TIFF"), encoded(np.eye(6, dtype="f4"), "TIFF"),
         LEVELS / 3500, (0, 1)),
        (encoded(LEVELS.astype("i4") - 50, "TIFF"), encoded(np.eye(6, dtype="i4"), "TIFF"),
         LEVELS.astype(int) - 50, (-50, 3450)),
        (tiff(65535 - LEVELS, 0), tiff(65535 - LEVELS.T, 0), LEVELS, (0, 3500)),
        (tiff(255 - INK, 0), tiff(noise(0, 6, 6), 0), INK, (0, 255)),
        (encoded(np.dstack([0 * INK] * 3 + [INK])), encoded(np.dstack([0 * INK] * 3 + [INK.T])),
         255 - INK, (0, 255)),
        (encoded(np.dstack([INK * 0 + 255, INK])), encoded(np.dstack([INK * 0 + 255, INK.T])),
         INK, (0, 255)),
        (encoded(CLEAR, transparency=1), encoded(noise(0, 6, 6)), 255 - INK, (0, 255)),
        (encoded(Image.fromarray(INK).convert("P")), encoded(noise(0, 6, 6)), INK, (0, 255)),
        (encoded(INK > 0), encoded(noise(0, 6, 6)), INK, (0, 255)),
        (encoded(np.dstack([INK] * 3)), encoded(noise(0, 6, 6)), INK, (0, 255)),
    ],
)  # fmt: skip
def test_grey_levels_survive_and_ink_is_seen(first, second, expected, scale):
    name = "tif" if first[:2] == b"II" else "png"
    dataset = read("pictures.zip", io.BytesIO(packed({f"a.{name}": first, f"b.{name}": second})))
    np.testing.assert_allclose(dataset.X[0].reshape(6, 6), expected, rtol=1e-6)
    assert dataset.image_range == pytest.approx(scale)


@pytest.mark.parametrize(
    ("names", "options", "labels"),
    [
        (["o1__0", "o1__5", "o10__0"], {}, {"class": ["o1", "o1", "o10"], "number": [0, 5, 0]}),
        (["a (1)", "a (2)", "b (1)"], {}, {"class": ["a", "a", "b"]}),
        (["sea", "hill", "sky"], {}, {}),
        (["in/cat/1", "in/cat/2", "in/dog/1"], {}, {"class": ["cat", "cat", "dog"]}),
        (["in/cat/1", "in/dog/1"], {"classes": "none"}, {}),
        (["u/a/1", "v/a/1", "v/b/1"], {}, {"class": ["a", "a", "b"], "folder": ["u", "v", "v"]}),
    ],
)  # fmt: skip
def test_folders_and_names_give_classes(names, options, labels):
    files = {f"{name}.png": encoded(noise(i, 3, 3)) for i, name in enumerate(names)}
    for dataset in (
        load_many(files, **options),
        read("z.zip", io.BytesIO(packed(files)), **options),
    ):
        found = {key: column.tolist() for key, column in dataset.labels.items()}
        assert found | labels == found
        assert labels or not found


SQUARE, OTHER = (encoded(noise(i, 30, 40)) for i in range(2))


@pytest.mark.parametrize(
    ("files", "options", "words"),
    [
        ({"a.png": SQUARE}, {}, "contains 1 image; at least 2"),
        ({"a.png": SQUARE, "b.png": SQUARE}, {}, "All 2 rows are the same"),
        ({"a.png": SQUARE, "b.png": b"<svg/>"}, {}, "“b.png” in “p.zip” is not an image"),
        ({"a.png": SQUARE, "b.png": encoded(noise(0, 9, 9))}, {}, "“b.png” has 9 x 9.; choose one"),
        ({"a.png": SQUARE, "b.png": encoded(LEVELS)}, {"size": (4, 4)}, "whose scales differ|type"),
        ({"a.tif": encoded(np.full((4, 4), np.nan, "f4"), "TIFF"),
          "b.tif": encoded(np.eye(4, dtype="f4"), "TIFF")}, {}, "16 missing cells"),
        ({"a.png": SQUARE, "inner.tar": b"x"}, {}, "“inner.tar” in “p.zip” is another archive"),
        ({"a.png": SQUARE, "b.png": SQUARE}, {"size": (0, 5)}, "size must be a height"),
        ({"a.png": SQUARE, "b.png": SQUARE}, {"colour": "blue"}, "colour must be one of"),
        ({"a.png": SQUARE, "b.png": OTHER}, {"classes": "moon"}, "classes must be one of auto"),
        ({f"{i}.png": encoded(np.full((200, 99), i, np.uint8)) for i in range(60)}, {},
         "fill more than 1 MB"),
        ({"a.png": encoded(np.zeros((9999, 9), np.uint8)), "b.png": SQUARE}, {}, "differ in size"),
        ({"a.png": encoded(np.zeros((700, 900), np.uint8)), "b.png": SQUARE}, {},
         "make it smaller"),
        ({"a.png": bytes(2_000_000)}, {}, "unpacks to 2 MB, more than 1 MB"),
    ],
)  # fmt: skip
def test_pictures_that_do_not_fit_are_refused(files, options, words):
    data = packed(files, zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match=words) as refused:
        read("p.zip", io.BytesIO(data), limits=ReadLimits(n_bytes=1_000_000), **options)
    assert faults_of(str(refused.value)) == ""
    report = refused.value.report or {}
    assert ("choose one size" in str(refused.value)) == (report.get("first_size") is not None)


def test_other_files_are_left_out_by_name_and_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["../../evil/a.png", "/etc/b.png", "C:\\windows\\c.png", "d/../e.png"]
    files = {name: encoded(noise(i, 3, 3)) for i, name in enumerate(names)}
    files |= {"readme.txt": b"x", "__MACOSX/._a.png": b"x", ".DS_Store": b"x", "x.png": SQUARE[:60]}
    dataset = read("p.zip", io.BytesIO(packed(files)), broken="skip")
    assert dataset.n_rows == 4
    assert dataset.provenance["report"]["skipped"] == ["readme.txt", "x.png"]
    named = [f"{letter}/{name}.png" for letter in "bd" for name in (". ", "._a", "a")]
    fonts = {name: encoded(noise(i, 3, 3)) for i, name in enumerate(named)}
    dataset = read("p.zip", io.BytesIO(packed(fonts)))
    assert dataset.ids.tolist() == ["b/. ", "b/a", "d/. ", "d/a"], "a name may begin with a dot"
    assert dataset.labels["name"].tolist() == [". ", "a"] * 2, "in both folders"
    assert list(tmp_path.iterdir()) == []
    twice = [("a.png", encoded(noise(0, 3, 3))), ("a.png", encoded(noise(1, 3, 3)))]
    assert read("p.zip", io.BytesIO(packed(twice))).ids.tolist() == ["a.png", "a.png-1"]


BROKEN = {
    "x.npy": NPY, "x.npz": npz(X=X, y=KINDS), "x.idx": idx(IMAGES), "x.mtx": market(C),
    "x.h5ad": FULL, "x.h5": hdf5({"X": X}), "x.arff": ARFF.replace("?,4", "3,4").encode(),
    "x.zip": packed({"a.png": SQUARE, "b.png": encoded(noise(1, 30, 40))}),
    "x.nii": nifti((100 + noise(0, 4, 4, 3, 20)).astype(np.int16)),
    "x.mat": mat(X=np.eye(3), Y=np.arange(3.0)[:, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_byte_anywhere_is_read_or_refused_in_a_sentence(name):
    """Libraries that a broken file can end do so in a process of their own."""
    whole, is_apart = BROKEN[name], kind_of(name) in BY_LIBRARIES
    places, told = np.random.default_rng(zlib.crc32(name.encode())).integers(0, len(whole), 16), []
    for place in [*range(4, 160, 26), *places[: 9 if is_apart else 16].tolist()]:
        data = bytearray(whole)
        data[place % len(whole)] ^= 1 << place % 8
        try:
            (read_apart if is_apart else read_many)([(name, io.BytesIO(data))])
        except InputError as error:
            told.append(str(error))
    assert [sentence for sentence in told if faults_of(sentence)] == []


def test_kinds_are_known_by_name_and_by_content():
    every = {end for kind in ALL_KINDS.values() for end in kind.endings}
    assert {kind_of(f"a{end}") for end in every} >= {"npy", "arff", "h5ad", "zarr", "mtx", "idx"}
    assert kind_of("data", io.BytesIO(hdf5({"X": X}))) == "hdf5"
    assert kind_of("notes.gz", io.BytesIO(gzip.compress(b"notes"))) is None


@pytest.mark.filterwarnings("ignore:Writing zarr v2")
@pytest.mark.parametrize("end", ["h5ad", "zarr"])
def test_files_of_anndata_itself_in_all_its_columns(end, tmp_path):
    ad = pytest.importorskip("anndata", reason="the extra anndata brings it")
    import pandas as pd

    columns = {
        "kind": pd.Categorical(["B", "T", None] * 3),
        "text": list("abcabcabc"),
        "whole": pd.array([1, None, 3] * 3, dtype="Int64"),
        "flag": pd.array([True, None, False] * 3, dtype="boolean"),
        "real": np.arange(9) / 7,
    }
    with suppress(AttributeError):  # of versions before 0.11
        ad.settings.allow_write_nullable_strings = True
    adata = ad.AnnData(sparse.csr_matrix(C.astype("f4")), obs=pd.DataFrame(columns, CELLS))
    adata.layers["raw"] = sparse.csc_matrix(C)
    path = tmp_path / f"a.{end}"
    (adata.write_h5ad if end == "h5ad" else adata.write_zarr)(path)
    data = path.read_bytes() if end == "h5ad" else packed_store(path)
    name = "a.h5ad" if end == "h5ad" else "a.zarr.zip"
    dataset = read(name, io.BytesIO(data))
    np.testing.assert_array_equal(dataset.X, C)
    np.testing.assert_array_equal(read(name, io.BytesIO(data), array="layers/raw").X, C)
    assert dataset.ids.tolist() == CELLS
    assert dataset.labels["kind"].tolist() == ["B", "T", ""] * 3
    assert dataset.labels["flag"].tolist() == ["True", "", "False"] * 3
    np.testing.assert_array_equal(dataset.labels["whole"], [1, np.nan, 3] * 3)
    np.testing.assert_array_equal(dataset.labels["real"], columns["real"])


def test_light_ink_stands_on_its_own_ground_and_a_zip_that_lies_is_refused():
    dark, light = np.dstack([0 * INK, INK]), np.dstack([0 * INK + 255, INK])
    pixels = {"a.png": dark, "b.png": dark[::-1].copy(), "c.png": light}
    dataset = load_many({name: encoded(one) for name, one in pixels.items()})
    np.testing.assert_array_equal(dataset.images([2])[0], INK)
    told = facts(dataset.provenance["report"])["Transparent parts"]
    assert told == "white in 3 images, but black in 1 whose ink is white"
    for place, value, words in ((8, 1, "is encrypted"), (24, 10, "damaged|not an image")):
        data = bytearray(packed({"a.png": SQUARE, "b.png": SQUARE}))
        data[data.index(b"PK\x01\x02") + place] = value
        with pytest.raises(InputError, match=words):
            read("p.zip", io.BytesIO(bytes(data)))


JOINED = {  # a narrow table: its name and content, how its rows were matched, and the first class
    "labels in the same order": ("kind\nu\nv\nu", "line by line", "u"),
    "an id of the same values": ("sample,kind\nc,u\na,v\nb,u", "by “sample”", "v"),
    "an id of other values": ("sample,kind\nd,u\na,v\nb,u", "line by line", "u"),
    "codes of classes": ("kind\n1\n2\n1", "line by line", 1),
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_table_of_classes_is_joined_to_a_wide_table(name, is_first):
    (few, how, first), wide = JOINED[name], b"sample,400,402,404\na,1,2,3.5\nb,2,3,4.5\nc,3,5,7"
    both = {"few.csv": few.encode(), "wide.csv": wide}
    data = load_many(both if is_first else dict(reversed(both.items())))
    assert (data.name, data.feature_names) == ("wide", ("400", "402", "404"))
    assert data.X[:, 0].tolist() == [1, 2, 3]
    assert data.ids.tolist() == ["a", "b", "c"]
    assert data.labels["kind"][0] == first
    assert facts(data.provenance["report"], data)["Joined"] == f"“few.csv” to “wide.csv”, {how}"


def test_files_that_do_not_belong_together_are_refused():
    table, text = b"1,2\n3,4", {"readme.txt": b"we did this", "t.csv": b"k,a,b\nu,1,2\nv,3,4.5"}
    for files in (
        {"a.csv": table, "b.csv": table},
        {"a.npy": b"x", "b.idx": b"x"},
        {"a.nii": b"x", "b.nii": b"x"},
        {"a.txt": b"x", "README": b"x", "c": b"x", "d": b"x"},
        text | {"readme.txt": b"1 2\n3 4"},
    ):
        with pytest.raises(InputError, match="cannot be combined into one data set"):
            load_many(files)
    with pytest.raises(InputError, match="no file to read"):
        read_many([])
    dataset = load_many(text)
    assert dataset.feature_names == ("a", "b")
    assert dataset.provenance["report"]["skipped"] == ["readme.txt"]


def test_a_data_set_remembers_its_file_by_checksum_and_how_it_was_read():
    data = b"id;a;b\n1;2;x\n2;3;y\n3;5;z\n"
    dataset = read("t.csv", io.BytesIO(data), roles={"id": "feature"}, separator=";")
    assert dataset.provenance["sha256"] == hashlib.sha256(data).hexdigest()
    assert dataset.provenance["options"] == {"roles": {"id": "feature"}, "separator": ";"}
    both = [("a", io.BytesIO(b"1")), ("b", io.BytesIO(b"2"))]
    assert checksum(both) != checksum(both[::-1])


def test_a_file_on_the_disk_is_opened_where_it_is_and_others_are_copied(tmp_path):
    path = tmp_path / "plain"
    path.write_bytes(b"numbers")
    with plain_file("plain", path) as stream:
        assert stream.name == str(path)
    with plain_file(
        "plain", io.BytesIO(b"numbers"), ReadLimits(scratch=tmp_path / "new")
    ) as stream:
        assert stream.read() == b"numbers"
        assert stream.fileno() > 2
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_beside_an_array_names_and_labels_its_rows(kind, seed):
    X = np.random.default_rng(seed).normal(size=(9, 16)).astype(np.float32)
    columns = {"id": [f"p{i}" for i in range(9)], "kind": list("abc") * 3}
    table = pd.DataFrame(columns | {"year": np.arange(9) % 4 + 2000})
    write = {"csv": partial(table.to_csv, index=False), "parquet": table.to_parquet}[kind]
    beside = {f"meta.{kind}": stored(write)}
    dataset = load_many(beside | {"X.npy": stored(np.save, X)})
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.ids.tolist() == table["id"].tolist()
    for name in ("kind", "year"):
        assert dataset.labels[name].tolist() == table[name].tolist()
    with pytest.raises(InputError, match="has 9 lines for the 8 rows of the array"):
        load_many(beside | {"X.npy": stored(np.save, X[1:])})


ROW = np.array([[1, 7, 0, 255, 3, 2]], dtype=np.uint8)
FRAME = pd.DataFrame(ROW.astype(np.float64), columns=list("abcdef"))
FILES = {
    "a.csv": lambda rows: FRAME.iloc[[0] * len(rows)].to_csv(index=False).encode(),
    "plain.csv": lambda rows: ("1.0,7,0,255,3,2\n" * len(rows)).encode(),
    "a.parquet": lambda rows: pd.concat([FRAME] * len(rows), ignore_index=True).to_parquet(),
    "a.npy": lambda rows: stored(np.save, rows),
    "a.npz": lambda rows: npz(X=rows, offset=np.ones(6)),
    "a.mat": lambda rows: mat(X=rows),
    "a.idx": idx,
    "a.png": lambda rows: encoded(rows[:1].reshape(2, 3)),
}


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("name", FILES)
def test_a_single_row_and_rows_all_the_same_are_read_where_that_is_enough(name, n):
    content = FILES[name](np.repeat(ROW, n, 0))
    found = read(name, io.BytesIO(content), limits=ONE_IS_ENOUGH)
    np.testing.assert_array_equal(found.X, np.repeat(ROW, 1 if name == "a.png" else n, 0))
    with pytest.raises(InputError, match=r"at least 2|are the same; choose data that vary"):
        read(name, io.BytesIO(content))


def test_a_gap_in_a_single_row_can_only_be_left_to_the_model_and_no_row_is_never_enough():
    def one(name, content, **how):
        return read(name, io.BytesIO(content), limits=ONE_IS_ENOUGH, **how)

    for how in ("refuse", "mean", "drop"):
        with pytest.raises(InputError, match=r"missing cell|no number in column “b”"):
            one("one.csv", b"a,b,c\n1.5,,2.5\n", missing=how)
    found = one("one.csv", b"a,b,c\n1.5,,2.5\n", missing="model")
    np.testing.assert_array_equal(found.with_gaps(), [[1.5, np.nan, 2.5]])
    for name, content in (("a.csv", b"a,b\n"), ("a.npy", stored(np.save, np.zeros((0, 5))))):
        with pytest.raises(InputError, match=r"has only a header line|at least 1 row"):
            one(name, content)
    b = np.arange(10.0).reshape(2, 5)  # an array with more rows goes first
    np.testing.assert_array_equal(one("two.npz", npz(a=np.ones((1, 5)), b=b)).X, b)


def test_a_file_read_apart_is_the_same_data_set_and_a_refusal_has_what_was_found(tmp_path):
    limits = ReadLimits(scratch=tmp_path / "new")
    here = read("t.csv", io.BytesIO(TABLE), missing="model")
    there = apart("t.csv", TABLE, limits=limits, missing="model")
    assert (there.digest, there.provenance) == (here.digest, here.provenance)
    assert there.ids.tolist() == here.ids.tolist()
    assert list((tmp_path / "new").iterdir()) == []  # and yet the numbers can be read
    assert there.X.sum() == here.X.sum()
    with pytest.raises(InputError, match="The data have 3 missing cells") as refused:
        apart("t.csv", TABLE)
    assert refused.value.report["missing"] == {"b": 3}
    with pytest.raises(InputError, match="The reader of tables has the options"):
        apart("t.csv", TABLE, nothing=1)


# in another process


TABLE = b"id,class,a,b\n" + b"".join(b"r%d,%s,%d,\n" % (i, b"xy"[i % 2 :][:1], i) for i in range(3))
TABLE += b"r3,x,4,5\nr4,y,7,8\n"


def apart(name, data, **options):
    return read_apart([(name, io.BytesIO(data))], **options)


def test_one_process_reads_one_file_after_the_other_and_is_replaced_when_it_ends():
    for _ in range(3):
        apart("t.csv", TABLE, missing="mean")
    (first,) = process._PROCESSES._idle
    apart("t.csv", TABLE, missing="mean")
    assert [one.pid for one in process._PROCESSES._idle] == [first.pid]
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    assert apart("t.csv", TABLE, missing="mean").n_rows == 5
    assert [one.pid for one in process._PROCESSES._idle] != [first.pid]


@needs_proc
def test_a_file_that_takes_too_much_memory_is_told_in_one_sentence(monkeypatch):
    monkeypatch.setattr(process, "MEMORY", 20 << 20)
    stream = io.BytesIO()
    np.save(stream, np.random.default_rng(0).integers(9, size=(3000, 900)).astype(np.int16))
    with pytest.raises(InputError) as refused:
        apart("big.npy", stream.getvalue())
    assert str(refused.value).startswith(
        "“big.npy” is damaged, or needs more than 21 MB, the limit for a file"
    )
    assert faults_of(str(refused.value), "big.npy") == ""
    monkeypatch.undo()
    assert apart("big.npy", stream.getvalue()).n_rows == 3000


def test_what_a_killed_server_left_is_removed_by_the_next_reading(tmp_path):
    old, new = tmp_path / "reading-old", tmp_path / "reading-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "0").write_bytes(b"rows")
    day = time.time() - 2 * 86_400
    os.utime(old, (day, day))
    apart("t.csv", TABLE, limits=ReadLimits(scratch=tmp_path), missing="mean")
    assert [one.name for one in tmp_path.iterdir()] == ["reading-new"]


@pytest.mark.parametrize("end", [signal.SIGKILL, None])
def test_a_process_that_ends_or_takes_too_long_is_told_in_one_sentence(end, monkeypatch):
    asked = process.ReadingProcess.read

    def read(self, request):
        """Let the process stand still, and end it then."""
        os.kill(self.pid, signal.SIGSTOP)
        if end:
            os.kill(self.pid, end)
        return asked(self, request)

    warm()
    monkeypatch.setattr(process.ReadingProcess, "read", read)
    if not end:
        monkeypatch.setattr(process, "SECONDS", 0.2)
    with pytest.raises(InputError, match=r"“t\.csv” took longer than|is damaged, or") as refused:
        apart("t.csv", TABLE)
    assert end or str(refused.value).startswith("“t.csv” took longer than 0 s to read; give fewer")
    assert faults_of(str(refused.value), "t.csv") == ""
    monkeypatch.undo()
    assert apart("t.csv", TABLE, missing="mean").n_rows == 5, "the next file is read"
