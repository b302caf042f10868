"""Spreadsheets as Excel writes them, for tests."""

import io
import zipfile
from collections.abc import Sequence
from string import ascii_uppercase
from typing import NamedTuple

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"


class Day(NamedTuple):
    """A date as Excel counts it."""

    serial: int


def xlsx(sheets: dict[str, Sequence[Sequence[object]]], merged: Sequence[str] = ()) -> bytes:
    """Return a workbook of sheets; cells are texts, numbers, flags, `Day` or None."""
    parts = {
        f"xl/worksheets/sheet{i}.xml": _sheet(rows, merged)
        for i, rows in enumerate(sheets.values(), 1)
    }
    numbered = [*enumerate(sheets, 1)]
    listed = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>' for i, n in numbered)
    parts["xl/workbook.xml"] = (
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>'
    )
    places = {f"r{i}": ("worksheet", f"worksheets/sheet{i}.xml") for i, _ in numbered}
    parts["xl/_rels/workbook.xml.rels"] = _relations(places | {"s": ("styles", "styles.xml")})
    parts["_rels/.rels"] = _relations({"w": ("officeDocument", "xl/workbook.xml")})
    parts["xl/styles.xml"] = (
        f'<styleSheet xmlns="{_MAIN}"><cellXfs count="2"><xf numFmtId="0"/>'
        '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>'
    )
    parts["[Content_Types].xml"] = (
        f'<Types xmlns="{_PACKAGE}/content-types">'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_KIND}"/></Types>'
    )
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


def _relations(places: dict[str, tuple[str, str]]) -> str:
    links = "".join(
        f'<Relationship Id="{key}" Type="{_OFFICE}/{kind}" Target="{place}"/>'
        for key, (kind, place) in places.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'


def _sheet(rows: Sequence[Sequence[object]], merged: Sequence[str]) -> str:
    lines = [
        "".join(_cell(f"{ascii_uppercase[j]}{i}", cell) for j, cell in enumerate(row))
        for i, row in enumerate(rows, 1)
    ]
    body = "".join(f'<row r="{i}">{line}</row>' for i, line in enumerate(lines, 1))
    joined = "".join(f'<mergeCell ref="{place}"/>' for place in merged)
    joined = f"<mergeCells>{joined}</mergeCells>" if joined else ""
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{body}</sheetData>{joined}</worksheet>'


def _cell(place: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Day):
        return f'<c r="{place}" s="1"><v>{value.serial}</v></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{value:d}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'
