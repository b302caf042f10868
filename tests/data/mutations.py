"""Files broken in every way that a number can name: the same number breaks the same way again."""

import re
import struct
from collections.abc import Sequence
from random import Random

EXTREMES = (0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 32767, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
EXTREMES += (2**40, 2**53, 2**63 - 1, 2**63, 2**64 - 1, -1, -2, -(2**31))
TOKENS = (
    *("0", "-0", "1e308", "-1e308", "1e309", "5e-324", "nan", "inf", "-inf", "1e", "--1", "."),
    *("1,5", "1.2.3", "1_000", "0x10", "9223372036854775808", "9" * 400, "1e99999999999"),
    *("", " ", "NA", "?", "null", "true", "2020-01-01", "1 000", "5%", "<script>alert(1)</script>"),
    *("'", '"', '""', '"a', "a\nb", "\\", "#", "\N{GRINNING FACE}", "\u202eevil", "\u0661\u0662"),
    *("\u2028", "\ufeff", "\x00", "[]", "[" * 20_000, "\x1b[31m", "x" * 1000, "\ud7ff"),
)


def mutated(data: bytes, others: Sequence[bytes], rng: Random, *, text: bool) -> bytes:
    """Break a file in one to four steps; others are sound ones, of which pieces are taken."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        if text and rng.random() < 0.5:
            data = rng.choice((_with_token, _with_token, _with_token, _with_lines, _recoded))(
                data, rng
            )
        else:
            data = _with_bytes(data, others, rng)
    return data


def _place(data: bytes, rng: Random) -> int:
    """Choose a byte: often in the first or last part, where headers and directories are."""
    size, kind = len(data), rng.random()
    if not size:
        return 0
    first = max(0, size - 120) if 0.4 <= kind < 0.6 else 0
    return rng.randrange(first, min(size, 360) if kind < 0.4 else size)


def _with_bytes(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    start, other = _place(data, rng), rng.choice(others)
    end = min(len(data), start + rng.choice((1, 2, 4, 8, 16, 64, 256, len(data) // 2 + 1)))
    head, piece, tail = data[:start], data[start:end], data[end:]
    place = _place(head + tail, rng)
    flipped = bytes([byte ^ (1 << rng.randrange(8)) for byte in piece[:1]])
    return rng.choice(
        (
            head,
            data[start:],
            head + piece * rng.choice((0, 0, 2, 11, 101)) + tail,
            (head + tail)[:place] + piece + (head + tail)[place:],
            head + other[rng.choice((start, _place(other, rng))) :],
            head + rng.randbytes(rng.choice((1, 4, 40))) + data[start:],
            head + bytes([rng.choice((0, 32, 255))]) * len(piece) + tail,
            head + flipped + data[start + 1 :],
            _with_field(data, rng),
            _with_field(data, rng),
            _with_digits(data, rng),
        )
    )


def _with_field(data: bytes, rng: Random) -> bytes:
    """Write a number that a length, a side, a place or a value is not."""
    width, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    value = (rng.choice(EXTREMES) % 2 ** (8 * width)).to_bytes(width, order)
    if rng.random() < 0.3:
        real = rng.choice((float("nan"), float("inf"), -1e308))
        value = struct.pack(rng.choice("<>") + "d", real)
    place = _place(data, rng) // len(value) * len(value)
    return data[:place] + value + data[place + len(value) :]


def _with_digits(data: bytes, rng: Random) -> bytes:
    """Exchange a number that is written out, as in the header of an NPY file."""
    numbers = list(re.finditer(rb"\d+", data[:4000]))
    if not numbers:
        return data
    number = rng.choice(numbers)
    value = str(rng.choice(EXTREMES)).encode()
    if rng.random() < 0.5:  # leave all that follows where it was
        value = value[: len(number[0])].rjust(len(number[0]))
    return data[: number.start()] + value + data[number.end() :]


def _with_token(data: bytes, rng: Random) -> bytes:
    """Put something else into a cell, or into a whole column but for its header."""
    token = rng.choice(TOKENS).encode("utf-8", "replace")
    if rng.random() < 0.7:
        cell = rng.choice(list(re.finditer(rb"[^,;\t|\n]*", data)))
        return data[: cell.start()] + token + data[cell.end() :]
    separator = rng.choice((b",", b";", b"\t"))
    rows = [line.split(separator) for line in data.split(b"\n")]
    column = rng.randrange(max(map(len, rows)))
    for row in rows[1:]:
        if column < len(row):
            row[column] = token
    return b"\n".join(map(separator.join, rows))


def _with_lines(data: bytes, rng: Random) -> bytes:
    """Remove, repeat or exchange lines, or end them in another way."""
    lines = data.split(b"\n")
    a, b, how = rng.randrange(len(lines)), rng.randrange(len(lines)), rng.randrange(5)
    if how == 0:
        lines = lines[:a] + lines[b:]
    elif how == 1:
        lines.insert(a, lines[b])
    elif how == 2:
        lines[a], lines[b] = lines[b], lines[a]
    elif how == 3:
        lines = lines[: a + 1] * rng.choice((1, 2, 20))
    return rng.choice((b"\n", b"\n", b"\r\n", b"\r", b"\n\n")).join(lines)


def _recoded(data: bytes, rng: Random) -> bytes:
    encoding = rng.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "utf-7"))
    return data.decode("utf-8", "replace").encode(encoding, "replace")
