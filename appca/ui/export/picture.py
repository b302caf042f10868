"""The picture as one HTML file: the same canvas with everything in it, for a browser alone."""

import base64
import io
import json
import zlib
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from appca.plots.explore.scene.scene import Scene
from appca.ui.explorer import bundle

CANVAS = bundle.FOLDER / "canvas"
HERE = Path(__file__).parent
MOST_WITH_NUMBERS = 20_000  # rows whose hover card also has numbers, which hardly pack


def picture_page(scene: Scene, title: str, colouring: str) -> bytes:
    """Return a page that needs no network: hover, images, lasso, search, tour and colours.

    `colouring` is the key of the one shown first.
    """
    meta, dropped = _meta(scene)
    buffers = {name: _packed(one) for name, one in scene.buffers.items() if name not in dropped}
    sheets = scene.sheets
    drawn = [_webp(sheets.png(i)) for i in range(sheets.n_sheets)] if sheets is not None else []
    data = {
        "meta": meta,
        "buffers": buffers,
        "sheets": drawn,
        "components": None if scene.component_sheet is None else _text(scene.component_sheet),
        "colouring": colouring,
    }
    script = bundle.closed_bundle(CANVAS / "page.js")
    style = (CANVAS / "canvas.css").read_text("utf-8") + (HERE / "picture.css").read_text("utf-8")
    given = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f'<header><h1>{escape(title)}</h1></header><main id="canvas"></main>'
        f'<script type="application/json" id="data">{_inert(given)}</script>'
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
