"""Files of arrays, counts and images, written by other libraries than the readers use."""

import io
import struct
import warnings
import zipfile
from string import ascii_uppercase
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest
from PIL import Image
from scipy import sparse
from scipy.io import mmwrite, savemat


def stored(write: Any, *values: Any, **options: Any) -> bytes:
    write(stream := io.BytesIO(), *values, **options)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    return stored(np.savez_compressed, **arrays)


def mat(**variables: Any) -> bytes:
    return stored(savemat, variables, do_compression=True)


def market(X: Any) -> bytes:
    return stored(mmwrite, X)


def noise(seed: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)


def counts(seed: Any, n: int = 9, d: int = 7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.poisson(0.7, (n, d)) * (rng.random((n, d)) < 0.6) + np.eye(n, d, dtype=int)


def idx(values: np.ndarray, code: int = 0x08) -> bytes:
    """Write an IDX file: zeros, type, number of dimensions, dimensions, values."""
    sides = struct.pack(f">{values.ndim}I", *values.shape)
    return bytes([0, 0, code, values.ndim]) + sides + values.tobytes()


def encoded(pixels: Any, kind: str = "PNG", **options: Any) -> bytes:
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def paged(pages: list[np.ndarray], kind: str = "TIFF") -> bytes:
    first, *rest = map(Image.fromarray, pages)
    return encoded(first, kind, save_all=True, append_images=rest)


def tiff(values: np.ndarray, photometric: int) -> bytes:
    """Write a grey TIFF tag by tag; with `photometric` 0, zero is white."""
    h, w = values.shape
    data, bits = values.tobytes(), 8 * values.dtype.itemsize
    tags = [(256, w), (257, h), (258, bits), (259, 1), (262, photometric), (273, 8), (277, 1)]
    tags += [(278, h), (279, len(data))]
    start = b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(tags))
    return (
        start + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags) + bytes(4)
    )


def packed(files: Any, method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Duplicate name")
        for name, data in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, data)
    return stream.getvalue()


class Day(NamedTuple):
    """A date as Excel's day number."""

    serial: int


def xlsx(sheets: dict[str, Any], merged: Any = ()) -> bytes:
    """Write a workbook as XML; cells are texts, numbers, `Day` or None."""
    schema = "http://schemas.openxmlformats.org"
    office, package = f"{schema}/officeDocument/2006/relationships", f"{schema}/package/2006"
    main = f'xmlns="{schema}/spreadsheetml/2006/main"'

    def cell(place: str, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        style, number = (1, value.serial) if isinstance(value, Day) else (0, value)
        return f'<c r="{place}" s="{style}"><v>{number!r}</v></c>'

    def relations(*places: tuple[str, str, str]) -> str:
        link = f'<Relationship Id="{{}}" Type="{office}/{{}}" Target="{{}}"/>'
        links = "".join(link.format(*place) for place in places)
        return f'<Relationships xmlns="{package}/relationships">{links}</Relationships>'

    joined = "".join(f'<mergeCell ref="{place}"/>' for place in merged)
    end = f"<mergeCells>{joined}</mergeCells>" if joined else ""
    parts, listed, places = {}, "", [("s", "styles", "styles.xml")]
    for i, (name, rows) in enumerate(sheets.items(), 1):
        body = ""
        for n, row in enumerate(rows, 1):
            cells = (cell(f"{ascii_uppercase[j]}{n}", value) for j, value in enumerate(row))
            body += f'<row r="{n}">{"".join(cells)}</row>'
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f"<worksheet {main}><sheetData>{body}</sheetData>{end}</worksheet>"
        )
        places.append((f"r{i}", "worksheet", f"worksheets/sheet{i}.xml"))
        listed += f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>'
    parts["xl/workbook.xml"] = (
        f'<workbook {main} xmlns:r="{office}"><sheets>{listed}</sheets></workbook>'
    )
    parts["xl/_rels/workbook.xml.rels"] = relations(*places)
    parts["_rels/.rels"] = relations(("w", "officeDocument", "xl/workbook.xml"))
    of_days = '<xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/>'
    parts["xl/styles.xml"] = (
        f'<styleSheet {main}><cellXfs count="2">{of_days}</cellXfs></styleSheet>'
    )
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    book = f'<Override PartName="/xl/workbook.xml" ContentType="{kind}"/>'
    parts["[Content_Types].xml"] = f'<Types xmlns="{package}/content-types">{book}</Types>'
    return packed(parts)


