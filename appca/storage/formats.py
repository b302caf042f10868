"""The number of the format in which something was stored.

It stands in the description of all that is stored, under "format". What has none is of format 1.
A format that changes gets the next number, an entry in `STEPS` that brings what was stored before
into the present form when it is read, and a home of its own in ``tests/fixtures``.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from appca.words.errors import InputError

FORMAT = 2
KEY = "format"
FILES = "files"  # in the description of a folder: the digests of its files, see `digests`
Found = TypeVar("Found")
# kind of description -> number of a format -> what brings it to the next one
STEPS: dict[str, dict[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    # 2: what is stored has digests; None is said of folders that were stored before
    kind: {1: lambda facts: {**facts, FILES: None}}
    for kind in ("data set", "run", "study")
}


class TooNew(InputError):
    """Something was written by a later version; it is neither read nor replaced."""


def numbered(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description with the number of the present format."""
    return {KEY: FORMAT, **facts}


def refuse_newer(what: str, number: object, newest: int | None = None) -> None:
    """Refuse what a later version wrote; `newest` is `FORMAT` where nothing else is said.

    Raises TooNew, or ValueError for a number that no version writes.
    """
    newest = FORMAT if newest is None else newest
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        msg = "its format number is not valid"
        raise ValueError(msg)
    if number > newest:
        msg = (
            f"{what} was written by a newer version of appca (format {number}, this version reads "
            f"up to {newest}); update appca."
        )
        raise TooNew(msg)


def or_none(read: Callable[[], Found]) -> Found | None:
    """Return what can be read, else None; a damaged file fails in as many ways as parsers can.

    Raises TooNew when a later version wrote it, so that nobody takes it for damaged.
    """
    try:
        return read()
    except TooNew:
        raise
    except Exception:
        return None


def current(what: str, facts: Mapping[str, Any], kind: str = "") -> dict[str, Any]:
    """Return a stored description in its present form, without the number.

    `what` names it for a refusal, “Fit 1a2b3c4d5e6f”; `kind` is a key of `STEPS`. Raises as
    `refuse_newer`.
    """
    number = facts.get(KEY, 1)
    refuse_newer(what, number)
    content = {name: value for name, value in facts.items() if name != KEY}
    for step in range(number, FORMAT):
        content = STEPS.get(kind, {}).get(step, dict)(content)
    return content
