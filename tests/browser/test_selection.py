"""One selection over pages, reloads and a restart of the session: what a browser alone can show."""

import re
from pathlib import Path

import pytest

from tests.browser.test_app import SECOND, drawn, idle, open_page

pytestmark = pytest.mark.browser
APP = Path(__file__).parents[2] / "app.py"
ROWS = 178  # of the wine table


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def says(page, count: int) -> None:
    """Wait until the drawer or the page Groups tells this number of rows."""
    told = page.get_by_text(f"of {ROWS} rows").first
    told.wait_for(timeout=60 * SECOND)
    page.get_by_text(re.compile(rf"(^|\b){count}\b")).first.wait_for(timeout=60 * SECOND)
    idle(page)


def lasso(page) -> int:
    """Draw around the left half of the picture."""
    box = page.locator(".appca-hit").bounding_box()
    left, top, right, bottom = box["x"] + 20, box["y"] + 60, box["x"] + 0.6 * box["width"], 800
    page.keyboard.down("Shift")
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top + 5)):
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    drawn(page, "explorer.dataset.selected > 0")
    return int(page.evaluate("document.querySelector('.appca-explorer').dataset.selected"))


def press(page, key: str) -> None:
    """Press a button, or open what opens; Streamlit draws one with a hint twice, once hidden."""
    idle(page)
    page.locator(f".st-key-{key} button").first.click()


def test_a_selection_goes_over_pages_gets_a_name_is_undone_and_survives_a_reload(visit, address):
    page = visit(f"{address}/data").page
    idle(page)
    page.locator(".st-key-source-wine-open button").click()
    page.locator(".ca-side b", has_text="Wine").wait_for()
    open_page(page, "Explore")
    drawn(page, f"explorer.dataset.rows == {ROWS}")
    count = lasso(page)
    page.get_by_role("radio", name=f"Selection {count}").click(timeout=60 * SECOND)
    says(page, count)
    page.evaluate("document.querySelector('.appca-explorer').dataset.mark = 'same element'")

    press(page, "tray_named")
    page.locator(".st-key-named-new input").fill("my corner")
    page.keyboard.press("Enter")
    page.get_by_text("Named (1)").wait_for()
    idle(page)
    page.keyboard.press("Escape")
    press(page, "tray_invert")
    drawn(page, f"explorer.dataset.selected == {ROWS - count}")
    press(page, "bar_undo")
    drawn(page, f"explorer.dataset.selected == {count}")
    press(page, "tray_clear")
    drawn(page, "explorer.dataset.selected == 0")
    assert page.evaluate("document.querySelector('.appca-explorer').dataset.mark") == "same element"

    press(page, "tray_named")
    press(page, "named-replace")
    drawn(page, f"explorer.dataset.selected == {count}")
    idle(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Compare with the rest").click()
    page.get_by_role("heading", name="Groups", exact=True, level=1).wait_for()
    says(page, count)
    page.get_by_text(f"The {count} selected rows differ from the rest most in").wait_for()
    page.wait_for_url("**sel=**")
    page.reload()
    says(page, count)
    press(page, "tray_invert")
    says(page, ROWS - count)
    open_page(page, "Explore")
    drawn(page, f"explorer.dataset.selected == {ROWS - count}")

    page.goto(f"{address}/?data={page.url.split('data=')[1][:64]}")  # a new session, nothing chosen
    drawn(page, f"explorer.dataset.rows == {ROWS} && explorer.dataset.selected == 0")
    page.get_by_role("radio", name="Selection").click()
    press(page, "tray_named")
    press(page, "named-replace")
    drawn(page, f"explorer.dataset.selected == {count}")
