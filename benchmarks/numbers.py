"""Numbers in the tables of docs/benchmarks.md."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["columns", "number"]


def number(value: Any, digits: int = 3) -> str:
    """Round to some digits, without exponents and with thousands separated; None is empty."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    value = float(f"{float(value):.{digits}g}")
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    text = f"{value:.12f}".rstrip("0")
    return text.rstrip(".") or "0"


def columns(
    rows: Sequence[Mapping[str, Any]], headings: Mapping[str, str], digits: int = 3
) -> list[dict[str, str]]:
    """Name fields by headings and write their values; a field that no row has is left out."""
    there = {f: title for f, title in headings.items() if any(f in row for row in rows)}
    return [{title: _text(row.get(f), digits) for f, title in there.items()} for row in rows]


def _text(value: Any, digits: int) -> str:
    return value if isinstance(value, str) else number(value, digits)
