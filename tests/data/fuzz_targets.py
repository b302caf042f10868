"""Small valid files of every format, and how to break them where a packing would hide it."""

import gzip
import io
import zipfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import ReadLimits
from appca.data.readers import read_many
from appca.runs.fit import fit_run, project
from appca.runs.model_file import model_bytes, read_model
from appca.runs.run import RunConfig
from appca.words import InputError
from tests.data.mutations import TOKENS, mutated

LIMITS = ReadLimits(n_bytes=32 << 20, members=1000, pixels=1_000_000)


class Target(NamedTuple):
    """A format to break."""

    name: str  # of the files
    valid: Callable[[], tuple[bytes, ...]]
    text: bool = False
    options: tuple[dict, ...] = ({},)  # one of them goes with each file
    read: Callable[[bytes], Dataset] | None = None  # None reads by the ending of the name
    inside: Callable[[bytes, Random], bytes] | None = None  # breaks what is packed


def mutant(target: str, seed: int, case: int) -> tuple[bytes, dict]:
    """Make one broken file of a format, and the options to read it with."""
    chosen = TARGETS[target]
    rng = Random(f"{target} {seed} {case}")
    files = chosen.valid()
    data = rng.choice(files)
    if chosen.inside is not None and rng.random() < 0.6:
        found = chosen.inside(data, rng)
    else:
        found = mutated(data, files, rng, text=chosen.text)
    return found, rng.choice(chosen.options)


@cache
def _tables() -> tuple[bytes, ...]:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(9, 3)).round(3)
    plain = "\n".join(",".join(map(str, row)) for row in rows)
    named = "id,class,a,b,note\n" + "\n".join(
        f'r{i},{"xy"[i % 2]},{a},{b},"a, ""{c}"""' for i, (a, b, c) in enumerate(rows)
    )
    commas = "a;b;größe\n" + "\n".join(f"{a};{b};{c}".replace(".", ",") for a, b, c in rows)
    grey = "\n".join(" ".join(map(str, row)) for row in rng.integers(256, size=(5, 64)))
    gaps = "a\tb\tc\n" + "\n".join(f"{a}\t\t{c}" if c > 1 else f"{a}\t{b}\t{c}" for a, b, c in rows)
    return tuple(text.encode() for text in (plain, named, commas, grey, gaps))


@cache
def _packed_tables() -> tuple[bytes, ...]:
    return tuple(gzip.compress(text, mtime=0) for text in _tables())


@cache
def _matrices() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(2)
    gaps = rng.normal(size=(6, 3))
    gaps[1, 2] = np.nan
    return (
        rng.normal(size=(5, 4)),
        rng.normal(size=(4, 5)).astype(">f4"),
        np.asfortranarray(rng.integers(99, size=(6, 3))),
        rng.integers(256, size=(4, 3, 5), dtype=np.uint8),
        rng.integers(256, size=(3, 2, 2, 3), dtype=np.uint8),
        gaps,
    )


@cache
def _arrays() -> tuple[bytes, ...]:
    return tuple(_saved(np.save, matrix) for matrix in _matrices())


@cache
def _collections() -> tuple[bytes, ...]:
    plain, single, whole, grey, colour, gaps = _matrices()
    labels, names = np.array(list("aabba")), np.array(list("wxyz"))
    return (
        _saved(np.savez, X=plain),
        _saved(np.savez, X=plain, y=labels, ids=np.arange(5), feature_names=names),
        _saved(np.savez_compressed, images=grey, labels=np.arange(4) % 2),
        _saved(np.savez, colour),
        _saved(np.savez, X=gaps, a=single, b=whole),
    )


def _saved(save: Callable[..., None], *arrays: np.ndarray, **named: np.ndarray) -> bytes:
    stream = io.BytesIO()
    save(stream, *arrays, **named)
    return stream.getvalue()


