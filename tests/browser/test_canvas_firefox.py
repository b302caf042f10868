"""The canvas in Firefox: Debian's ESR on a screen, by Playwright 1.57 (`.ci/run` says how)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.canvas_files import N, served
from tests.browser.test_canvas import lasso_of_a_panel, settle

pytestmark = [pytest.mark.browser, pytest.mark.firefox]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with served(tmp_path_factory.mktemp("canvas")) as address, sync_playwright() as driver:
        # headless, and by any newer Playwright, the ESR does not start
        browser = driver.firefox.launch(
            channel="moz-firefox", executable_path="/usr/bin/firefox-esr", headless=False
        )
        page = browser.new_page(viewport={"width": 1000, "height": 760})
        page.set_default_timeout(60_000)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}?d=two")
        page.wait_for_function("window.ready")
        yield page
        browser.close()
        assert errors == []


def test_rows_are_drawn_selected_zoomed_and_toured_in_firefox(page):
    said = settle(page)
    assert (said["rows"], said["panels"]) == (str(N), "10")
    assert page.evaluate("checks.coloursDrawn()") > 20
    page.wait_for_function("Number(canvas.stage.root.dataset.thumbnails) > 20")
    selected, of_panel = lasso_of_a_panel(page)
    assert 0.95 * of_panel <= selected <= of_panel
    page.evaluate("checks.start()")
    before = page.evaluate("canvas.stage.views[0].cam.k")
    page.mouse.move(700, 300)
    page.mouse.wheel(0, -600)
    page.wait_for_function("(before) => canvas.stage.views[0].cam.k > 1.5 * before", arg=before)
    settle(page)
    page.wait_for_function("Number(canvas.stage.root.dataset.thumbnails) > 10")
    page.evaluate("checks.start().then(() => canvas.tour('{1,2}', '{1,3}', 0.5))")
    settle(page)
    page.evaluate("canvas.actions.arrive(canvas.stage.views[0], canvas.stage.tour.b.index)")
    assert settle(page)["view"] == "subspaces {1,3}"
