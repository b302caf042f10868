"""Reports as Markdown tables and self-contained HTML pages; text is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from appca.analysis.association import SIGNIFICANT, ordered
from appca.plots.components import data_uri
from appca.words import capital, number

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from appca.plots.still import StillFigure


def markdown_table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; text is escaped, line breaks are removed."""
    rows = [columns, ["---"] * len(columns), *lines]
    literal = str.maketrans({"\\": "\\\\", "|": "\\|"})
    cells = ([" ".join(str(value).split()).translate(literal) for value in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def framed(title: str, body: str, script: str = "") -> str:
    """Return an HTML page around an HTML body, with the script of its figures."""
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


def paragraph(text: str, tag: str = "p") -> str:
    """Return text as a paragraph or another element; "pre" keeps spaces and line breaks."""
    return f"<{tag}>{escape(text)}</{tag}>"


def table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table: numbers with four digits, a dash for None, pictures for uint8 arrays."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    rows = ("".join(f"<td>{_cell(value)}</td>" for value in line) for line in lines)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def associations(tests: "pd.DataFrame | None", components: Sequence[str], most: int = 40) -> str:
    """Return the first significant tests of `appca.association` as a heading and a table."""
    if tests is None:
        return paragraph("Associations with columns are not computed: open Components, Meaning.")
    significant = tests[tests["q"] < SIGNIFICANT]
    text = f"{len(significant):,} of {len(tests):,} tests have q below 5%; up to {most} are listed."
    first = ordered(significant, significant["column"]).head(most)  # technical columns are last
    columns = ["component", "part", "column", "direction", "effect", "q"]
    columns += [name for name in ["adjusted_for"] if name in tests]
    lines = [[components[k - 1], *rest] for k, *rest in first[columns].to_numpy().tolist()]
    heads = [name if name == "q" else capital(name.replace("_", " ")) for name in columns]
    return f"<h3>Associations</h3>{paragraph(text)}" + table(heads, lines) * bool(lines)


def facts(lines: Mapping[str, object]) -> str:
    """Return names and values as a list."""
    pairs = (f"<dt>{escape(name)}</dt><dd>{_cell(value)}</dd>" for name, value in lines.items())
    return f"<dl>{''.join(pairs)}</dl>"


def fold(title: str, body: str) -> str:
    """Return HTML that a click on its title unfolds."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def image(picture: np.ndarray, caption: str, side: int = 96) -> str:
    """Return a uint8 picture (h, w) or (h, w, 3) `side` pixels high, with a caption below it."""
    drawn = f'<img src="{data_uri(picture)}" alt="{escape(caption)}" height="{side}">'
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def drawn(figure: "StillFigure", caption: str) -> str:
    """Return a figure as a picture."""
    from appca.plots.still import file_of

    width, source = round(96 * figure.get_figwidth()), data_uri(file_of(figure, "png"))
    return f'<img src="{source}" alt="{escape(caption)}" width="{width}">'


def fragment(figure: "go.Figure", title: str | None = None) -> str:
    """Return a Plotly figure as part of a page that has plotly.js; with a title, as a page."""
    import plotly.graph_objects as go

    whole = title is not None
    on_paper = go.Figure(figure).update_layout(template="plotly_white")  # app pages set their own
    html: str = on_paper.to_html(include_plotlyjs=whole, full_html=whole, config=CONFIG)
    return html.replace("</head>", f"<title>{escape(title or '')}</title></head>", 1)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, np.ndarray):
        return f'<img src="{data_uri(value)}" alt="" height="48">'
    return escape(number(value, 4) if isinstance(value, float) else str(value))


# Hide the Plotly logo and the button that uploads data.
CONFIG: dict[str, object] = {"showSendToCloud": False, "displaylogo": False, "responsive": True}
CONFIG |= {"toImageButtonOptions": {"format": "svg"}}
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
