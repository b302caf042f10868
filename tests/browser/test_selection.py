"""One selection over pages, reloads and a restart of the session: what a browser alone can show."""

from pathlib import Path

import pytest

from tests.browser.test_app import SECOND, drawn, idle, open_page, select_a_corner

pytestmark = pytest.mark.browser
APP = Path(__file__).parents[2] / "app.py"
ROWS = 178  # of the wine table


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def says(page, count: int) -> None:
    """Wait until the tray or the page Selection tells this number of rows."""
    page.get_by_text(f"{count} of {ROWS} rows").first.wait_for(timeout=40 * SECOND)
    idle(page)


def press(page, key: str) -> None:
    """Press a button, or open what opens; Streamlit draws one with a hint twice, once hidden."""
    idle(page)
    page.locator(f".st-key-{key} button").first.click()


def test_a_selection_goes_over_pages_gets_a_name_is_undone_and_survives_a_reload(visit, address):
    page = visit(f"{address}/data").page
    idle(page)
    page.locator(".st-key-source-wine-open button").click()
    page.locator(".ca-side b", has_text="Wine").wait_for()
    open_page(page, "Subspaces")
    drawn(page, f"explorer.dataset.points == {ROWS}")
    count = select_a_corner(page)
    says(page, count)
    page.evaluate("document.querySelector('.appca-explorer').dataset.mark = 'same element'")

    press(page, "tray_named")
    page.locator(".st-key-named-new input").fill("my corner")
    page.keyboard.press("Enter")
    page.get_by_text("Named (1)").wait_for(timeout=20 * SECOND)
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
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Why is this group different?").click()
    page.get_by_role("heading", name="Selection", exact=True, level=1).wait_for()
    says(page, count)
    page.get_by_text(f"The {count} selected rows differ from the rest most in").wait_for()
    page.wait_for_url("**sel=**")
    page.reload()
    says(page, count)
    press(page, "tray_invert")
    says(page, ROWS - count)
    open_page(page, "Subspaces")
    drawn(page, f"explorer.dataset.selected == {ROWS - count}")

    page.goto(f"{address}/?data={page.url.split('data=')[1][:64]}")  # a new session, nothing chosen
    drawn(page, f"explorer.dataset.points == {ROWS} && explorer.dataset.selected == 0")
    press(page, "tray_named")
    press(page, "named-replace")
    drawn(page, f"explorer.dataset.selected == {count}")
