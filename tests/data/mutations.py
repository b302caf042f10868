"""Files broken in every way that a number can name: the same number breaks the same way again."""

import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

INTEGERS = (0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**24, 2**31 - 1)
EXTREMES = (
    *INTEGERS,
    2**31,
    2**32 - 1,
    2**40,
    2**53,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -1,
    -2,
    -(2**31),
)
NUMBERS = (
    *("0", "-0", "-1", "1e308", "-1e308", "1.8e308", "1e309", "1e-320", "5e-324", "nan", "inf"),
    *("-inf", "Infinity", "1e", "e5", "--1", "+", ".", ",", "1,5", "1.2.3", "1_000", "0x10", "1/2"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616"),
    *("9" * 400, "9" * 5000, "0." + "0" * 400 + "1", "1" + "0" * 309 + ".5", "1e99999999999"),
)
WORDS = (
    *("", " ", "NA", "?", "null", "true", "False", "None", "2020-01-01", "12:30", "1 000", "5%"),
    *("<script>alert(1)</script>", "=1+1", "@SUM(A1)", "'", '"', '""', '"a', "a\nb", "\\", "#"),
    *("\N{GRINNING FACE}", "\u202eevil", "\u0661\u0662", "\u00bd", "\u2028", "\ufeff", "\x00"),
    *("[]", "{}", "[1]", '{"a": 1}', "[" * 20_000, '"x"'),
    *("\x1b[31m", "\x85", "x" * 1000, "a\u0301" * 300, "\ud7ff", "\U0010ffff"),
)


class Step(NamedTuple):
    """One thing done to a file."""

    what: str
    where: tuple

    def __str__(self) -> str:
        return f"{self.what}{self.where}"


class Mutant(NamedTuple):
    """A broken file and how it was made."""

    data: bytes
    recipe: tuple[Step, ...]


def mutated(data: bytes, others: Sequence[bytes], rng: Random, *, text: bool) -> Mutant:
    """
    Break a file in one to four steps.

    Parameters
    ----------
    data : bytes
    others : sequence of bytes
        Valid files of the same kind, of which pieces are taken.
    rng : Random
    text : bool
        Whether cells and lines may be exchanged, beside bytes.
    """
    steps = _BYTES + _TEXT if text else _BYTES
    recipe = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        step = rng.choice(steps)
        data, where = step(data, others, rng)
        recipe.append(Step(step.__name__.strip("_"), where))
    return Mutant(data, tuple(recipe))


def _place(data: bytes, rng: Random) -> int:
    """Choose a byte: often in the first or last part, where headers and directories are."""
    size = len(data)
    if not size:
        return 0
    kind = rng.random()
    if kind < 0.4:
        return rng.randrange(min(size, 360))
    if kind < 0.6:
        return rng.randrange(max(0, size - 120), size)
    return rng.randrange(size)


def _stretch(data: bytes, rng: Random) -> tuple[int, int]:
    start = _place(data, rng)
    return start, min(len(data), start + rng.choice((1, 2, 4, 8, 16, 64, 256, len(data) // 2 + 1)))


def _flip(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    changed, places = bytearray(data), []
    for _ in range(rng.choice((1, 1, 2, 8)) if data else 0):
        place, bit = _place(data, rng), rng.randrange(8)
        changed[place] ^= 1 << bit
        places.append((place, bit))
    return bytes(changed), tuple(places)


def _truncate(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    end = _place(data, rng)
    return data[:end], (end,)


def _behead(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    start = _place(data, rng)
    return data[start:], (start,)


def _remove(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    start, end = _stretch(data, rng)
    return data[:start] + data[end:], (start, end)


def _repeat(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    start, end = _stretch(data, rng)
    times = rng.choice((1, 1, 2, 10, 100))
    return data[:end] + data[start:end] * times + data[end:], (start, end, times)


def _move(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    start, end = _stretch(data, rng)
    rest = data[:start] + data[end:]
    target = _place(rest, rng)
    return rest[:target] + data[start:end] + rest[target:], (start, end, target)


def _splice(data: bytes, others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    which = rng.randrange(len(others))
    cut = _place(data, rng)
    start = cut if rng.random() < 0.5 else _place(others[which], rng)
    return data[:cut] + others[which][start:], (cut, which, start)


def _insert(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    place, noise = _place(data, rng), rng.randbytes(rng.choice((1, 1, 4, 40)))
    return data[:place] + noise + data[place:], (place, noise.hex())


def _blank(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    start, end = _stretch(data, rng)
    byte = rng.choice((0, 255, 32))
    return data[:start] + bytes([byte]) * (end - start) + data[end:], (start, end, byte)


def _field(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    """Write a number that a length, a side or a place is not."""
    width, order = rng.choice((1, 2, 4, 8)), rng.choice("<>")
    place, value = _place(data, rng) // width * width, rng.choice(EXTREMES)
    field = (value % 2 ** (8 * width)).to_bytes(width, "little" if order == "<" else "big")
    return data[:place] + field + data[place + width :], (place, order, width, value)


def _real(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    form = rng.choice(("<f", ">f", "<d", ">d"))
    width = struct.calcsize(form)
    top = 3e38 if width == 4 else 1.7e308
    value = rng.choice((float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e-40, top, -top))
    place = _place(data, rng) // 4 * 4
    return data[:place] + struct.pack(form, value) + data[place + width :], (place, form, value)


def _digits(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    """Exchange a number that is written out, as in the header of an NPY file."""
    found = list(re.finditer(rb"\d+", data[:4000]))
    if not found:
        return data, ()
    number = rng.choice(found)
    value = str(rng.choice(EXTREMES)).encode()
    if rng.random() < 0.5:  # leave all that follows where it was
        value = value[: len(number[0])].rjust(len(number[0]))
    return data[: number.start()] + value + data[number.end() :], (number.span(), value.decode())


def _token(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    """Put something else into a cell."""
    found = list(re.finditer(rb"[^,;\t|\n]*", data))
    cell = rng.choice(found)
    token = rng.choice(rng.choice((NUMBERS, WORDS)))
    return data[: cell.start()] + token.encode() + data[cell.end() :], (cell.span(), token[:40])


def _column(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    """Put something else into a whole column, the header apart."""
    separator = rng.choice((b",", b";", b"\t"))
    token = rng.choice(rng.choice((NUMBERS, WORDS))).encode()
    rows = [line.split(separator) for line in data.split(b"\n")]
    column = rng.randrange(max(map(len, rows)))
    for row in rows[1:]:
        if column < len(row):
            row[column] = token
    return b"\n".join(map(separator.join, rows)), (separator, column, token[:40])


def _lines(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
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
    end = rng.choice((b"\n", b"\n", b"\r\n", b"\r", b"\n\n"))
    return end.join(lines), (how, a, b, end)


def _recode(data: bytes, _others: Sequence[bytes], rng: Random) -> tuple[bytes, tuple]:
    encoding = rng.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "utf-7"))
    return data.decode("utf-8", "replace").encode(encoding, "replace"), (encoding,)


Change = Callable[[bytes, Sequence[bytes], Random], tuple[bytes, tuple]]
_BYTES: tuple[Change, ...] = (
    *(_flip, _flip, _field, _field, _field, _real, _digits, _truncate, _behead),
    *(_remove, _repeat, _move, _splice, _insert, _blank),
)
_TEXT: tuple[Change, ...] = (_token,) * 6 + (_column, _column, _lines, _lines, _lines, _recode)
