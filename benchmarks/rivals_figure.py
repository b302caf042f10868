"""The figure of docs/when-to-use.md as SVG: rows are data sets, columns measures, dots methods."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from benchmarks.results import Row

__all__ = ["SHOWN", "kind_of", "write_figure"]

# beginning of a method's name -> name in the figure, colour, radius
SHOWN = {
    "aPPCA": ("aPPCA (K, L)", "#d55e00", 6.0),
    "PPCA K": ("PPCA with K", "#7f7f7f", 4.5),
    "mixture K": ("mixture of PPCA, K of L", "#0072b2", 4.5),
    "mixture few": ("mixture of PPCA, K/L of L", "#56b4e9", 4.5),
    "common": ("common loadings", "#009e73", 4.5),
    "k-subspaces": ("k-subspaces", "#cc79a7", 4.5),
}
# measure -> title, and least and most of its axis
COLUMNS = {
    "gain": ("nats a feature over aPPCA", -0.5, 0.5),
    "error": ("variance not explained", 0.0, 1.0),
    "neighbours": ("neighbours kept", 0.0, 1.0),
    "accuracy": ("labels agree", 0.0, 1.0),
    "recurrence": ("recovered", 0.0, 1.0),
    "axes": ("axes to learn", 0.0, 2.0),
}
LEFT, TOP, WIDE, GAP, HIGH = 120, 74, 150, 22, 30


def kind_of(row: Row, K: int, L: int) -> str | None:
    """Say which of `SHOWN` a row is, if any."""
    name = row["method"]
    few = max(2, round(K / L))
    exact = {
        f"aPPCA ({K}, {L})": "aPPCA",
        f"PPCA {K}": "PPCA K",
        f"mixture of PPCA, {K} of {L}": "mixture K",
        f"mixture of PPCA, {few} of {L}": "mixture few",
        f"common loadings {K}, {K} pieces": "common",
        f"k-subspaces, {K} of {L}": "k-subspaces",
    }
    return exact.get(name)


def sizes(rows: Sequence[Row]) -> tuple[int, int]:
    """K and L of a data set, from what aPPCA is called."""
    name = next(row["method"] for row in rows if row["method"].startswith("aPPCA"))
    K, L = name.removeprefix("aPPCA (").removesuffix(")").split(", ")
    return int(K), int(L)


def write_figure(path: Path, rows: Sequence[Row]) -> None:
    """Write the figure of all rows."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    width = LEFT + len(COLUMNS) * (WIDE + GAP)
    height = TOP + HIGH * len(names) + 34
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12" fill="#6b6b6b">'
    )
    path.write_text("\n".join([head, *_parts(names, rows), "</svg>\n"]), encoding="utf-8")


def _parts(names: list[str], rows: Sequence[Row]) -> Iterator[str]:
    x = LEFT
    for label, colour, radius in SHOWN.values():
        yield f'<circle cx="{x}" cy="16" r="{radius}" fill="{colour}"/>'
        yield f'<text x="{x + 10}" y="20">{escape(label)}</text>'
        x += 34 + 7 * len(label)
    bottom = TOP + HIGH * len(names)
    for i, (title, least, most) in enumerate(COLUMNS.values()):
        x = LEFT + i * (WIDE + GAP)
        yield f'<text x="{x}" y="{TOP - 22}" font-size="11">{escape(title)}</text>'
        for at, text in _ticks(least, most, log=i == len(COLUMNS) - 1):
            here = x + at * WIDE
            yield f'<path d="M{here:.1f} {TOP - 8}V{bottom}" stroke="#bbb" stroke-width="0.6"/>'
            yield f'<text x="{here:.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>'
    for j, name in enumerate(names):
        y = TOP + HIGH * (j + 0.5)
        yield f'<text x="{LEFT - 14}" y="{y + 4}" text-anchor="end">{name.replace("_", " ")}</text>'
        yield from _dots([row for row in rows if row["data"] == name], y)


def _ticks(least: float, most: float, *, log: bool) -> list[tuple[float, str]]:
    values = [least, (least + most) / 2, most]
    words = [f"{10**v:g}" if log else f"{v:g}" for v in values]
    return list(zip((0.0, 0.5, 1.0), words, strict=True))


def _dots(rows: Sequence[Row], y: float) -> Iterator[str]:
    K, L = sizes(rows)
    found = {kind_of(row, K, L): row for row in rows}
    for kind in reversed(SHOWN):
        if kind not in found:
            continue
        row, (_, colour, radius) = found[kind], SHOWN[kind]
        for i, (measure, (_, least, most)) in enumerate(COLUMNS.items()):
            value = _value(measure, row, found["aPPCA"])
            if value is None:
                continue
            share = (min(max(value, least), most) - least) / (most - least)
            x = LEFT + i * (WIDE + GAP) + share * WIDE
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}" opacity="0.85"/>'


def _value(measure: str, row: Row, ours: Row) -> float | None:
    if measure == "axes":
        return math.log10(row["axes"])
    if measure == "gain":
        value, own = row["log_likelihood"], ours["log_likelihood"]
        return None if value is None else (value - own) / row["features"]
    found: float | None = row[measure]
    return found
