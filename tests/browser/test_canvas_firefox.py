"""Tests of the canvas and the app in Debian's Firefox ESR, with a display (see `.ci/run`)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.canvas_files import N, served
from tests.browser.test_app import APP, SECOND, drawn, here, idle, lasso, size, until
from tests.browser.test_canvas import lasso_of_a_panel, settle
from tests.browser.test_explore import choose, held_app

pytestmark = [pytest.mark.browser, pytest.mark.firefox]


@pytest.fixture(scope="module")
def window() -> Iterator[Callable[..., Any]]:
    """Return what opens an address in a window of its own; at the end no script has failed."""
    from playwright.sync_api import sync_playwright

    errors: list[str] = []
    with sync_playwright() as driver:
        # headless, and by any newer Playwright, the ESR does not start
        browser = driver.firefox.launch(
            channel="moz-firefox", executable_path="/usr/bin/firefox-esr", headless=False
        )

        def opened(address: str, width: int = 1280, height: int = 900) -> Any:
            page = browser.new_context(viewport={"width": width, "height": height}).new_page()
            page.set_default_timeout(60_000)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto(address)
            return page

        yield opened
        browser.close()
    assert errors == []


@pytest.fixture
def page(window, tmp_path) -> Iterator[Any]:
    with served(tmp_path) as address:
        page = window(f"{address}?d=two", 1000, 760)
        page.wait_for_function("window.ready")
        yield page


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
    names = page.evaluate("canvas.stage.views[0].layout.panels.map(({ name }) => name)")
    places = [names.index("{1,2}"), names.index("{1,3}")]
    page.evaluate("([a, b]) => checks.start().then(() => canvas.tour(a, b, 0.5))", places)
    settle(page)
    page.evaluate("canvas.actions.arrive(canvas.stage.views[0], canvas.stage.tour.b.index)")
    assert settle(page)["view"] == "subspaces {1,3}"


def test_k_moves_ten_times_in_two_seconds_and_what_is_chosen_stays_after_a_reload(window, serve):
    page = window(f"{serve(APP, OMP_NUM_THREADS='1').url}/?k=4&l=2")
    drawn(page, "explorer.dataset.rows == 1797 && explorer.dataset.thumbnails > 20")
    idle(page)
    slider = size(page)
    for key in (*["ArrowRight"] * 4, *["ArrowLeft"] * 2, *["ArrowRight"] * 3, "ArrowLeft"):
        slider.press(key)
        page.wait_for_timeout(150)  # of a hand: ten keys in two seconds
    until(page, k="8")
    drawn(page, "explorer.dataset.panels == 28")
    assert page.locator("[data-testid=stException]").count() == 0
    page.get_by_label("Colour", exact=True).select_option("component:2")
    selected = lasso(page)
    page.wait_for_url("**sel=*")
    idle(page)
    page.reload()
    drawn(page, f"explorer.dataset.panels == 28 && explorer.dataset.selected == {selected}")
    assert (here(page)["k"], size(page).input_value()) == ("8", "7")  # its place from 0
    page.locator(".appca-keytitle", has_text="Component 2").first.wait_for(state="attached")
    size(page, "L").press("ArrowRight")
    drawn(page, "explorer.dataset.view === 'subspaces+pairs'")
    idle(page)
    page.locator(".appca-views").get_by_text("Pairs", exact=True).click()
    drawn(page, "explorer.dataset.view === 'pairs'")


def test_a_fit_goes_on_after_a_reload_and_a_second_window_works_beside_it(window, serve, tmp_path):
    """Fits of seven components never end by themselves here."""
    address = serve(held_app(tmp_path), OMP_NUM_THREADS="1").url
    first = window(address)
    drawn(first, "explorer.dataset.rows == 1797")
    choose(first, 7)
    fitting = first.locator(".st-key-fitting").get_by_text("Fitting K = 7, L = 2 …")
    fitting.wait_for()
    first.reload()
    fitting.wait_for()
    second = window(f"{address}/?k=5&l=2")
    drawn(second, "explorer.dataset.panels == 10")
    second.locator(".st-key-drawer_components [data-act=rename]").first.click()
    second.keyboard.type("slant")
    second.keyboard.press("Enter")
    second.locator(".st-key-drawer_components [data-name=slant]").wait_for(state="attached")
    assert fitting.is_visible()
    first.locator(".st-key-fitting").get_by_role("button", name="Stop").click()
    drawn(first, "explorer.dataset.panels == 21")
    choose(first, 5)
    drawn(first, "explorer.dataset.panels == 10")
    first.locator(".st-key-drawer_components [data-name=slant]").wait_for(
        state="attached", timeout=60 * SECOND
    )
