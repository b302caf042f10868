"""Names made of content: the same settings always get the same id."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any, Self

import numpy as np

from appca.storage.errors import InputError

ID_DIGITS = 12  # 48 bits: two of a million settings share an id with probability 0.002


class Recorded:
    """
    Base of frozen dataclasses of settings that are stored and named by their content.

    Declare them with ``eq=False``: settings are equal, and hash alike, where their ids are.
    """

    @cached_property
    def id(self) -> str:
        """Twelve hex digits made of the settings: the same settings have the same id."""
        return digest_of(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able settings, from which `from_dict` makes equal ones."""
        return asdict(self)  # type: ignore[call-overload]

    @classmethod
    def from_dict(cls, settings: Mapping) -> Self:
        """Rebuild settings from `to_dict`."""
        return cls(**settings)


def digest_of(settings: object) -> str:
    """First 12 hex digits of the SHA-256 of JSON-able settings; 1.0 and 1 are the same number."""
    text = json.dumps(_canonical(settings), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def plain(name: str, value: object) -> object:
    """
    Turn a value into Python's own numbers, texts, lists and dicts, so that it can be recorded.

    Raises
    ------
    InputError
        For anything else (arrays, functions, NaN), naming the setting.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(str(key), item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(name, item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    msg = f"{name} must be a finite number, a text or yes/no to be recorded; got {value!r:.60}."
    raise InputError(msg)


def _canonical(value: object) -> object:
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
