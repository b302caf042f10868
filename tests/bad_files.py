"""The bad files of the fault list, made small: what they claim is what makes them bad."""

import gzip
import io
import pickle
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np


def table(*lines: str) -> bytes:
    return "\n".join(lines).encode()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


class Explosive:
    """Unpickling writes a file beside the one given."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple:
        return Path.touch, (self.place,)


def objects(place: Path) -> bytes:
    data = npy(np.array([[Explosive(place), 1.0]] * 3, object))
    assert pickle.loads(pickle.dumps(1)) == 1
    return data


def png(seed: int = 0, side: int = 6) -> bytes:
    from PIL import Image

    pixels = np.random.default_rng(seed).integers(256, size=(side, side), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def huge_png(side: int = 50_000) -> bytes:
    """A PNG of a few bytes whose header claims `side` x `side` pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )


def packed(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return stream.getvalue()


def pictures(*names: str) -> dict[str, bytes]:
    return {name: png(i) for i, name in enumerate(names)}


def claiming(size: int, files: dict[str, bytes]) -> bytes:
    """A zip whose directory claims that every file unpacks to `size` bytes."""
    data = bytearray(packed(files))
    place = data.find(b"PK\x01\x02")
    while place >= 0:
        struct.pack_into("<I", data, place + 24, size)
        place = data.find(b"PK\x01\x02", place + 1)
    return bytes(data)


def lying(method: int) -> bytes:
    """A zip of 200 MB of zeros, packed to little, whose directory claims some bytes of them."""
    data = bytearray(packed({"a.png": bytes(200_000_000), "b.png": png()}, method))
    place = data.find(b"PK\x01\x02")
    struct.pack_into("<I", data, place + 24, 5_000)
    return bytes(data)


def idx(sides: tuple[int, ...], n_bytes: int) -> bytes:
    return struct.pack(f">BBBB{len(sides)}I", 0, 0, 8, len(sides), *sides) + bytes(n_bytes)


def nifti(*sides: int) -> bytes:
    import nibabel

    values = np.random.default_rng(1).integers(1, 90, sides).astype(np.int16)
    image = nibabel.Nifti1Image(values, np.diag([-3.0, 3, 3, 1]))
    if len(sides) == 4:
        image.header.set_zooms((3.0, 3.0, 3.0, 2.0))
    return image.to_bytes()


def truncated_gzip() -> bytes:
    return gzip.compress(b"a,b\n" + b"1,2\n3,5\n" * 900)[:-12]
