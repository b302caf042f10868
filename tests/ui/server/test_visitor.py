"""Each browser has a name, by which its windows are one person's."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from appca.ui.server import token, visitor
from appca.ui.session import services
from tests.ui.server.asked import asked

PAGE = "text/html,*/*"


def told(path: str = "/", **headers: str) -> str:
    """Return the cookie that a browser is told."""
    routes = [Route("/{any:path}", lambda _: PlainTextResponse("a page"))]
    app = Starlette(routes=routes, middleware=token.middleware())
    return asked(app, path, **headers).headers.get("set-cookie", "")


def test_a_browser_is_named_with_its_first_page_and_keeps_the_name():
    assert told("/static/a.js", accept="*/*") == ""
    cookie, _, rights = told(accept=PAGE).partition("; ")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(rights.split("; "))
    name = cookie.removeprefix(f"{visitor.COOKIE}=")
    assert visitor.named(name) == name
    assert told("/data", accept=PAGE, cookie=f"a=b; {cookie}") == ""
    assert told(accept=PAGE) != told(accept=PAGE), "another browser has another name"


@pytest.mark.parametrize("given", ["", "ann", "A" * 32, "a" * 33, "a" * 31 + " "])
def test_a_name_that_was_not_made_here_is_replaced(given):
    assert visitor.named(given) == ""
    assert told(accept=PAGE, cookie=f"{visitor.COOKIE}={given}")


def _context(monkeypatch, cookie: object, address: str | None) -> None:
    context = SimpleNamespace(cookies={visitor.COOKIE: cookie}, ip_address=address)
    monkeypatch.setattr(services.st, "context", context)


def test_windows_without_a_cookie_are_told_apart_by_their_machine(monkeypatch):
    people = []
    for cookie, address in (
        ("a" * 32, None),
        ("a" * 32, "192.0.2.7"),
        ("b" * 32, None),
        ("made up", "192.0.2.7"),
        (MagicMock(), "192.0.2.7"),
        (None, None),
    ):
        _context(monkeypatch, cookie, address)
        people.append(services._person())
    assert people[0] == people[1] == "a" * 32, "wherever the browser is"
    assert people[3] == people[4], "a cookie that is no name, and none that can be read"
    assert len(set(people)) == 4
    assert not any(" " in name for name in people), "the last word of an owner's name"
