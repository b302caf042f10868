"""Figures of Plotly as pages that need no network; a button on them saves a picture."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Plotly's own buttons: nothing is sent to a server, no advertisement.
CONFIG = {
    "showSendToCloud": False,
    "displaylogo": False,
    "responsive": True,
    "toImageButtonOptions": {"format": "svg"},
}


def page(figure: "go.Figure", title: str = "") -> str:
    """Return a whole HTML page with the figure and all it needs in it."""
    from html import escape

    html: str = on_paper(figure).to_html(include_plotlyjs=True, config=CONFIG)
    return html.replace("</head>", f"<title>{escape(title)}</title></head>", 1) if title else html


def fragment(figure: "go.Figure") -> str:
    """Return the figure as a part of a page that holds plotly.js once."""
    html: str = on_paper(figure).to_html(include_plotlyjs=False, full_html=False, config=CONFIG)
    return html


def on_paper(figure: "go.Figure") -> "go.Figure":
    """Return a copy on a white ground; on the pages the theme has its own."""
    import plotly.graph_objects as go

    return go.Figure(figure).update_layout(template="plotly_white")
