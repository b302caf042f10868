"""The addresses of the old pages: each leads to a page and tab that there are."""

import pytest
from starlette.requests import Request

from appca.ui.server import old_addresses
from tests.ui.parts.test_pages import PAGES


@pytest.mark.parametrize("route", old_addresses.routes(), ids=lambda route: route.path)
def test_an_old_address_leads_to_its_page_with_what_it_says(route):
    page, tab = old_addresses.MOVED[route.path[1:]]
    scope = {"type": "http", "path": route.path, "query_string": b"data=abc&k=5", "headers": []}
    answer = route.endpoint(Request(scope | {"server": ("localhost", 80), "scheme": "http"}))
    expected = f"/{page}?data=abc&k=5" + (f"&tab={tab}" if tab else "")
    assert (answer.status_code, answer.headers["location"]) == (307, expected)
    assert page in {place.partition("/")[0] for place in PAGES} | {""}
