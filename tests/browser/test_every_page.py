"""Every page on real data and on a table of one's own: by its link, after a reload, in the dark."""

from urllib.parse import urlsplit

import pytest

from tests.browser.test_app import APP, SECOND, idle
from tests.ui.parts.test_pages import PAGES, good_table

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WAIT = 120 * SECOND
DATA = {
    "wine": "178 rows × 13",
    "mnist": "10,000 rows × 784",
    "coil20": "1,440 rows × 1,024",
    "own": "40 rows × 4",
}


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def open_data(page, address: str, source: str) -> None:
    """Open a data set on the Data page: a built-in one, or an uploaded table."""
    page.goto(f"{address}/data")
    idle(page, WAIT / SECOND)
    if source == "own":
        page.get_by_role("tab", name="Your files").click()
        file = {"name": "own.csv", "mimeType": "text/csv", "buffer": good_table().encode()}
        page.locator("input[type=file]").last.set_input_files(file)
        page.locator(".st-key-upload_use button").click()
    else:
        if source != "wine":
            page.get_by_role("tab", name="MNIST and COIL-20").click()
            idle(page, WAIT / SECOND)
        page.locator(f".st-key-source-{source}-open button:enabled").click()
    page.locator(".ca-side", has_text=DATA[source]).wait_for(timeout=WAIT)


def sound(page, title: str) -> None:
    page.get_by_role("heading", name=title, exact=True, level=1).wait_for(timeout=WAIT)
    idle(page, WAIT / SECOND)
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.locator("[data-testid=stAlertContentError]").all_inner_texts() == []


@pytest.mark.real_data
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("source", DATA)
def test_every_page_works_by_its_link_and_after_a_reload(visit, address, source, dark):
    opened = visit(f"{address}/", width=900 if dark else 1440, dark=dark)
    page = opened.page
    open_data(page, address, source)
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name="Explore").click()
    page.wait_for_function(
        "() => document.querySelector('.appca-explorer')?.dataset.renders > 0", timeout=WAIT
    )
    idle(page, WAIT / SECOND)
    query = urlsplit(page.url).query.partition("&tab=")[0]
    assert "run=" in query
    for place, title in PAGES.items():
        name, _, tab = place.partition("/")
        page.goto(f"{address}/{name if name != 'explore' else ''}?{query}&tab={tab}")
        sound(page, title)
        page.reload()
        sound(page, title)
        assert DATA[source] in page.locator(".ca-side").inner_text()
