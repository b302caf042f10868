"""How the scenes of canvases are fetched from a real server by a real browser."""

import json

import pytest

from tests.browser.conftest import ROOT

pytestmark = pytest.mark.browser
FETCHED = ".fetched[data-names]"


def fetched(page):
    page.wait_for_selector(FETCHED, state="attached", timeout=60_000)
    return page.evaluate(f"() => ({{...document.querySelector('{FETCHED}').dataset}})")


def test_a_scene_is_fetched_once_and_kept_over_a_reload_by_a_new_key(serve, visit):
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
