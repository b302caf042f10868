"""The canvas in Firefox: Debian's ESR on a screen, by Playwright 1.57 (`.ci/run` says how)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.canvas_files import N, served

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


@pytest.fixture(autouse=True)
def start(page: Any) -> None:
    page.evaluate("checks.start()")
    settle(page)


def settle(page: Any) -> dict[str, str]:
    page.wait_for_function("canvas.stage.root.dataset.settled === 'yes' && !canvas.stage.morph")
    return page.evaluate("({ ...canvas.stage.root.dataset })")


def test_every_row_is_drawn_in_its_colour_with_images(page):
    said = settle(page)
    assert (said["rows"], said["panels"]) == (str(N), "10")
    assert page.evaluate("checks.coloursDrawn()") > 20
    page.wait_for_function("Number(canvas.stage.root.dataset.thumbnails) > 20")


def test_a_lasso_selects(page):
    box = page.evaluate("(() => { const { card } = canvas.stage.placed[2]; return card })()")
    x, y, w, h = (box[key] for key in "xywh")
    page.keyboard.down("Shift")
    page.mouse.move(x + 2, y + 2)
    page.mouse.down()
    for px, py in ((x + w - 2, y + 2), (x + w - 2, y + h - 2), (x + 2, y + h - 2), (x + 2, y + 8)):
        page.mouse.move(px, py, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    panel = page.evaluate("canvas.stage.views[0].layout.panels[2].count")
    assert 0.95 * panel <= int(settle(page)["selected"]) <= panel


def test_the_wheel_zooms(page):
    before = page.evaluate("canvas.stage.views[0].cam.k")
    page.mouse.move(700, 300)
    page.mouse.wheel(0, -600)
    page.wait_for_function("(before) => canvas.stage.views[0].cam.k > 1.5 * before", arg=before)
    settle(page)
    page.wait_for_function("Number(canvas.stage.root.dataset.thumbnails) > 10")


def test_a_tour_ends_exactly_on_the_panel(page):
    page.evaluate("canvas.tour('{1,2}', '{1,3}', 0.5)")
    settle(page)
    assert page.evaluate("checks.endOfTour('{1,2}', '{1,3}')") == [0, True]
    page.evaluate("canvas.actions.arrive(canvas.stage.views[0], canvas.stage.tour.b.index)")
    assert settle(page)["view"] == "subspaces {1,3}"
