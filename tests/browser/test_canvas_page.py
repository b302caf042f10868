"""Canvases within pages of Streamlit, and how their scenes are fetched."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from appca.ui.canvas import SCRIPT
from tests.browser.conftest import ROOT

pytestmark = pytest.mark.browser
PATIENCE = 60_000


def settled(page, root: str) -> None:
    one = f"{root} .appca-explorer[data-settled=yes]"
    page.wait_for_selector(one, state="attached", timeout=PATIENCE)


def select_some(page, root: str) -> int:
    """Drag a box over a canvas; return how many rows it selected."""
    page.locator(f"{root} .appca-hit").scroll_into_view_if_needed()
    box = page.locator(f"{root} .appca-hit").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    for x, y in ((0.7, 0.3), (0.7, 0.7), (0.3, 0.7)):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_function(
        "(root) => Number(document.querySelector(root).dataset.selected) > 0",
        arg=f"{root} .appca-explorer",
        timeout=PATIENCE,
    )
    return int(page.locator(f"{root} .appca-explorer").get_attribute("data-selected"))


def test_canvases_on_one_page_share_a_selection_or_have_their_own(serve, visit):
    page = visit(serve(ROOT / "tests" / "browser" / "canvas_page.py").url, height=1300).page
    for root in ("", ".st-key-two", ".st-key-free"):
        settled(page, root)
    said = page.locator(".st-key-two .appca-explorer").evaluate("(one) => ({...one.dataset})")
    assert said["panels"] == "2"
    assert 0 < int(said["rows"]) < 600
    heights = [
        box["height"]
        for box in page.locator(".appca-explorer").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect())"
        )
    ]
    assert heights == [420, 220, 260]
    own = select_some(page, ".st-key-free")
    page.get_by_text(f"all: 0, own: {own}").wait_for(timeout=PATIENCE)
    shared = select_some(page, ".st-key-two")
    page.get_by_text(f"all: {shared}, own: {own}").wait_for(timeout=PATIENCE)
    first = page.locator(".appca-explorer").first
    page.wait_for_function(
        "([one, count]) => one.dataset.selected === String(count)",
        arg=[first.element_handle(), shared],
        timeout=PATIENCE,
    )


FETCHED = ".fetched[data-names]"


def fetched(page):
    page.wait_for_selector(FETCHED, state="attached", timeout=60_000)
    return page.evaluate(f"() => ({{...document.querySelector('{FETCHED}').dataset}})")


def test_a_scene_is_fetched_once_kept_over_a_reload_and_given_to_nobody_else(serve, visit):
    server = serve(ROOT / "benchmarks" / "canvas_page.py")
    page = visit(server.url).page
    first = fetched(page)
    assert first["status"] == "200"
    assert int(first["transferred"]) > int(first["bytes"]) > 10_000
    said = json.loads(first["said"])
    assert said["ids"] == ["3", "1"]
    assert [line["title"] for line in said["lines"]] == ["class"]
    page.reload()
    again = fetched(page)
    assert again["key"] != first["key"]
    assert (again["names"], again["bytes"]) == (first["names"], first["bytes"])
    assert int(again["transferred"]) == 0
    address = urlsplit(server.url)
    name = first["names"].split(",")[0]
    for key, status in ((again["key"], 200), (first["key"], 403), ("", 403)):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
        connection.request("GET", f"/canvas/{name}", headers={"X-Appca-Key": key})
        answer = connection.getresponse()
        assert answer.status == status
        said = answer.read()
        connection.close()
        if status == 200:
            assert json.loads(said)["rows"] == 1000
            assert answer.headers["Content-Encoding"] == "identity"
    assert (server.home / "secret").is_file()
    assert server.home.stat().st_mode & 0o777 == 0o700


def test_the_app_itself_serves_the_routes(address):
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    for path, status in ((f"/canvas/{'0' * 32}", 403), (f"/canvas/{SCRIPT}", 200), ("/data", 200)):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()
