"""Files under 2 MB that are made to cost memory, time or other files; each is made when asked for.

``python -m tests.attacks.hostile_files FOLDER`` reads each as the server does, and prints what it
was answered and the most memory that server and reading process took beyond what they began with.
"""

import gzip
import io
import json
import struct
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MEGA = 1 << 20
BASE = 100 * MEGA  # that a reading process has when it waits


class Hostile(NamedTuple):
    """A file that a stranger may upload."""

    name: str
    make: Callable[[], bytes]


@cache
def zeros(n: int) -> bytes:
    """Zeros packed by gzip, as members of a megabyte: made at once, however many they are."""
    return gzip.compress(bytes(MEGA), 9, mtime=0) * n


def npy_header(shape: tuple[Any, ...], dtype: str) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"shape": shape, "fortran_order": False, "descr": dtype}
    )
    return stream.getvalue()


def npy_gz(shape: tuple[int, ...], dtype: str, megabytes: int) -> bytes:
    first = npy_header(shape, dtype) + b"\1"  # for rows that are all the same are refused
    return gzip.compress(first, mtime=0) + zeros(megabytes)


def text_gz(line: bytes, head: bytes, megabytes: int) -> bytes:
    block = gzip.compress(line * (MEGA // len(line)), 9, mtime=0)
    return gzip.compress(head, mtime=0) + block * megabytes


def png(width: int, height: int, colour: int = 0) -> bytes:
    """A black PNG that is whole: grey (0), RGB (2) or RGBA (6)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    row = 1 + width * {0: 1, 2: 3, 6: 4}[colour]
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    body = zlib.compress(bytes(row * height), 1)
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return start + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def picture(kind: str, side: int, mode: str = "L", **options: Any) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.new(mode, (side, side)).save(stream, kind, **options)
    return stream.getvalue()


def packed(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 1)
    return stream.getvalue()


def overlapping(n: int) -> bytes:
    """A zip whose directory names one packed member many times."""
    inner = zlib.compress(bytes(MEGA), 9)[2:-4]
    crc = zlib.crc32(bytes(MEGA))
    sizes = struct.pack("<III", crc, len(inner), MEGA)
    local = struct.pack("<4sHHHHH", b"PK\x03\x04", 20, 0, 8, 0, 33) + sizes
    data = local + struct.pack("<HH", 5, 0) + b"a.png" + inner
    entry = struct.pack("<4sHHHHHH", b"PK\x01\x02", 20, 20, 0, 8, 0, 33) + sizes
    names = b"".join(
        entry + struct.pack("<HHHHHII", 9, 0, 0, 0, 0, 0, 0) + f"{i:05d}.png".encode()
        for i in range(n)
    )
    ends = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, n, n, len(names), len(data), 0)
    return data + names + ends


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def mat(side: int) -> bytes:
    """A packed MAT variable of zeros."""
    size = side * side * 8
    flags = struct.pack("<IIII", 6, 8, 6, 0)
    sides = struct.pack("<IIii", 5, 8, side, side)
    name = struct.pack("<II", 1 << 16 | 1, ord("X"))
    matrix = flags + sides + name + struct.pack("<II", 9, size) + bytes(size)
    body = zlib.compress(struct.pack("<II", 14, len(matrix)) + matrix, 1)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
    return header + struct.pack("<II", 15, len(body)) + body


def idx_gz(megabytes: int) -> bytes:
    header = b"\0\0\x08\x03" + struct.pack(">III", megabytes, 1024, 1024)
    return gzip.compress(header, mtime=0) + zeros(megabytes)


def nii_gz(megabytes: int) -> bytes:
    import nibabel

    image = nibabel.Nifti1Image(np.zeros((2, 2, 2, 2), np.uint8), np.diag([3.0, 3, 3, 1]))
    image.header.set_xyzt_units("mm", "sec")
    image.header["dim"] = [4, 64, 64, 64, megabytes * 4, 1, 1, 1]
    image.header["pixdim"][4] = 2.0
    return gzip.compress(image.header.binaryblock + bytes(4), mtime=0) + zeros(megabytes)


def parquet(**columns: Any) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pa.table(columns), stream, compression="zstd")
    return stream.getvalue()


def constant(n: int) -> Any:
    import pyarrow as pa

    return pa.array(np.zeros(n))


def lists(rows: int, width: int) -> bytes:
    import pyarrow as pa

    values = pa.array(np.arange(rows * width) % 7)
    return parquet(v=pa.FixedSizeListArray.from_arrays(values, width), w=constant(rows))


def hdf5(fill: Callable[[Any], None]) -> bytes:
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        fill(file)
    return stream.getvalue()


def unwritten(file: Any) -> None:
    file.create_dataset("X", (50_000, 10_000), "f8", chunks=(10, 10_000), compression="gzip")


def one_chunk(file: Any) -> None:
    file.create_dataset("X", (20, 10), "f8", maxshape=(None, None), chunks=(4000, 8000))


def elsewhere(file: Any) -> None:
    import h5py

    file["X"] = h5py.ExternalLink("/etc/passwd", "X")
    layout = h5py.VirtualLayout((10, 4), "f8")
    layout[:] = h5py.VirtualSource("/etc/hostname", "X", (10, 4))
    file.create_virtual_dataset("Y", layout)
    file.create_dataset("Z", (10, 4), "u1", external=[("/etc/passwd", 0, 40)])


def one_text(file: Any) -> None:
    import h5py

    file["X"] = np.random.default_rng(0).normal(size=(9000, 3))
    names = file.create_dataset("id", (9000,), h5py.string_dtype(), chunks=(9000,))
    names[:] = ["x"] * 9000
    names[0] = "y" * 900_000


def labels_csv(rows: int, columns: int) -> bytes:
    """A table each of whose label columns holds one long text."""
    first = ",".join(["x" * 480] * columns)
    rest = "\n".join([",".join("ab"[i % 2] for i in range(columns)) + ",1,2"] * rows)
    return f"{first},3,4\n{rest}\n".encode()


def wide_csv(columns: int) -> bytes:
    return b"\n".join(b",".join([cell] * columns) for cell in (b"1", b"2", b""))


def unknown_filter(file: Any) -> None:
    """One that a plugin beside the library would be loaded for."""
    import h5py

    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((10, 4))
    plan.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())
    space = h5py.h5s.create_simple((10, 4))
    h5py.h5d.create(file.id, b"X", h5py.h5t.IEEE_F64LE, space, plan)


def many_groups(file: Any) -> None:
    group = file
    for i in range(2000):
        group = group.create_group("g") if i % 20 else file.create_group(str(i))
    group["X"] = np.eye(5)


HOSTILE = [
    Hostile("deep.npy.gz", lambda: npy_gz((99 * 1024, 1024), "|u1", 99)),
    Hostile("bools.npy.gz", lambda: npy_gz((60 * 1024, 1024), "|b1", 60)),
    Hostile("rows.npy.gz", lambda: npy_gz((30 * MEGA, 2), "|u1", 60)),
    Hostile("wide.npy.gz", lambda: npy_gz((2, 30 * MEGA), "|u1", 60)),
    Hostile("true.npy", lambda: npy_header((True, 4), "|u1") + bytes(400)),
    Hostile("true inside.npy", lambda: npy_header((9, True), "|u1") + bytes(400)),
    Hostile("negative.npy", lambda: npy_header((-5, -4), "|u1") + bytes(400)),
    Hostile("zeros.npz", lambda: npz(X=np.zeros((3000, 3000)))),
    Hostile("short.npz", lambda: npz(X=np.eye(20), y=np.arange(19) % 3)),
    Hostile("zeros.mat", lambda: mat(3000)),
    Hostile("zeros.idx.gz", lambda: idx_gz(99)),
    Hostile("zeros.nii.gz", lambda: nii_gz(99)),
    Hostile("voxels.nii.gz", lambda: nii_gz(15)),
    Hostile("two.zip", lambda: packed({"a.png": png(7000, 7000), "b.png": png(7000, 7000)})),
    Hostile("overlapping.zip", lambda: overlapping(30_000)),
    Hostile("photo.tif", lambda: picture("TIFF", 7000, compression="tiff_deflate")),
    Hostile("photo.jpg", lambda: picture("JPEG", 7000)),
    Hostile("cells.csv.gz", lambda: text_gz(b"0,0,0,0\n", b"a,b,c,d\n", 99)),
    Hostile("numbers.csv.gz", lambda: text_gz(b"0,0,0,0\n", b"a,b,c,d\n", 6)),
    Hostile("emoji.csv.gz", lambda: text_gz(b'"0",0,0,0\n', "a,b,c,\N{ROCKET}\n".encode(), 60)),
    Hostile("labels.csv", lambda: labels_csv(80_000, 4)),
    Hostile("wide.csv", lambda: wide_csv(300_000)),
    Hostile("runs.parquet", lambda: parquet(a=constant(2_000_000), b=constant(2_000_000))),
    Hostile("lists.parquet", lambda: lists(4, 400_000)),
    Hostile("unwritten.h5", lambda: hdf5(unwritten)),
    Hostile("chunk.h5", lambda: hdf5(one_chunk)),
    Hostile("elsewhere.h5", lambda: hdf5(elsewhere)),
    Hostile("one text.h5", lambda: hdf5(one_text)),
    Hostile("filter.h5", lambda: hdf5(unknown_filter)),
]
# read, or refused for another reason than their cost; each takes seconds
COSTLY = [
    Hostile("fits.npy.gz", lambda: npy_gz((15_000, 1024), "|u1", 15)),
    Hostile("rows.npy.gz", lambda: npy_gz((900_000, 2), "|u1", 2)),
    Hostile("bools.npy.gz", lambda: npy_gz((8000, 1024), "|b1", 8)),
    Hostile("wide.npy.gz", lambda: npy_gz((2, 3_900_000), "<f8", 60)),
    Hostile("rgba.zip", lambda: packed({"a.png": png(4000, 4000, 6), "b.png": png(4000, 4000, 6)})),
    Hostile("wide.csv", lambda: wide_csv(130_000)),
    Hostile("numbers.csv.gz", lambda: text_gz(b"0,0,0,0\n", b"a,b,c,d\n", 5)),
    Hostile("numbers.parquet", lambda: parquet(a=constant(800_000), b=constant(800_000))),
    Hostile("lists.parquet", lambda: lists(40, 100_000)),
    Hostile("columns.parquet", lambda: parquet(**{f"c{i}": [0, i] for i in range(6000)})),
    Hostile("groups.h5", lambda: hdf5(many_groups)),
]


def main() -> None:
    """Read each as an upload and print what came of it."""
    found = {}
    for one in COSTLY if "costly" in sys.argv else HOSTILE:
        data = one.make()
        found[one.name] = {"bytes": len(data), **read_as_an_upload(one.name, data, sys.argv[1])}
    sys.stdout.write(json.dumps(found))


def read_as_an_upload(name: str, data: bytes, folder: str) -> dict[str, Any]:
    import resource

    from appca.data.files import ReadLimits
    from appca.data.readers import process
    from appca.words import InputError

    process.warm()
    worker = process._PROCESSES._idle[0].pid
    while memory(worker, "VmRSS") < BASE:  # until its libraries are there
        time.sleep(0.02)
    base = memory(worker, "VmRSS")
    for pid in ("self", worker):
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak is now what is used now
    before = memory("self", "VmRSS")
    sentence = None
    began = time.perf_counter()
    try:
        dataset = process.read_apart([(name, io.BytesIO(data))], limits=ReadLimits(scratch=folder))
        dataset.digest  # noqa: B018 (goes through all of it)
    except InputError as error:
        sentence = str(error)
    seconds = time.perf_counter() - began
    try:
        peak = memory(worker, "VmHWM")
    except OSError:  # it has ended
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    grown = memory("self", "VmHWM") - before
    return {"sentence": sentence, "server": grown, "reader": peak - base, "seconds": seconds}


def memory(pid: int | str, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(field)), 0)


if __name__ == "__main__":
    main()
