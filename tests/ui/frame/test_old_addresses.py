"""The addresses of the old pages: each leads to a page and tab that there are."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from appca.ui.frame import old_addresses
from tests.ui.parts.test_pages import PAGES


@pytest.mark.parametrize("old", old_addresses.MOVED)
def test_an_old_address_leads_to_its_page_with_what_it_says(old):
    client = TestClient(Starlette(routes=old_addresses.routes()), follow_redirects=False)
    answer = client.get(f"/{old}?data=abc&k=5")
    page, tab = old_addresses.MOVED[old]
    expected = f"/{page}?data=abc&k=5" + (f"&tab={tab}" if tab else "")
    assert (answer.status_code, answer.headers["location"]) == (307, expected)
    assert page in {place.partition("/")[0] for place in PAGES} | {""}
    assert client.get(f"/{old}").headers["location"].startswith(f"/{page}")
