"""The canvas as one HTML file with its scripts, of a fit or several with sliders of K and L."""

import base64
import io
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from appca.analysis.fitted import FittedRun
from appca.canvas.from_model import GivenRows, map_of, rows_of, run_of, scene_of_rows
from appca.canvas.scene import Map, Scene
from appca.runs.numbering import numbered_after
from appca.storage import files
from appca.words import OTHER, refuse_if, storing

JS, PACKAGE = Path(__file__).parent / "js", Path(__file__).parents[1]
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
FROM = re.compile(r"^import (\{[^}]*\}|\* as \w+) from '(\.[^']*)';\n", re.MULTILINE)
EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|class|const) (\w+)", re.MULTILINE)


@cache
def closed_bundle(entry: Path) -> str:
    """Join a module and all its imports; the result keeps the default export of `entry`."""
    texts: dict[Path, str] = {}
    _close(entry.resolve(), texts, is_entry=True)
    return "\n".join(texts.values())


def _close(file: Path, texts: dict[Path, str], *, is_entry: bool = False) -> str:
    name = "_".join(re.sub(r"\W", "_", part) for part in file.relative_to(PACKAGE).parts)
    if file in texts:
        return name
    text = file.read_text(encoding="utf-8")

    def imported(statement: re.Match[str]) -> str:
        other = _close((file.parent / statement[2]).resolve(), texts)
        names = re.sub(r"(\w)\s+as\s+", r"\1: ", statement[1]).removeprefix("* as ")
        return f"const {names} = {other};\n"

    body, exports = FROM.sub(imported, text), ", ".join(EXPORTED.findall(text))
    if not is_entry:
        body = EXPORT.sub("", body)
        body = f"const {name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"
    texts[file] = f"// ---- {file.name}\n{body}"
    return name


MOST_WITH_NUMBERS = 20_000  # limit for numbers on hover cards, which compress badly


def save_html(  # noqa: PLR0913 - contents of a page, by keyword
    path: Path | str,
    model: Any,
    X: Any,
    labels: Any = None,
    images: Any = None,
    *,
    maps: Mapping[str, Any] | None = None,
    title: str = "appca",
    note: str = "",
    n_components: Iterable[int] | None = None,
    n_active: Iterable[int] | None = None,
) -> None:
    """Save, as one HTML file, the picture of rows that a fitted model describes.

    With `n_components` or `n_active`, the file contains several fits, with sliders for K and L.

    Parameters
    ----------
    path : Path or str
        The file to write. An existing file is replaced.
    model, X, labels, images, maps
        As for `appca.explore`. For several fits, `model` is an estimator whose copies are fitted to
        `X`; it need not be fitted itself.
    title : str
        Text above the picture.
    note : str
        Text below the picture, such as the source and license of the data.
    n_components, n_active : iterable of int, optional
        Values of K and L to fit, such as ``range(2, 13)`` and ``(1, 2, 3)``. Pairs with L > K are
        omitted. If you pass only one of the two, `model` gives the other.

    Raises
    ------
    InputError
        If the parts are inconsistent, no pair has L <= K, or the file cannot be written.
    """
    rows = rows_of(X, labels, images)
    views = {name: map_of(name, xy, rows.dataset) for name, xy in (maps or {}).items()}
    several = n_components is not None or n_active is not None
    models = _fits(model, X, n_components, n_active) if several else [model]
    write_page(Path(path), rows, [run_of(fit, rows.dataset) for fit in models], views, title, note)


def _fits(
    model: Any, X: Any, n_components: Iterable[int] | None, n_active: Iterable[int] | None
) -> list[Any]:
    from sklearn.base import clone  # slow to import

    parameters = model.get_params()
    ks = [parameters["n_components"]] if n_components is None else list(n_components)
    if "n_active" not in parameters:
        refuse_if(n_active is not None, f"{type(model).__name__} has no n_active; leave it out.")
        return [clone(model).set_params(n_components=k).fit(X) for k in ks]
    ls = [parameters["n_active"]] if n_active is None else list(n_active)
    sizes = [(k, active) for active in ls for k in ks if isinstance(active, str) or active <= k]
    msg = f"A row uses at most K components; got K in {ks} and L in {ls}, with no L <= K."
    refuse_if(not sizes, msg)
    return [clone(model).set_params(n_components=k, n_active=active).fit(X) for k, active in sizes]


def write_page(
    path: Path,
    rows: GivenRows,
    runs: Sequence[FittedRun],
    maps: Mapping[str, Map],
    title: str,
    note: str = "",
) -> None:
    """Write a page of rows and fits, numbering components to match the previous fit."""
    scenes: list[Scene] = []
    numbered = None
    for run in runs:
        numbered = numbered_after(run, numbered)
        scenes.append(scene_of_rows(rows, numbered, maps))
    content = picture_page(scenes, title, next(iter(scenes[0].meta["colourings"]), ""), note)
    with storing(f"“{path.name}”", path.parent, OTHER):
        files.write(path, content)


def picture_page(scenes: Sequence[Scene], title: str, colouring: str, note: str = "") -> bytes:
    """Return a self-contained page with hover cards, images, lasso, search, tour and colours.

    `scenes` show the same rows, one scene per fit; the middle scene is shown first. `colouring` is
    the key of the colouring shown first.
    """
    packed: dict[str, int] = {}  # text of a buffer -> index, because fits share unchanged buffers

    def place(array: np.ndarray) -> int:
        return packed.setdefault(_packed(array), len(packed))

    fits = []
    for scene in scenes:
        meta, kept = scene.meta, dict(scene.buffers)
        if (hover := meta.get("hover")) and meta["rows"] > MOST_WITH_NUMBERS:
            lines = [line for line in hover["lines"] if line["kind"] != "number"]
            for line in (line for line in hover["lines"] if line["kind"] == "number"):
                del kept[line["buffer"]]
            meta = meta | {"hover": hover | {"lines": lines}}
        fits.append(
            {
                "size": [len(meta["components"]), meta["n_active"]],
                "meta": place(np.frombuffer(_json(meta).encode(), np.uint8)),
                "buffers": {name: place(array) for name, array in kept.items()},
                "components": scene.component_sheet and _text(scene.component_sheet),
            }
        )
    sheets = scenes[0].sheets
    drawn = [_webp(sheets.png(i)) for i in range(sheets.n_sheets)] if sheets is not None else []
    data = {"packed": list(packed), "fits": fits, "sheets": drawn, "colouring": colouring}
    return html_page(JS / "page.js", title, data, note)


def html_page(entry: Path, title: str, data: Any, note: str = "", worker: str = "") -> bytes:
    """Return a self-contained page that runs a script on data."""
    sheets = ("canvas.css", "bar.css", "page.css")
    style = "".join((JS / name).read_text("utf-8") for name in sheets)
    inert = _json(data).replace("<", "\\u003c")  # cannot close the script element
    footer = f"<footer>{escape(note)}</footer>" if note else ""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f'<header><h1>{escape(title)}</h1></header><main id="canvas"></main>{footer}'
        f'<script type="application/json" id="data">{inert}</script>{worker}'
        f'<script type="module">{closed_bundle(entry)}</script></body></html>\n'
    )
    return page.encode()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def _packed(array: np.ndarray) -> str:
    """Return a buffer as deflated text; grouping bytes of equal rank improves compression."""
    ranks = array.view(np.uint8).reshape(-1, array.itemsize).T
    return _text(bytes([array.itemsize]) + zlib.compress(ranks.tobytes(), 9))


def _webp(png: bytes) -> str:
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(buffer, "WEBP", lossless=True, method=4)
    return _text(buffer.getvalue())


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
