"""Addresses in the headers of requests."""

from typing import TypeAlias
from urllib.parse import urlsplit

Place: TypeAlias = tuple[str, str, int]
_PORTS = {"http": 80, "https": 443}


def place(origin: str) -> Place | None:
    """Return scheme, host and port of a web origin."""
    try:
        parts = urlsplit(origin.lower())
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    plain = origin.lower() == f"{parts.scheme}://{parts.netloc}" and "@" not in parts.netloc
    return (parts.scheme, parts.hostname, port) if plain and parts.hostname else None
