"""Figures and reports as files: Markdown tables and HTML pages without a network.

Functions return HTML; what they are given as text is shown literally.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from appca.plots.components import data_uri

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from appca.plots.still import StillFigure


def markdown_table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table; what is given as text is shown literally, but for line ends."""
    rows = [columns, ["---"] * len(columns), *lines]
    return "\n".join(f"| {' | '.join(map(_markdown_cell, row))} |" for row in rows)


def _markdown_cell(value: object) -> str:
    text = " ".join(str(value).split())
    return text.replace("\\", "\\\\").replace("|", "\\|")


# Plotly's own buttons: nothing is sent to a server, no advertisement.
CONFIG = {
    "showSendToCloud": False,
    "displaylogo": False,
    "responsive": True,
    "toImageButtonOptions": {"format": "svg"},
}


def framed(title: str, body: str, script: str = "") -> str:
    """Return a whole page around a body that is HTML already, with what its figures need."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
        f"{f'<script>{script}</script>' if script else ''}</head><body>"
        f"<h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """Return a heading with HTML parts below it."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def paragraph(text: str) -> str:
    """Return a text as a paragraph."""
    return f"<p>{escape(text)}</p>"


def code(text: str) -> str:
    """Return a text in which spaces and line ends count."""
    return f"<pre>{escape(text)}</pre>"


def table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table; numbers get four digits, None a dash, pictures (uint8 arrays) are shown."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in line) + "</tr>" for line in lines
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def facts(lines: Mapping[str, object]) -> str:
    """Return names and values as a list."""
    body = "".join(
        f"<dt>{escape(name)}</dt><dd>{_cell(value)}</dd>" for name, value in lines.items()
    )
    return f"<dl>{body}</dl>"


def fold(title: str, body: str) -> str:
    """Return HTML that a click on its title opens."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def image(picture: np.ndarray, caption: str, side: int = 96) -> str:
    """Return a uint8 picture (h, w) or (h, w, 3) `side` pixels high, with words below it."""
    drawn = f'<img src="{data_uri(picture)}" alt="{escape(caption)}" height="{side}">'
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def drawn(figure: "StillFigure", caption: str) -> str:
    """Return a figure as a picture."""
    from appca.plots.still import file_of

    content = base64.b64encode(file_of(figure, "png")).decode()
    width = round(96 * figure.get_figwidth())
    source = f"data:image/png;base64,{content}"
    return f'<img src="{source}" alt="{escape(caption)}" width="{width}">'


def figure_page(figure: "go.Figure", title: str) -> str:
    """Return a whole HTML page with a figure of Plotly and all it needs in it."""
    html: str = _on_paper(figure).to_html(include_plotlyjs=True, config=CONFIG)
    return html.replace("</head>", f"<title>{escape(title)}</title></head>", 1)


def fragment(figure: "go.Figure") -> str:
    """Return a figure of Plotly as a part of a page that holds plotly.js once."""
    html: str = _on_paper(figure).to_html(include_plotlyjs=False, full_html=False, config=CONFIG)
    return html


def _on_paper(figure: "go.Figure") -> "go.Figure":
    """Return a copy on a white ground; on the pages the theme has its own."""
    import plotly.graph_objects as go

    return go.Figure(figure).update_layout(template="plotly_white")


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, np.ndarray):
        return f'<img src="{data_uri(value)}" alt="" height="48">'
    return escape(f"{value:.4g}" if isinstance(value, float) else str(value))


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1300px;margin:2rem auto;padding:0 1rem;"
    "color:#1c2530;background:#fff}h2{margin-top:3rem;border-top:1px solid #c3c8cf;"
    "padding-top:1rem}table{border-collapse:collapse;font-size:13px}th,td{padding:2px 10px;"
    "text-align:left;border-bottom:1px solid #e3e6ea}details,section{margin:.5rem 0;"
    "overflow-x:auto}small{color:#5a6572}dl{display:grid;grid-template-columns:max-content 1fr;"
    "gap:3px 16px}dt{color:#5a6572}dd{margin:0;overflow-wrap:anywhere}img{image-rendering:"
    "pixelated;vertical-align:middle}figure{margin:0;font-size:12px}pre{background:#f3f5f7;"
    "padding:12px;overflow-x:auto;font-size:12px}"
)
