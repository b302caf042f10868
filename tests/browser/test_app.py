"""The app in a real browser: the first picture, live sliders, reloads; how scenes are fetched."""

import json
from pathlib import Path

import pytest

from tests.browser.conftest import ROOT

pytestmark = pytest.mark.browser
APP = Path(__file__).parents[2] / "app.py"
DIGITS = 1797
SECOND = 1000  # milliseconds
POLL = 50  # milliseconds: to look at every frame makes the browser draw sixty of them a second
CANVAS = "document.querySelector('.appca-explorer')"


def drawn(page, condition: str = "true", seconds: float = 60) -> None:
    """Wait until the picture stands still and its root fulfils a condition."""
    page.wait_for_function(
        f"() => {{ const explorer = {CANVAS};"
        f" return explorer?.dataset.settled === 'yes' && Boolean({condition}); }}",
        timeout=seconds * SECOND,
        polling=POLL,
    )


def idle(page, seconds: float = 60) -> None:
    """Wait until the script has ended: what is typed into a widget that is redrawn is lost."""
    page.locator("[data-test-script-state=notRunning]").wait_for(timeout=seconds * SECOND)


def size(page, name: str = "K", role: str = "slider"):
    """Return the slider of K or L, or as "spinbutton" its field."""
    return page.get_by_role(role, name={"K": "Components, K", "L": "a row uses, L"}[name])


def link(page, name: str):
    """Return the link of the navigation to a page."""
    return page.get_by_test_id("stSidebarNav").get_by_role("link", name=name, exact=True)


def open_page(page, name: str) -> None:
    link(page, name).click()
    page.get_by_role("heading", name=name, exact=True, level=1).wait_for(timeout=60 * SECOND)


@pytest.mark.smoke
def test_the_first_page_is_a_finished_picture_and_a_slider_redraws_it_in_place(visit, address):
    page = visit(f"{address}/").page
    drawn(page, f"explorer.dataset.rows == {DIGITS} && explorer.dataset.thumbnails > 20")
    assert page.evaluate(f"{CANVAS}.dataset.panels") == "6"
    assert page.locator("[data-testid=stException]").count() == 0
    page.get_by_role("status").get_by_text("Converged after").wait_for()
    page.evaluate(f"{CANVAS}.dataset.mark = 'same element'")
    slider = size(page)
    slider.press("ArrowRight")
    page.wait_for_url("**k=5**")
    drawn(page, f"explorer.dataset.panels == 10 && explorer.dataset.rows == {DIGITS}")
    assert page.evaluate(f"{CANVAS}.dataset.mark") == "same element"
    page.reload()
    drawn(page, "explorer.dataset.panels == 10")
    for _ in range(5):  # no key of a quick hand is lost
        slider.press("ArrowRight")
    page.wait_for_url("**k=10**")
    drawn(page, "explorer.dataset.panels == 45")
    for _ in range(4):
        slider.press("ArrowLeft")
        page.wait_for_timeout(40)  # milliseconds, in which the callback or the page is under way
    page.wait_for_url("**k=6**")
    drawn(page, "explorer.dataset.panels == 15")


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
