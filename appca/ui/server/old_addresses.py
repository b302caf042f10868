"""The addresses of the pages that there were before the seven: they lead to what took their place.

A link, a bookmark and the browser's history stay good, with all that they say of the picture.
"""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from appca.ui.server.base import base

MOVED = {  # old address: page and tab
    "explore": ("", ""),
    "subspaces": ("", ""),
    "fit": ("", ""),
    "point": ("", "point"),
    "umap": ("", ""),
    "runs": ("data", "recent"),
    "new_data": ("data", "add"),
    "sharing": ("components", "sharing"),
    "group": ("groups", "differences"),
    "similar": ("groups", "similar"),
    "choose": ("check", "choose"),
    "diagnostics": ("check", "diagnostics"),
    "compare": ("check", "compare"),
    "whitening": ("paper", "whitening"),
    "lab": ("paper", "lab"),
    "brain": ("paper", "brain"),
}


def routes() -> list[Route]:
    """Return the routes for `st.App`."""
    return [Route(f"{base()}/{old}", _forward) for old in MOVED]


def _forward(request: Request) -> RedirectResponse:
    page, tab = MOVED[request.url.path.rstrip("/").rpartition("/")[2]]
    query = {**request.query_params, **({"tab": tab} if tab else {})}
    return RedirectResponse(f"{base()}/{page}?{urlencode(query)}".rstrip("?"))
