"""Figures of matplotlib in the app's type and colours, for files and notebooks."""

import io
from contextlib import AbstractContextManager
from typing import Any

from matplotlib import font_manager, rc_context
from matplotlib.figure import Figure

from appca.plots import typeface

THEMES = {  # tokens of the canvas's theme.js
    False: {"ground": "#ffffff", "panel": "#ffffff", "line": "#d5dce5", "text": "#1c2733"}
    | {"soft": "#576474", "grey": "#8f9bab", "below": "#bcd5ef", "above": "#f3c6bd"},
    True: {"ground": "#0c1016", "panel": "#161d27", "line": "#313d4b", "text": "#e6ebf1"}
    | {"soft": "#a3afbd", "grey": "#667486", "below": "#26486f", "above": "#6b332c"},
}
FONTS = (typeface.NAME, "Source Sans Pro", "Arial", "Liberation Sans", "DejaVu Sans")
FURTHER = ("Noto Sans CJK JP", "Hiragino Sans", "Yu Gothic", "Microsoft YaHei", "PingFang SC")
DPI = 160
KINDS = ("png", "svg", "pdf")


class StillFigure(Figure):
    """A figure that notebooks show without pyplot."""

    def _repr_png_(self) -> bytes:
        return file_of(self, "png")


def file_of(figure: Figure, kind: str) -> bytes:
    """Return a figure as one of `KINDS`."""
    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "appca"}):
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def styled(*, dark: bool = False) -> AbstractContextManager[None]:
    """Draw in the app's type and colours."""
    typeface.install()
    installed, theme = set(font_manager.get_font_names()), THEMES[dark]
    colours = dict.fromkeys(("text.color", "xtick.color", "ytick.color"), theme["text"])
    lines = {"axes.edgecolor": theme["line"], "axes.facecolor": theme["panel"]}
    family = [font for font in FONTS + FURTHER if font in installed]
    plain: dict[Any, Any] = {
        "font.family": family,
        "font.size": 9,
        "axes.labelcolor": theme["soft"],
    }
    return rc_context(plain | colours | lines | {"figure.facecolor": theme["ground"]})
