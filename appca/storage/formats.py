"""The number of the format in which files are stored; another format is neither read nor replaced.

It is in every description, under "format". A format that changes gets the next number.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from appca.words.errors import InputError

FORMAT = 3
KEY = "format"
FILES = "files"  # in the description of a folder: the digests of its files, see `digests`
Content = TypeVar("Content")


class OtherFormat(InputError):
    """A file is in the format of another version."""


def numbered(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description with the number of the format."""
    return {KEY: FORMAT, **facts}


def refuse_other_format(what: str, number: object, expected: int | None = None) -> None:
    """Raise OtherFormat for a number of another format, ValueError for one of no format.

    `what` names the file in the sentence, “Fit 1a2b3c4d5e6f”; `expected` is FORMAT by default.
    """
    expected = FORMAT if expected is None else expected
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        msg = "its format number is not valid"
        raise ValueError(msg)
    if number != expected:
        age, remedy = "a newer", "update appca"
        if number < expected:
            age, remedy = "an older", "make it again with this version"
        msg = (
            f"{what} was written by {age} version of appca (format {number}; this version reads "
            f"format {expected}); {remedy}."
        )
        raise OtherFormat(msg)


def without_number(what: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description without its number; raises as `refuse_other_format`."""
    refuse_other_format(what, facts.get(KEY))
    return {name: value for name, value in facts.items() if name != KEY}


def or_none(read: Callable[[], Content]) -> Content | None:
    """Return the content, or None where it cannot be read.

    Raises OtherFormat, so that nobody takes a file of another version for damaged.
    """
    try:
        return read()
    except OtherFormat:
        raise
    except Exception:  # a damaged file fails in as many ways as parsers can
        return None