@cache
def _pictures() -> tuple[bytes, ...]:
    from PIL import Image

    rng = np.random.default_rng(3)
    images = []
    for kind, mode in (
        *(("PNG", "L"), ("PNG", "RGB"), ("PNG", "P"), ("JPEG", "RGB"), ("BMP", "RGB")),
        *(("GIF", "L"), ("TIFF", "L"), ("WEBP", "RGB"), ("PPM", "L"), ("PNG", "I;16")),
    ):
        pixels = rng.integers(256, size=(6, 5, 3), dtype=np.uint8)
        if mode == "I;16":
            image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
        else:
            image = Image.fromarray(pixels).convert(mode)
        stream = io.BytesIO()
        image.save(stream, kind)
        images.append(stream.getvalue())
    return tuple(images)


ENDINGS = ("png", "png", "png", "jpg", "bmp", "gif", "tif", "webp", "ppm", "png")


@cache
def _zips() -> tuple[bytes, ...]:
    pictures = _pictures()
    flat = {f"cat{i}.{ENDINGS[i]}": pictures[i] for i in range(10)}
    folders = {f"set/{'ab'[i % 2]}/{i}.png": pictures[i % 3] for i in range(4)}
    other = {"a.png": pictures[0], "b.png": pictures[2], "readme.txt": b"no image"}
    return (_zip(flat), _zip(folders, zipfile.ZIP_DEFLATED), _zip(other))


