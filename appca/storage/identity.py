"""Ids derived from content: equal settings always have the same id."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from appca.storage.schema import Misfit, fitted
from appca.words import refuse_if, shortened

_MOST = 1 << 63  # upper limit of integers
ID_DIGITS = 12  # 48 bits: a collision among a million settings has probability 0.002


class Recorded:
    """Base of frozen dataclasses of settings that are stored under an id computed from them.

    Declare subclasses with ``eq=False``: settings with equal ids are equal. `later` lists fields
    added later with the values of older behaviour, which are not recorded, so ids stay.
    """

    later: ClassVar[Mapping[str, object]] = {}

    @cached_property
    def id(self) -> str:
        """Twelve hex digits computed from the settings."""
        return digest_of(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recorded) and type(self) is type(other) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able settings, which `from_dict` converts to equal settings."""
        return without(asdict(self), self.later)  # type: ignore[call-overload]

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Rebuild settings from `to_dict`.

        Raises ValueError for missing, mistyped and unknown settings.
        """
        unknown = sorted(set(settings) - {field.name for field in fields(cls)})  # type: ignore[arg-type]
        if unknown:
            msg = f"it has “{shortened(unknown[0])}”, which is not one of its settings"
            raise Misfit(msg)
        record: Self = fitted(cls, {**cls.later, **settings})
        return record


def without(settings: Mapping[str, Any], later: Mapping[str, object]) -> dict[str, Any]:
    """Remove later settings that have the value of older records; see `Recorded`."""
    return {
        name: value
        for name, value in settings.items()
        if not (name in later and _canonical(value) == _canonical(later[name]))
    }


def digest_of(settings: object) -> str:
    """First 12 hex digits of the SHA-256 of JSON-able settings; 1.0 and 1 give the same digits."""
    text = json.dumps(_canonical(settings), sort_keys=True, separators=(",", ":"))
    return sha256(text, ID_DIGITS)


def sha256(content: str | bytes, digits: int = 64) -> str:
    """Return the first hex digits of the SHA-256 of bytes, or of UTF-8 text."""
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()[:digits]


def sha256_of_file(path: Path) -> str:
    """Return the 64 hex digits of a file's SHA-256. May raise OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_id(text: object) -> bool:
    """Whether a text is an id; other texts in an address must not become paths."""
    return _is_hex(text, ID_DIGITS)


def is_digest(text: object) -> bool:
    """Whether a text is the digest of a data set, a full SHA-256; see `is_id`."""
    return _is_hex(text, 64)


def plain(name: str, value: object) -> Any:
    """Convert a value to Python's numbers, texts, lists and dicts, so that it can be recorded.

    Raises InputError for other values (arrays, functions, NaN), naming the setting.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(str(key), item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(name, item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    is_plain = value is None or isinstance(value, str)
    is_plain |= isinstance(value, int) and abs(value) < _MOST
    is_plain |= isinstance(value, float) and math.isfinite(value)
    msg = f"{name} must be a finite number, a text or yes/no to be recorded; got {value!r:.60}."
    refuse_if(not is_plain, msg)
    return value


def _is_hex(text: object, digits: int) -> bool:
    return isinstance(text, str) and re.fullmatch(rf"[0-9a-f]{{{digits}}}", text) is not None


def _canonical(value: object) -> object:
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
