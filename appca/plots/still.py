"""Matplotlib figures in the app's typeface and colours, for files and notebooks."""

import io
from contextlib import AbstractContextManager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager, rc_context
from matplotlib.figure import Figure

from appca.storage import files

NAME, WEIGHTS = "Source Sans 3", {"Regular": 400, "Bold": 700}
SHIPPED = "static/static/media/SourceSansVF-Upright*.woff2"  # in Streamlit's folder
LAYOUT = ["GPOS", "GSUB", "GDEF", "BASE", "HVAR", "MVAR"]  # unread, but slow
CHARACTERS = (*range(0x20, 0x530), *range(0x2000, 0x2300))  # Latin, Greek, Cyrillic, signs


@cache
def install() -> None:
    """Register the app's typeface with matplotlib, from files that are written once.

    Without Streamlit, Brotli or disk space, nothing is registered: figures use another typeface.
    """
    streamlit = find_spec("streamlit")
    if NAME in font_manager.get_font_names() or streamlit is None or streamlit.origin is None:
        return
    for shipped in Path(streamlit.origin).parent.glob(SHIPPED):  # the file name contains a hash
        for style in WEIGHTS:
            path = Path(matplotlib.get_cachedir()) / f"appca-{shipped.stem}-{style}.ttf"
            try:
                if not path.exists():
                    files.write(path, _in_style(shipped, style), durable=False)
            except (ImportError, OSError):
                return
            font_manager.fontManager.addfont(path)


def _in_style(shipped: Path, style: str) -> bytes:
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont
    from fontTools.varLib.instancer import instantiateVariableFont

    font = TTFont(shipped)
    subset = Subsetter(Options(drop_tables=LAYOUT, name_IDs=["*"]))
    subset.populate(unicodes=CHARACTERS)
    subset.subset(font)
    instantiateVariableFont(font, {"wght": WEIGHTS[style]}, inplace=True)
    font["OS/2"].usWeightClass = WEIGHTS[style]
    for number, text in ((1, NAME), (2, style), (4, f"{NAME} {style}"), (16, NAME)):
        font["name"].setName(text, number, 3, 1, 0x409)
    font.flavor = None  # as TrueType
    file = io.BytesIO()
    font.save(file)
    return file.getvalue()


THEMES = {  # tokens of the canvas's theme.js
    False: {"ground": "#ffffff", "panel": "#ffffff", "line": "#d5dce5", "text": "#1c2733"}
    | {"soft": "#576474", "grey": "#8f9bab", "below": "#bcd5ef", "above": "#f3c6bd"},
    True: {"ground": "#0c1016", "panel": "#161d27", "line": "#313d4b", "text": "#e6ebf1"}
    | {"soft": "#a3afbd", "grey": "#667486", "below": "#26486f", "above": "#6b332c"},
}
FONTS = (
    *(NAME, "Source Sans Pro", "Arial", "Liberation Sans", "DejaVu Sans"),
    *("Noto Sans CJK JP", "Hiragino Sans", "Yu Gothic", "Microsoft YaHei", "PingFang SC"),
    *("IPAexGothic", "IPAGothic", "VL PGothic", "WenQuanYi Zen Hei", "Unifont"),  # on Linux
)
DPI = 160


class StillFigure(Figure):
    """A figure that notebooks show without pyplot."""

    def _repr_png_(self) -> bytes:
        return file_of(self, "png")


def file_of(figure: Figure, kind: str) -> bytes:
    """Return a figure as "png", "svg" or "pdf"."""
    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "appca"}):
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def styled(*, dark: bool = False) -> AbstractContextManager[None]:
    """Draw in the app's typeface and colours."""
    install()
    installed, theme = set(font_manager.get_font_names()), THEMES[dark]
    look: dict[Any, Any] = {f"{part}.color": theme["text"] for part in ("text", "xtick", "ytick")}
    look |= {"axes.edgecolor": theme["line"], "axes.facecolor": theme["panel"], "font.size": 9}
    look |= {"axes.labelcolor": theme["soft"], "figure.facecolor": theme["ground"]}
    return rc_context(look | {"font.family": [font for font in FONTS if font in installed]})
