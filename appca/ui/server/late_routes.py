"""What the server answers beside its pages, loaded behind its start: pages come sooner."""

from functools import cache

from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from appca.ui.server.base import base

PREFIXES = ("canvas", "drop")  # named here: their own modules are what is loaded late


def routes() -> list[Route]:
    """Return the routes for `st.App`."""
    return [Route(f"{base()}/{prefix}/{{rest:path}}", _Late()) for prefix in PREFIXES]


class _Late:
    """An application that is loaded with its first request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _loaded()(scope, receive, send)


@cache
def _loaded() -> Router:
    from appca.ui.arrivals import dropping
    from appca.ui.canvas import serving

    return Router([*serving.delivery().routes(base()), *dropping.drops().routes(base())])
