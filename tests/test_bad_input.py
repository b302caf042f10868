"""Tests of bad input in the library, on the command line and on the page.

Each error is one sentence (see `tests.sentences`): in an `InputError`, in one line with exit code
1, or in a box on a page that keeps working.
"""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from appca.cli import main
from appca.data.files import ReadLimits
from appca.data.readers import read
from appca.words import InputError
from tests.data.file_makers import encoded, noise, packed
from tests.forged import altered, setting
from tests.pages import give
from tests.sentences import faults_of
from tests.ui.conftest import go, healthy, html, sentences, start


class Explosive:
    """An object that creates a file when it is unpickled."""

    def __reduce__(self) -> tuple:
        return Path.touch, (MARK,)


def objects() -> bytes:
    np.save(stream := io.BytesIO(), np.array([[Explosive(), 1.0]] * 3, object), allow_pickle=True)
    return stream.getvalue()


def huge_png(side: int = 50_000) -> bytes:
    """Return a PNG of a few bytes whose header claims `side` x `side` pixels."""
    parts = {b"IHDR": struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)}
    parts |= {b"IDAT": zlib.compress(bytes(1000)), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts.items()
    )


def claiming(size: int, data: bytes) -> bytes:
    """Return a zip whose directory claims that every file unpacks to `size` bytes."""
    changed, place = bytearray(data), data.find(b"PK\x01\x02")
    while place >= 0:
        struct.pack_into("<I", changed, place + 24, size)
        place = changed.find(b"PK\x01\x02", place + 1)
    return bytes(changed)


def lying() -> bytes:
    """Return a small zip of 20 MB of zeros, whose directory claims a few bytes."""
    files = {"a.png": bytes(20_000_000), "b.png": encoded(noise(0, 6, 6))}
    return claiming(5_000, packed(files, zipfile.ZIP_DEFLATED))


__all__ = ["start"]  # the fixture
MARK = Path("unpickled")  # is created if a pickle is loaded
LONG = "x" * 1000


class Bad(NamedTuple):
    """A bad file that the tests of readers do not contain."""

    fault: str  # description
    name: str  # file name
    data: bytes | Callable[[], bytes]
    rule: str  # part of the message
    named: str = ""  # input named in the message, by default the file

    def content(self) -> bytes:
        return self.data() if callable(self.data) else self.data

    def judge(self, sentence: str) -> None:
        assert faults_of(sentence, self.named or self.name) == ""
        assert re.search(self.rule, sentence), sentence


PNGS = {f"{name}.png": encoded(noise(i, 6, 6)) for i, name in enumerate("abc")}
BAD = [
    Bad("empty file", "e.csv", b"", "is empty"),
    Bad("inf", "i.csv", b"a,b\n1,2\n3,5\n4,4\n6,-inf", "“b” is infinite in row 4", "“b”"),
    Bad("zip with 10 GB inside", "b.zip", claiming(3_400_000_000, packed(PNGS)),
        "unpacks to 10,200 MB"),
    Bad("zip that lies about its size", "l.zip", lying, "“a.png”.*damaged"),
    Bad("zip packed by a method that unpacks without bounds", "m.zip",
        packed(PNGS, zipfile.ZIP_LZMA), "rare method"),
    Bad("nested zip", "n.zip", packed({"in.zip": b"", **PNGS}), "another archive", "in.zip"),
    Bad("50,000 x 50,000 pixel image", "p.zip", packed({**PNGS, "a.png": huge_png()}),
        "more than 50 million pixels", "a.png"),
    Bad("object arrays", "o.npy", objects, "Python objects"),
    Bad("a file of no known kind", "letter.docx", b"PK\x03\x04", "unknown format"),
    Bad("a name of 1,000 characters", f"{LONG}.csv", b"", "is empty", "xxx"),
    Bad("a name with NUL and a turned direction", "a\0\u202eb.csv", b"", "is empty", "a�"),
    Bad("a name with markup and emoji", "<b>\N{ROCKET}</b>.csv", b"", "is empty", "<b>"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_unpickled(tmp_path, monkeypatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert not MARK.exists()


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.fault)
def test_library_and_command_line_refuse_in_one_sentence(case, capsys):
    data = case.content()
    with pytest.raises(InputError) as caught:
        read(case.name, io.BytesIO(data))
    case.judge(str(caught.value))
    place = case.name.replace("/", "_")
    is_on_disk = "\0" not in place and len(place) < 250
    if is_on_disk:
        Path(place).write_bytes(data)
    assert main(["fit", place, "-K", "2", "-L", "1"]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n"), told.err[:7]) == ("", 1, "appca: ")
    if is_on_disk and place == case.name:
        case.judge(told.err.removeprefix("appca: ").strip())


def test_the_page_shows_a_box_and_lives_on(start, monkeypatch):
    """Use one session for all bad files, so that an earlier file may break a later one."""
    app = start()

    def box(name: str, data: bytes) -> str:
        give(go(app, "data/open"), (name, data))
        assert [problem.message for problem in app.exception] == []
        (sentence,) = sentences(app)
        return sentence

    for case in BAD:
        case.judge(box(case.name, case.content()))
    wrong = setting("runs", 0, "config", "parameters", "n_active", value=9)
    assert "n_active must be at most" in box("bad.appca", altered(wrong).getvalue())
    monkeypatch.setattr("appca.ui.arrivals.ReadLimits", partial(ReadLimits, n_bytes=1000))
    assert "more than the limit of 0 MB" in box("big.csv", b"a,b\n3,5\n4,4\n" + b"1,2\n" * 1000)
    go(app, "explore")
    assert "nats per row" in html(healthy(app)), "the digits are still fitted and drawn"


def test_a_file_over_the_limit_is_refused_everywhere(capsys):
    """Use a sparse file of 2 GB, which takes no disk space."""
    with Path("big.csv").open("wb") as file:
        file.truncate(2 << 30)
    case = Bad("2 GB file over the limit", "big.csv", b"", "2,147 MB, more than")
    with pytest.raises(InputError) as caught:
        read("big.csv", Path("big.csv"))
    case.judge(str(caught.value))
    assert main(["fit", "big.csv"]) == 1
    case.judge(capsys.readouterr().err.removeprefix("appca: ").strip())