def hdf5(
    arrays: dict[str, Any], kind: str | None = None, about: Any = None, **packing: Any
) -> bytes:
    """Write an HDF5 file of arrays by path, with attributes `about`; a `kind` is of MATLAB 7.3."""
    stream, block = io.BytesIO(), 512 if kind else 0
    with h5py.File(stream, "w", userblock_size=block) as file:
        for path, values in arrays.items():
            made = file.create_dataset(path, data=values.T if kind else values, **packing)
            made.attrs.update((about or {}).get(path, {}))
            if kind:
                made.attrs["MATLAB_class"] = np.bytes_(kind)
    data, start = stream.getvalue(), b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM"
    return start.ljust(block, b"\0") + data[block:] if kind else data


def changed(data: bytes, change: Any) -> bytes:
    stream = io.BytesIO(data)
    with h5py.File(stream, "r+") as file:
        change(file)
    return stream.getvalue()


def h5ad(X: Any, layers: Any = None, obsm: Any = None, **columns: Any) -> bytes:
    """Write an .h5ad file in the layout of anndata 0.8 and later, with h5py only."""
    stream = io.BytesIO()
    n, d = X.shape
    with h5py.File(stream, "w") as file:
        put(file, "X", X)
        for key, value in (layers or {}).items():
            put(file, f"layers/{key}", value)
        for key, value in (obsm or {}).items():
            put(file, f"obsm/{key}", value)
        for table, length, word in (("obs", n, "cell"), ("var", d, "gene")):
            group = file.create_group(table)
            group.attrs["_index"] = "_index"
            group["_index"] = [f"{word}{i}" for i in range(length)]
        for key, value in columns.items():
            table = "var" if len(value) == d else "obs"
            if isinstance(value, list):
                kept = sorted({one for one in value if one is not None})
                codes = [-1 if one is None else kept.index(one) for one in value]
                file[f"{table}/{key}/categories"] = kept
                file[f"{table}/{key}/codes"] = np.array(codes, np.int8)
            else:
                file[f"{table}/{key}"] = value
    return stream.getvalue()


def put(file: Any, path: str, values: Any) -> None:
    if not sparse.issparse(values):
        file[path] = values
        return
    group = file.create_group(path)
    group.attrs["encoding-type"] = f"{values.format}_matrix"
    group.attrs["shape"] = values.shape
    for part in ("data", "indices", "indptr"):
        group[part] = getattr(values, part)


def tenx(X: np.ndarray, **features: list[str]) -> bytes:
    """Write counts (cells, genes) in Cell Ranger's format."""
    by_cell = sparse.csc_matrix(X.T)
    parts = {f"matrix/{part}": getattr(by_cell, part) for part in ("data", "indices", "indptr")}
    texts = {f"matrix/features/{key}": np.array(names, "S20") for key, names in features.items()}
    barcodes = np.array([f"AAA{i}-1" for i in range(len(X))], "S8")
    shape = np.array(by_cell.shape, np.int32)
    return hdf5(parts | texts | {"matrix/barcodes": barcodes, "matrix/shape": shape})


def store(folder: Any, file: bytes, zarr_format: int = 3, chunk: int = 2, **how: Any) -> Any:
    """Convert an .h5ad file to a Zarr store, with the zarr library."""
    zarr = pytest.importorskip("zarr", reason="the extra dask brings it")
    root = zarr.open_group(folder, mode="w", zarr_format=zarr_format)

    def copy(name: str, item: Any) -> None:
        if isinstance(item, h5py.Group):
            made = root.create_group(name)
        else:
            values = item[()]
            if values.dtype.kind in "OS":
                values = np.array([one.decode() for one in values], np.dtypes.StringDType())
            made = root.create_array(
                name,
                shape=values.shape,
                dtype=values.dtype,
                chunks=(chunk,) * values.ndim,
                **(how if values.dtype.kind != "T" else {}),
            )
            made[...] = values
        said = {key: np.asarray(value).tolist() for key, value in item.attrs.items()}
        made.attrs.update(said)

    with h5py.File(io.BytesIO(file)) as source:
        names: list[str] = []
        source.visit(names.append)  # holds h5py's lock, which zarr's threads need
        for name in names:
            copy(name, source[name])
    return folder


def packed_store(folder: Any, inside: str = "") -> bytes:
    """Zip a store, optionally inside a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {f"{inside}{path.relative_to(folder).as_posix()}": path for path in paths}
    return packed({name: path.read_bytes() for name, path in names.items()})


def nifti(values: np.ndarray, step: float = 2.0, unit: str = "sec") -> bytes:
    import nibabel

    image = nibabel.Nifti1Image(values, np.diag([-3.0, 3.0, 4.0, 1.0]))
    if values.ndim > 3:
        image.header.set_zooms([3.0, 3.0, 4.0, *(step for _ in values.shape[3:])])
    image.header.set_xyzt_units("mm", unit)
    return image.to_bytes()