def _zip(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return stream.getvalue()


@cache
def _recordings() -> tuple[bytes, ...]:
    import nibabel

    rng = np.random.default_rng(4)
    volumes = 100 + rng.integers(0, 50, (3, 4, 3, 18))
    found = []
    for kind, dtype in (
        *((nibabel.Nifti1Image, np.int16), (nibabel.Nifti1Image, np.float32)),
        (nibabel.Nifti2Image, np.uint8),
    ):
        image = kind(volumes.astype(dtype), np.diag([-3.0, 3, 4, 1]))
        image.header.set_zooms((3.0, 3.0, 4.0, 2.0))
        image.header.set_xyzt_units("mm", "sec")
        found.append(image.to_bytes())
    return (*found, gzip.compress(found[0], mtime=0))


@cache
def _mask() -> bytes:
    import nibabel

    inside = np.zeros((3, 4, 3), np.uint8)
    inside[:2, 1:, 1:] = 1
    return nibabel.Nifti1Image(inside, np.eye(4)).to_bytes()


@cache
def _parquets() -> tuple[bytes, ...]:
    import pandas as pd
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(5)
    numbers = pd.DataFrame(rng.normal(size=(8, 3)), columns=["a", "b", "c"])
    mixed = numbers.assign(kind=list("xyxyxyxy"), id=[f"r{i}" for i in range(8)])
    mixed.loc[2, "b"] = None
    files = []
    for frame, packing in ((numbers, None), (mixed, "snappy"), (mixed, "zstd")):
        stream = io.BytesIO()
        frame.to_parquet(stream, compression=packing)
        files.append(stream.getvalue())
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    images = [{"bytes": one, "path": "a.png"} for one in _pictures()[:3]]
    stream = io.BytesIO()
    parquet.write_table(pa.table({"image": pa.array(images, kind), "label": [0, 1, 0]}), stream)
    files.append(stream.getvalue())
    return tuple(files)


@cache
def _mats() -> tuple[bytes, ...]:
    from scipy.io import savemat

    plain, _, whole, grey, _, gaps = _matrices()
    files = []
    for content, packed in (
        *(({"X": plain}, False), ({"X": plain, "Y": np.arange(5)[:, None]}, True)),
        *(({"fea": whole, "gnd": [1, 2, 1, 2, 1, 2]}, False), ({"X": gaps, "a": grey}, False)),
    ):
        stream = io.BytesIO()
        savemat(stream, content, do_compression=packed)
        files.append(stream.getvalue())
    files.append(hdf5({"X": plain, "y": np.arange(5.0)[:, None]}, "double"))  # version 7.3
    files.append(hdf5({"fea": whole}, "int64", chunks=True, compression="gzip"))
    return tuple(files)


def hdf5(arrays: dict[str, Any], kind: str | None = None, **packing: Any) -> bytes:
    """An HDF5 file of arrays by their paths; of a `kind` for MATLAB, whose file it then is."""
    import h5py

    stream = io.BytesIO()
    block = 512 if kind else 0
    with h5py.File(stream, "w", userblock_size=block) as file:
        for path, values in arrays.items():
            made = file.create_dataset(path, data=values.T if kind else values, **packing)
            if kind:
                made.attrs["MATLAB_class"] = np.bytes_(kind)
    data = stream.getvalue()
    start = b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM"
    return start.ljust(block, b"\0") + data[block:] if kind else data


@cache
def _hdf5() -> tuple[bytes, ...]:
    plain, _, whole, grey, _, gaps = _matrices()
    names = ["a", "b", "c", "d", "e"]
    return (
        hdf5({"X": plain, "id": names, "set/class": np.arange(5) % 2}),
        hdf5({"images": grey, "y": np.array([b"p", b"q", b"p", b"q"])}),
        hdf5({"set/X": gaps, "W": whole}, chunks=(2, 3), compression="gzip", shuffle=True),
        hdf5({"M": whole}, chunks=(4, 2), compression="lzf", fletcher32=True),
    )


@cache
def _annotated() -> tuple[bytes, ...]:
    from scipy.sparse import csc_matrix, csr_matrix

    plain, _, whole, *_ = _matrices()
    return tuple(
        _h5ad(X, marks) for X, marks in ((plain, 0), (csr_matrix(whole), 2), (csc_matrix(whole), 0))
    )


def _h5ad(X: Any, marked: int) -> bytes:
    """An .h5ad file in the layout of anndata; the first variables are marked, if any."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        if isinstance(X, np.ndarray):
            file["X"] = X
        else:
            for part in ("data", "indices", "indptr"):
                file[f"X/{part}"] = getattr(X, part)
            file["X"].attrs.update({"encoding-type": f"{X.format}_matrix", "shape": X.shape})
        for table, length in zip(("obs", "var"), X.shape, strict=True):
            file[f"{table}/names"] = [f"{table}{i}" for i in range(length)]
            file[table].attrs["_index"] = "names"
        file["obs/kind/categories"] = ["a", "b"]
        file["obs/kind/codes"] = (np.arange(X.shape[0]) % 3 - 1).astype(np.int8)
        if marked:
            file["var/highly_variable"] = np.arange(X.shape[1]) < marked
    return stream.getvalue()


@cache
def _stores() -> tuple[bytes, ...]:
    from tests.data.readers.sparse.test_zarr_store import packed, store

    with TemporaryDirectory() as place:
        folders = [
            store(Path(place) / f"{zarr_format}", _annotated()[1], zarr_format)
            for zarr_format in (2, 3)
        ]
        return tuple(packed(folder) for folder in folders)


@cache
def _markets() -> tuple[bytes, ...]:
    from scipy.io import mmwrite
    from scipy.sparse import coo_matrix

    files = []
    for matrix in _matrices()[:3]:
        for values in (matrix.astype(float), coo_matrix(matrix.astype(float))):
            mmwrite(stream := io.BytesIO(), values)
            files.append(stream.getvalue())
    return tuple(files)


@cache
def _idx() -> tuple[bytes, ...]:
    rng = np.random.default_rng(6)
    images = b"\0\0\x08\x03" + np.array([4, 3, 5], ">u4").tobytes() + rng.bytes(60)
    rows = b"\0\0\x08\x02" + np.array([5, 4], ">u4").tobytes() + rng.bytes(20)
    reals = (
        b"\0\0\x0d\x02" + np.array([3, 2], ">u4").tobytes() + np.arange(6, dtype=">f4").tobytes()
    )
    return (images, rows, reals, gzip.compress(images, mtime=0))


def _inside_gzip(data: bytes, rng: Random) -> bytes:
    if data[:2] != b"\x1f\x8b":
        return mutated(data, (data,), rng, text=False)
    text = data in _packed_tables()
    return gzip.compress(mutated(gzip.decompress(data), _tables(), rng, text=text), mtime=0)


def _inside_zip(data: bytes, rng: Random) -> bytes:
    """Break one file or the names of some, and pack all again."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    chosen = rng.choice(list(files))
    files[chosen] = mutated(files[chosen], tuple(files.values()), rng, text=False)
    if rng.random() < 0.3:
        old = rng.choice(list(files))
        odd = ("../../x.png", "/etc/x.png", "C:\\x.png", ".png", "/", "a/../b.png", "x")
        new = rng.choice((*odd, f"{rng.choice(TOKENS)}.png", f"{rng.choice(TOKENS)}/1.npy"))
        files = {new if name == old else name: content for name, content in files.items()}
    return _zip(files, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


@cache
def small() -> Dataset:
    """A data set to which the models are fitted that are broken."""
    return Dataset("small", np.random.default_rng(0).normal(size=(30, 4)), np.arange(30))


@cache
def _models() -> tuple[bytes, ...]:
    parameters = {"n_components": 3, "n_active": 1, "init": "pca", "max_iter": 50}
    config = RunConfig(small().digest, {}, "aPPCA", parameters)
    result = fit_run(small(), config)
    return (model_bytes(config, result.fitted, result.info),)


def _open_model(data: bytes) -> Dataset:
    config, _, fitted, _ = read_model("model.npz", io.BytesIO(data))
    try:
        with np.errstate(all="ignore"):  # numbers of any size may stand in a model
            described = project(config, fitted, small().X)
    except ValueError as error:  # the models know no InputError; it must be a sentence all the same
        raise InputError(str(error)) from error
    assert described.scores.shape[0] == 30
    return small()


def _among_others(data: bytes) -> Dataset:
    """Read a picture that was dropped with three sound ones."""
    files = [("a/1.png", data), *((f"{'ab'[i % 2]}/{i}.png", _pictures()[i]) for i in range(3))]
    given = [(name, io.BytesIO(content)) for name, content in files]
    return read_many(given, limits=LIMITS, size=(4, 4), broken="refuse")


def _image_options() -> tuple[dict, ...]:
    size = {"size": (4, 4)}
    return ({}, size, size, {**size, "colour": "keep"}, {**size, "broken": "skip"})


_GAPS = ({}, {"missing": "mean"}, {"missing": "drop"}, {"missing": "model"})
TARGETS = {
    "csv": Target("table.csv", _tables, text=True, options=_GAPS),
    "tsv.gz": Target(
        "table.tsv.gz", _packed_tables, text=False, options=_GAPS, inside=_inside_gzip
    ),
    "npy": Target("array.npy", _arrays, options=_GAPS),
    "zip": Target("images.zip", _zips, options=_image_options(), inside=_inside_zip),
    "nii": Target("run.nii", _recordings, options=({}, {"mask": _mask}), inside=_inside_gzip),
    "parquet": Target("table.parquet", _parquets, options=_GAPS),
    "npz": Target("arrays.npz", _collections, inside=_inside_zip),
    "mat": Target("arrays.mat", _mats),
    "hdf5": Target("arrays.h5", _hdf5, options=({}, {"missing": "mean"}, {"array": "X"})),
    "h5ad": Target("cells.h5ad", _annotated, options=({}, {"mask_var": None})),
    **(
        {"zarr": Target("cells.zarr.zip", _stores, inside=_inside_zip)} if find_spec("zarr") else {}
    ),
    "mtx": Target("matrix.mtx", _markets, text=True),
    "idx": Target("images.idx", _idx, inside=_inside_gzip),
    "images": Target("a1.png", _pictures, read=_among_others),
    "model": Target("model.npz", _models, inside=_inside_zip, read=_open_model),
}
