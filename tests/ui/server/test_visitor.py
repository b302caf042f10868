"""Each browser has a name, by which its windows are one person's."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from appca.ui.server import visitor
from appca.ui.session import services

PAGE, ASSET = {"accept": "text/html,*/*"}, {"accept": "*/*"}


@pytest.fixture
def browser() -> TestClient:
    routes = [Route("/{any:path}", lambda _: PlainTextResponse("a page"))]
    return TestClient(Starlette(routes=routes, middleware=visitor.middleware()))


def test_a_browser_is_named_with_its_first_page_and_keeps_the_name(browser):
    assert "set-cookie" not in browser.get("/static/a.js", headers=ASSET).headers
    told = browser.get("/", headers=PAGE).headers["set-cookie"]
    assert "HttpOnly" in told
    assert "SameSite=Lax" in told
    name = browser.cookies[visitor.COOKIE]
    assert visitor.named(name) == name
    assert "set-cookie" not in browser.get("/data", headers=PAGE).headers


@pytest.mark.parametrize("given", ["", "ann", "A" * 32, "a" * 33, "a" * 31 + " "])
def test_a_name_that_was_not_made_here_is_replaced(browser, given):
    assert visitor.named(given) == ""
    headers = PAGE | {"cookie": f"{visitor.COOKIE}={given}"}
    assert visitor.COOKIE in browser.get("/", headers=headers).headers["set-cookie"]


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
