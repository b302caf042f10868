"""How the scenes of canvases are fetched from a real server by a real browser."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import ROOT

pytestmark = pytest.mark.browser
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
