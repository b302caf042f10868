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
    """A file, and the sentence it must get; None where it is read, at a bounded cost."""

    name: str
    make: Callable[[], bytes]
    sentence: str | None


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
    return gzip.compress(npy_header(shape, dtype), mtime=0) + zeros(megabytes)


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
    line = ",".join(["1"] * columns)
    return f"{line}\n{line}\n".encode()


FEW_PIXELS = "unpacks to 7,000 x 7,000 pixels in 196 MB, more than 67 MB, the most for 0.{} MB of"
UNPACKS = (
    "unpacks to more than 67 MB, the most for 0.{} MB of files; give it unpacked, split it or "
)
HOSTILE = [
    Hostile("deep.npy.gz", lambda: npy_gz((512 * 1024, 1024), "|u1", 512), None),
]


def main() -> None:
    """Read each as an upload and print what came of it."""
    found = {}
    for one in HOSTILE:
        data = one.make()
        found[one.name] = {"bytes": len(data), **read_as_an_upload(one.name, data, sys.argv[1])}
    print(json.dumps(found))


def read_as_an_upload(name: str, data: bytes, folder: str) -> dict[str, Any]:
    import resource

    from appca.data.readers import process
    from appca.data.readers.source import ReadLimits
    from appca.storage.errors import InputError

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
