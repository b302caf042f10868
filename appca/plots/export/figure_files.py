"""Figures as files: a page that needs no network, and pictures where there is a browser to draw."""

import logging
from typing import TYPE_CHECKING

from appca.storage.errors import InputError

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH = 1100  # pixels of a picture whose figure has no width of its own
HEIGHT = 500
PICTURES = ("png", "svg", "pdf")
SCALE = {"png": 2.0}  # file pixels per screen pixel, for print
NO_PICTURES = (
    "Figures are written as HTML only: PNG, SVG and PDF need the package kaleido and a Chrome or "
    "Chromium that it can find."
)
# Plotly's own buttons: nothing is sent to a server, no advertisement.
CONFIG = {"showSendToCloud": False, "displaylogo": False, "responsive": True}


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


def can_draw() -> bool:
    """Whether kaleido and a browser for it are here, as far as that shows without starting one."""
    try:
        import kaleido  # noqa: F401
        from choreographer.browsers import Chromium

        return bool(Chromium.find_browser(skip_local=False))
    except ImportError:
        return False
    except Exception:  # another version of choreographer: trying will tell
        return True


def picture(figure: "go.Figure", kind: str) -> bytes:
    """Draw a figure as one of `PICTURES`.

    Raises
    ------
    InputError
        When kaleido or its browser is missing, or cannot start.
    """
    try:
        import kaleido
    except ImportError as error:
        raise InputError(NO_PICTURES) from error
    for name in ("kaleido", "choreographer"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they lack is said in a sentence
    options = {
        "format": kind,
        "width": figure.layout.width or WIDTH,
        "height": figure.layout.height or HEIGHT,
        "scale": SCALE.get(kind, 1.0),
    }
    try:
        # Not by Plotly's own `to_image`: its page asks another machine for MathJax.
        content: bytes = kaleido.calc_fig_sync(
            on_paper(figure).to_dict(), opts=options, kopts={"mathjax": False}
        )
    except Exception as error:  # whatever a browser may lack, the HTML is there
        raise InputError(NO_PICTURES) from error
    return content
