"""The picture as one HTML file: the same canvas with everything in it, for a browser alone."""

import base64
import io
import json
import zlib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from appca.analysis.fitted import FittedRun
from appca.canvas.bundle import JS, closed_bundle
from appca.canvas.from_model import GivenRows, map_of, rows_of, run_of, scene_of_rows
from appca.canvas.scene.scene import Map, Scene
from appca.runs.numbering import numbered_after
from appca.storage import atomic
from appca.words.refusal import OTHER, storing

MOST_WITH_NUMBERS = 20_000  # rows whose hover card also has numbers, which hardly pack


def save_html(
    path: Path | str,
    model: Any,
    X: Any,
    labels: Any = None,
    images: Any = None,
    *,
    maps: Mapping[str, Any] | None = None,
    title: str = "appca",
) -> None:
    """Save the picture of the rows that a fitted model describes as one HTML file.

    Parameters
    ----------
    path : Path or str
        The file; one that is there is replaced.
    model, X, labels, images, maps
        As for `appca.explore`.
    title : str
        What stands above the picture.

    Raises
    ------
    InputError
        When the parts do not fit together, or the file cannot be written.

    Examples
    --------
    >>> appca.save_html("digits.html", model, X, labels=y, images=(28, 28))  # doctest: +SKIP
    """
    rows = rows_of(X, labels, images)
    views = {name: map_of(name, xy, rows.dataset) for name, xy in (maps or {}).items()}
    write_page(Path(path), rows, run_of(model, rows.dataset), views, title)


def write_page(
    path: Path, rows: GivenRows, run: FittedRun, maps: Mapping[str, Map], title: str
) -> None:
    """Write the page of rows and what a model says of them."""
    scene = scene_of_rows(rows, numbered_after(run, None), maps)
    content = picture_page(scene, title, next(iter(scene.meta["colourings"]), ""))
    with storing(f"“{path.name}”", path.parent, OTHER):
        atomic.write(path, content)


def picture_page(scene: Scene, title: str, colouring: str) -> bytes:
    """Return a page that needs no network: hover, images, lasso, search, tour and colours.

    `colouring` is the key of the one shown first.
    """
    meta, dropped = _meta(scene)
    buffers = {
        name: _packed(buffer) for name, buffer in scene.buffers.items() if name not in dropped
    }
    sheets = scene.sheets
    drawn = [_webp(sheets.png(i)) for i in range(sheets.n_sheets)] if sheets is not None else []
    data = {
        "meta": meta,
        "buffers": buffers,
        "sheets": drawn,
        "components": None if scene.component_sheet is None else _text(scene.component_sheet),
        "colouring": colouring,
    }
    script = closed_bundle(JS / "page.js")
    style = "".join((JS / name).read_text("utf-8") for name in ("canvas.css", "page.css"))
    content = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f'<header><h1>{escape(title)}</h1></header><main id="canvas"></main>'
        f'<script type="application/json" id="data">{_inert(content)}</script>'
        f'<script type="module">{script}</script></body></html>\n'
    )
    return page.encode()


def _meta(scene: Scene) -> tuple[dict[str, Any], set[str]]:
    """Return the header, and the buffers that are left out of a large picture."""
    meta = scene.meta
    hover = meta.get("hover")
    if not hover or meta["rows"] <= MOST_WITH_NUMBERS:
        return meta, set()
    kept = [line for line in hover["lines"] if line["kind"] != "number"]
    dropped = {line["buffer"] for line in hover["lines"]} - {line["buffer"] for line in kept}
    return meta | {"hover": hover | {"lines": kept}}, dropped


def _packed(array: np.ndarray) -> str:
    """Return a buffer as text: bytes of one rank together, so that they pack, then deflated."""
    plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    ranks = plain.view(np.uint8).reshape(-1, plain.dtype.itemsize).T
    return _text(bytes([plain.dtype.itemsize]) + zlib.compress(ranks.tobytes(), 9))


def _webp(png: bytes) -> str:
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(buffer, "WEBP", lossless=True, method=4)
    return _text(buffer.getvalue())


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _inert(text: str) -> str:
    """Return JSON that cannot end the element it stands in."""
    return text.replace("<", "\\u003c")
