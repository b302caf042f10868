"""Types for untrusted input: bounded, and validated completely by msgspec.

The types are defined where they are used. This module converts values to types, and errors to
clauses of messages.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from appca.words import InputError, shortened

MOST = (1 << 53) - 1  # largest exact integer in JSON
Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
NotNegative = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
FromOne = Annotated[int, Meta(ge=1, le=MOST)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Text = Annotated[str, Meta(max_length=1000)]
Facts = Annotated[dict[Text, Any], Meta(max_length=10_000)]
if TYPE_CHECKING:  # the type of a setting depends on its name
    Scalar = Any
else:
    Scalar = bool | int | Finite | Text | None
Settings = Annotated[dict[Text, Scalar], Meta(max_length=100)]

_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a group of named values",
    "null": "nothing",
}
_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}
_SOME = "a value"
_MOST_KINDS = 3  # maximum number listed
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|(\[\.\.\.\])")


class Misfit(ValueError):
    """A value does not match its type; the message is a clause such as “it lacks “k””."""


def fitted(shape: Any, value: object, *, from_text: bool = False) -> Any:
    """Convert a JSON value to a type, with all its contents validated.

    With `from_text`, numbers may be texts, as in an address. Raises Misfit, or the InputError of a
    dataclass with invalid fields.
    """
    try:
        if hasattr(shape, "_field_defaults"):
            return shape(**msgspec.structs.asdict(_converted(_of_tuple(shape), value, from_text)))
        return _converted(shape, value, from_text)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from None
        raise Misfit(_clause(str(error), value)) from error


def weight(value: object) -> int:
    """Return the number of values in a JSON value; 16 characters of text count as one value."""
    total, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        total += 1 + (len(part) // 16 if isinstance(part, str) else 0)
        if isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part
    return total


def _converted(shape: Any, value: object, from_text: bool) -> Any:
    return msgspec.convert(value, shape, strict=not from_text)


@cache
def _of_tuple(shape: Any) -> Any:
    """Return a Struct with the fields of a named tuple, which msgspec would encode as a list."""
    defaults, kinds = shape._field_defaults, shape.__annotations__
    named = [(name, kinds[name]) for name in shape._fields if name not in defaults]
    later = [(name, kinds[name], value) for name, value in defaults.items()]
    return msgspec.defstruct(shape.__name__, [*named, *later], kw_only=True)


def _clause(told: str, record: object) -> str:
    """Convert msgspec's “Expected `int`, got `str` - at `$.runs[0].k`” to words."""
    what, _, path = told.partition(" - at `")
    if lacking := re.match(r"Object missing required field `(\w+)`", what):
        of = _place(path)
        return f"it lacks “{lacking[1]}”{of and f' of {of}'}"
    value, place = _at(record, path), _place(path)
    if "[...]" in path:
        return f"{place} is not {_rule(what)}"
    return f"it has {_shown(value)}{place and f' for {place}'}, where {_rule(what)} belongs"


def _place(path: str) -> str:
    """Return “n_iter” of “info” of “runs” 1 for `$.runs[0].info.n_iter`."""
    words: list[str] = []
    for name, number, other in _STEP.findall(path):
        if name:
            words.append(f"“{name}”")
        elif number and words and words[-1] != _SOME:
            words[-1] += f" {int(number) + 1}"
        elif other:
            words.append(_SOME)
    return " of ".join(reversed(words))


def _at(value: object, path: str) -> object:
    for name, number, _ in _STEP.findall(path):
        if name and isinstance(value, Mapping):
            value = value.get(name)
        elif number and isinstance(value, Sequence):
            value = value[int(number)]
    return value


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return _TYPES["object"]
    return _TYPES["array"] if isinstance(value, list | tuple) else shortened(repr(value))


def _rule(what: str) -> str:
    if (kinds := re.match(r"Expected `([^`]+)`(.*)", what)) is None:
        return "another value"
    several = kinds[1].split(" | ")
    of = " or ".join(_TYPES.get(kind, kind) for kind in several[:_MOST_KINDS])
    if len(several) > _MOST_KINDS:
        return "a single number or text, or a list of those"
    if long := re.match(r" of length ([<>]=) (\d+)", kinds[2]):
        parts = "items" if kinds[1] in ("array", "object") else "characters"
        return f"{of} {_BOUNDS[long[1]]} {int(long[2]):,} {parts}"
    if (bound := re.match(r" ([<>]=?) (\S+)", kinds[2])) is None:
        return f"{of} of another form" if "regex" in kinds[2] else of
    limit = float(bound[2])
    if abs(limit) > 1e300:
        return "a finite number"
    return f"{of} {_BOUNDS[bound[1]]} {int(limit) if limit.is_integer() else limit:,}"
