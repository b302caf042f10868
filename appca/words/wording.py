"""Small pieces of sentences for people."""

import numpy as np

_JOINER = "\u200d"  # between the parts of an emoji; nothing else that is not seen may stay


def shortened(text: object, limit: int = 40) -> str:
    """Cut a text from a file to what fits into a sentence, on one line.

    Signs that are not seen, or that turn the direction of what follows, are shown as "�": a name
    must not change how the sentence around it reads.
    """
    flat = " ".join(str(text).split())
    return printable(flat if len(flat) <= limit else flat[: limit - 1] + "…")


def printable(text: str) -> str:
    """Show signs that are not seen, such as those that steer a terminal, as "�"."""
    return "".join(sign if sign.isprintable() or sign == _JOINER else "\ufffd" for sign in text)


def counted(n: int, noun: str) -> str:
    """Return "1 row" or "2,000 rows"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def capital(name: str) -> str:
    """Return a name with its first letter large; one that has large letters keeps its own: "pH"."""
    return name[:1].upper() + name[1:] if name == name.lower() else name


def is_text(column: np.ndarray) -> bool:
    """Tell whether every character of an array's texts exists; other arrays have none.

    NumPy takes any 32 bits of a file for a character, and Python then fails on those above
    U+10FFFF; halves of surrogate pairs cannot be written as UTF-8.
    """
    if column.dtype.kind != "U" or not column.size * column.dtype.itemsize:
        return True
    native = np.ascontiguousarray(column, column.dtype.newbyteorder("=")).reshape(-1)
    codes = native.view(np.uint32)
    if codes.max() < 0xD800:
        return True
    return not bool(((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any())
