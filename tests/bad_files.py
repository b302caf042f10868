"""Files that are bad by what they claim, made small."""

import io
import pickle
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np

from tests.data.file_makers import encoded, noise, packed


def pictures(*names: str) -> dict[str, bytes]:
    return {name: encoded(noise(i, 6, 6)) for i, name in enumerate(names)}


class Explosive:
    """Unpickling writes a file beside the one given."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple:
        return Path.touch, (self.place,)


def objects(place: Path) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([[Explosive(place), 1.0]] * 3, object), allow_pickle=True)
    assert pickle.loads(pickle.dumps(1)) == 1
    return stream.getvalue()


def huge_png(side: int = 50_000) -> bytes:
    """A PNG of a few bytes whose header claims `side` x `side` pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + header + body + chunk(b"IEND", b"")


def claiming(size: int, data: bytes) -> bytes:
    """A zip whose directory claims that every file unpacks to `size` bytes."""
    changed, place = bytearray(data), data.find(b"PK\x01\x02")
    while place >= 0:
        struct.pack_into("<I", changed, place + 24, size)
        place = changed.find(b"PK\x01\x02", place + 1)
    return bytes(changed)


def lying() -> bytes:
    """A zip of 200 MB of zeros, packed to little, whose directory claims some bytes of them."""
    files = {"a.png": bytes(200_000_000), "b.png": encoded(noise(0, 6, 6))}
    return claiming(5_000, packed(files, zipfile.ZIP_DEFLATED))
