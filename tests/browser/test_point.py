"""A click on a point in Explore: its details beside the picture, its nearest rows in it."""

import re
from typing import Any

import pytest

from tests.browser.test_app import SECOND, idle
from tests.browser.test_explore import APP, ROOT, settled

pytestmark = pytest.mark.browser
NEAREST = ".st-key-near_data button"


def click_a_point(page: Any) -> int:
    """Click where a row stands on the map or in a panel; return the row that is held."""
    box = page.locator(".appca-hit").bounding_box()
    for share in range(30, 98, 2):
        page.mouse.click(box["x"] + box["width"] * share / 100, box["y"] + 0.62 * box["height"])
        page.wait_for_timeout(500)  # a second click on the same picture would let go
        held = int(page.evaluate(f"Number({ROOT}.dataset.held)"))
        if held >= 0:
            return held
    pytest.fail("no row stands on a line through the picture")


@pytest.mark.parametrize("width", [1440, 900, 390])
def test_a_click_shows_the_row_keeps_all_colours_and_a_second_lets_go(serve, visit, width):
    page = visit(f"{serve(APP, OMP_NUM_THREADS='1').url}/?k=4&l=2", width=width, height=844).page
    settled(page, "said.panels === '6'")
    idle(page, 60)
    row = click_a_point(page)
    heading = page.locator(".ca-point .ca-name")
    heading.get_by_text(f"digit-{row}").wait_for(timeout=60 * SECOND)
    assert page.get_by_text("average", exact=False).first.is_visible()
    assert settled(page)["selected"] == "0"
    assert page.evaluate("document.body.dataset.drawer === 'open' || innerWidth >= 1000")
    near = page.locator(NEAREST)
    near.first.wait_for(state="attached", timeout=60 * SECOND)  # on a phone below the edge
    idle(page)
    near.first.dispatch_event("click")  # the picture follows the details
    settled(page, f"said.held !== '{row}' && said.held !== '-1'")
    page.keyboard.press("Escape")
    settled(page, "said.held === '-1'")


def test_keys_go_from_a_row_to_its_nearest_rows_and_select_them(serve, visit):
    page = visit(f"{serve(APP, OMP_NUM_THREADS='1').url}/?k=4&l=2").page
    settled(page, "said.panels === '6'")
    idle(page, 60)
    row = click_a_point(page)
    page.locator(NEAREST).first.wait_for(state="attached", timeout=60 * SECOND)
    idle(page, 60)
    page.locator(".appca-hit").focus()
    said = page.locator(".appca-live")
    for key, place in (("ArrowLeft", 6), ("ArrowRight", 1), ("ArrowRight", 2)):
        page.keyboard.press(key)
        page.locator(".appca-live", has_text=f", {place} of the 6 nearest").wait_for(
            state="attached"
        )
    nearest = re.search(r"[Rr]ow ([\d,]+),", said.text_content())
    page.keyboard.press("Enter")
    number = int(nearest[1].replace(",", ""))
    assert number != row
    settled(page, f"said.held === '{number}'")
    page.locator(".ca-point .ca-name").get_by_text(f"digit-{number}").wait_for()
    idle(page, 60)
    page.locator(".appca-hit").focus()
    page.keyboard.press("n")
    settled(page, "said.selected === '7'")
